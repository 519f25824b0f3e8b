// Package redact says what is wrong with a content and where, and quotes nothing of it. What
// does not parse may be a private key, and the texts about it reach logs, events, dumps and
// the server.
package redact

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Fault is what is wrong with a content.
type Fault struct {
	Line, Column int    // from 1; 0 if not known
	Path         string // of fields, by the names that their messages have; "" if not known
	What         string // the kind of fault
}

func (f *Fault) Error() string {
	at := f.Path
	if f.Line > 0 && f.Column > 0 {
		at = strings.TrimPrefix(at+", ", ", ") + fmt.Sprintf("line %d:%d", f.Line, f.Column)
	}
	if at == "" {
		return f.What
	}
	return at + ": " + f.What
}

// WithoutPosition is the fault without line and column, where these are of no text that anybody
// has seen.
func (f *Fault) WithoutPosition() *Fault { return &Fault{Path: f.Path, What: f.What} }

// Position is the line and the column of the byte before an offset in a text, which count from
// 1; the column counts characters.
func Position(text []byte, offset int64) (line, column int) {
	before := text[:max(0, min(int64(len(text)), offset-1))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return 1 + bytes.Count(before, []byte{'\n'}), 1 + utf8.RuneCount(before[start:])
}

// position is how protobuf's parsers begin an error whose place they know.
var position = regexp.MustCompile(`(?s)^proto:[\s\x{a0}]*(?:syntax error )?\(line (\d+):(\d+)\): (.*)$`)

// Proto is the fault that an error of protobuf's parsers of JSON or text tells.
// H-3: the text of the error quotes nothing.
func Proto(err error) *Fault {
	text := err.Error()
	f := &Fault{}
	if m := position.FindStringSubmatch(text); m != nil {
		f.Line, _ = strconv.Atoi(m[1])
		f.Column, _ = strconv.Atoi(m[2])
		text = m[3]
	} else {
		text = strings.TrimLeft(strings.TrimPrefix(text, "proto:"), " \u00a0")
	}
	f.What = kindOf(text)
	return f
}

var (
	invalidKind  = regexp.MustCompile(`^invalid value for (\w+)`)
	wellKnown    = regexp.MustCompile(`^(?:invalid )?(google\.protobuf\.[A-Z]\w*)`)
	unresolved   = regexp.MustCompile(`^(?:google\.protobuf\.Any: )?unable to resolve (?:message )?["\[]?([^"\]:]*)`)
	kindPrefixes = []struct{ prefix, kind string }{
		{"unknown field", unknownField},
		{"unknown map entry field", unknownField},
		{"unexpected token", "a value of another kind than is wanted"},
		{"unexpected EOF", endsEarly},
		{"duplicate map key", "a key is there twice"},
		{"map entry", "a part of a map entry is there twice"},
		{"duplicate", twice},
		{"non-repeated field", twice},
		{"error parsing", "a second field of a oneof"},
		{`missing "@type"`, noType},
		{"@type field", noType},
		{`missing "value"`, "an Any without its value"},
		{"error in marshaling", "a message inside an Any cannot be encoded"},
		{"invalid UTF-8", notUTF8},
		{"contains invalid UTF-8", notUTF8},
		{"invalid escape", "an escape in a string that there is not"},
		{"invalid character", "a character that cannot stand there"},
		{"exceeded max", "messages are nested too deeply"},
		{"missing field separator", "a colon is missing"},
		{"required field", "a required field is missing"},
		{"conflict with", "an Any is given in two ways"},
		{"cannot have more than one type", "an Any is given in two ways"},
		{"cannot specify field by number", "a field is given by its number"},
	}
)

// Kinds of faults that stand in several places.
const (
	unknownField = "an unknown field"
	twice        = "a field is there twice"
	noType       = "an Any without a type"
	notUTF8      = "a string is not valid UTF-8"
	endsEarly    = "the content ends too early"
	doesNotParse = "it does not parse"
)

// kindOf is the kind of fault that an error text tells, which may quote the content.
func kindOf(text string) string {
	if m := invalidKind.FindStringSubmatch(text); m != nil {
		return "an invalid value for " + article(m[1]) + " field"
	}
	if m := unresolved.FindStringSubmatch(text); m != nil {
		if url := TypeURL(m[1]); url != "" {
			return fmt.Sprintf("the type %q is not known to the program", url)
		}
		return "a type that is not known to the program"
	}
	for _, k := range kindPrefixes {
		if strings.HasPrefix(text, k.prefix) {
			return k.kind
		}
	}
	if m := wellKnown.FindStringSubmatch(text); m != nil {
		return "an invalid " + m[1]
	}
	return doesNotParse
}

func article(kind string) string {
	if strings.ContainsRune("aeiou", rune(kind[0])) && !strings.HasPrefix(kind, "uint") {
		return "an " + kind
	}
	return "a " + kind
}

// typeURL is a type URL as servers and people write it: an ordinary prefix, and the name of a
// message in a package. Whatever else stands in its place may be anything.
var typeURL = regexp.MustCompile(`^type\.googleapis\.com/[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$`)

// maxTypeURL is how long a type URL may be to be shown.
const maxTypeURL = 200

// TypeURL is a text if it is a type URL, and "" if it may be content that stands where one
// should.
func TypeURL(text string) string {
	if len(text) > maxTypeURL || !typeURL.MatchString(text) {
		return ""
	}
	return text
}

var (
	jsonCharacter = regexp.MustCompile(`(?s)^invalid character '.*' (?:in (literal) .*|([a-z][a-z :,\-]*))$`)
	yamlLine      = regexp.MustCompile(`line ([0-9]+): (.*)`)
	yamlFixed     = regexp.MustCompile(`^(?:did not find|found|could not find|mapping values are|mapping keys are|block sequence entries are|control characters are|document contains excessive aliasing|while|invalid leading UTF-8|incomplete UTF-8|map merge requires|exceeded max depth|more than one document|a key |an anchor contains)[a-zA-Z0-9 ,'\-:\[\]{}<>!%()#/]*$`)
)

// SyntaxJSON is the kind of fault that an error of encoding/json tells.
func SyntaxJSON(err error) string {
	text := err.Error()
	if m := jsonCharacter.FindStringSubmatch(text); m != nil {
		if m[1] != "" {
			return "invalid character in a literal"
		}
		return "invalid character " + m[2]
	}
	switch {
	case strings.Contains(text, "unexpected end of JSON input"), strings.Contains(text, "unexpected EOF"):
		return "unexpected end of JSON input"
	case strings.Contains(text, "exceeded max depth"):
		return "exceeded max depth"
	}
	return doesNotParse
}

// YAML is the fault that an error of the YAML library, or of package yamljson, tells.
func YAML(err error) *Fault {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	f := &Fault{}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		f.Line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	switch {
	case yamlFixed.MatchString(text):
		f.What = text
	case strings.HasPrefix(text, "unknown anchor"):
		f.What = "an alias of an anchor that there is not"
	default:
		f.What = doesNotParse
	}
	return f
}

// Validation is an error of a message's own rules (PGV): the path of the field, and the rule.
// Keys of maps are left out of the path, and so is what else the error says, which may quote
// a value; the error itself is wrapped. Others have a text of their program's and are returned as
// they are.
func Validation(err error) error {
	v, ok := err.(validation)
	if !ok {
		return err
	}
	path := "invalid " + strings.TrimSuffix(v.ErrorName(), "ValidationError")
	for {
		path += "." + mapKey.ReplaceAllString(v.Field(), "[…]")
		inner, ok := v.Cause().(validation)
		if !ok {
			return &broken{path + ": " + v.Reason(), err}
		}
		v = inner
	}
}

// broken is a broken rule with its redacted text.
type broken struct {
	text string
	err  error // as the message gave it
}

func (e *broken) Error() string    { return e.text }
func (e *broken) GoString() string { return e.text }
func (e *broken) Unwrap() error    { return e.err }

// validation is an error that protoc-gen-validate makes. Its reason is fixed.
type validation interface {
	Field() string
	Reason() string
	Cause() error
	Key() bool
	ErrorName() string
}

// mapKey is a key in a field's name, but for the index of a list.
var mapKey = regexp.MustCompile(`(?s)\[(?:[^0-9].*|[0-9]+[^0-9\]].*|)\]$`)
