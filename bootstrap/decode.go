package bootstrap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/xdswatch/xdswatch/internal/redact"
	"github.com/xdswatch/xdswatch/internal/regular"
	"github.com/xdswatch/xdswatch/internal/yamljson"
)

// decode makes a tree of maps, slices, strings, bools, nils and json.Numbers of a text,
// and sees to it that its root is an object. A text that begins with a brace or a bracket
// is JSON; any other is YAML, which forbids a second document. Equal keys are a fault in both:
// other readers take the first, or the last.
func decode(source string, data []byte) (map[string]any, error) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	if at := invalidUTF8(data); at >= 0 {
		return nil, syntaxError(source, data, at, errors.New("text is not UTF-8"))
	}
	text := bytes.TrimSpace(data)
	if len(text) == 0 {
		return nil, &FieldError{Source: source, Reason: "is empty"}
	}
	if int64(len(data)) > regular.MaxBootstrap {
		return nil, &FieldError{Source: source, Reason: (&regular.SizeError{Limit: regular.MaxBootstrap}).Error()}
	}
	if !isYAML(text) {
		if at := twice(data); at >= 0 {
			return nil, syntaxError(source, data, at, errors.New("a key is there twice"))
		}
	} else {
		if n := yamljson.Parts(data); n > yamljson.MaxParts { // H-10
			return nil, &FieldError{Source: source, Reason: fmt.Sprintf("it may have %d parts of YAML, and the limit is %d", n, yamljson.MaxParts)}
		}
		converted, err := yamljson.JSON(data, maxExpanded)
		if errors.Is(err, yamljson.ErrTooMuch) {
			return nil, &FieldError{Source: source, Reason: fmt.Sprintf("its aliases stand for more than the limit of %d bytes", maxExpanded)}
		}
		if err != nil {
			return nil, yamlError(source, data, err)
		}
		data = converted
	}
	root, err := decodeJSON(source, data)
	if err != nil {
		return nil, err
	}
	m, ok := root.(map[string]any)
	if !ok {
		return nil, &FieldError{Source: source, Reason: "want an object, is " + kind(root)}
	}
	return m, nil
}

// isYAML is whether a text is taken for YAML.
func isYAML(data []byte) bool {
	text := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\uFEFF")))
	return len(text) > 0 && text[0] != '{' && text[0] != '['
}

// twice is where a key begins that its object has already; -1 if there is none, or the text is not
// JSON.
func twice(data []byte) int {
	dec := json.NewDecoder(bytes.NewReader(data))
	var open []map[any]bool // the keys of the objects that are open; nil of a list
	for isKey := false; ; {
		before := int(dec.InputOffset())
		t, err := dec.Token()
		if err != nil {
			return -1
		}
		switch t {
		case json.Delim('{'):
			open, isKey = append(open, map[any]bool{}), true
			continue
		case json.Delim('['):
			open, isKey = append(open, nil), false
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		default:
			if isKey {
				keys := open[len(open)-1]
				if keys[t] {
					return before + bytes.IndexByte(data[before:], '"')
				}
				keys[t], isKey = true, false
				continue
			}
		}
		isKey = len(open) > 0 && open[len(open)-1] != nil
	}
}

func decodeJSON(source string, data []byte) (any, error) {
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		var se *json.SyntaxError
		if errors.As(err, &se) {
			// The offset is that behind the offending byte.
			return nil, syntaxError(source, data, max(int(se.Offset)-1, 0), err)
		}
		return nil, &SyntaxError{Source: source, Err: err}
	}
	var root any
	dec := json.NewDecoder(bytes.NewReader(whole))
	dec.UseNumber()
	if err := dec.Decode(&root); err != nil {
		return nil, &SyntaxError{Source: source, Err: err}
	}
	return root, nil
}

// invalidUTF8 is the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

func syntaxError(source string, data []byte, at int, err error) error {
	before := data[:min(at, len(data))]
	return &SyntaxError{
		Source: source,
		Line:   1 + bytes.Count(before, []byte("\n")),
		Column: len(before) - bytes.LastIndexByte(before, '\n'),
		Err:    err,
	}
}

// maxExpanded bounds what a bootstrap in YAML may stand for, written as JSON, in bytes.
const maxExpanded = 4 * regular.MaxBootstrap

// yamlError takes the first line number, and the kind of fault, out of an error text.
func yamlError(source string, data []byte, err error) error {
	if line := tabLine(data); line > 0 && strings.Contains(err.Error(), "cannot start any token") || line > 0 && strings.Contains(err.Error(), "tab character") {
		return &SyntaxError{Source: source, Line: line, Err: errors.New("yaml: the line begins with a tab; YAML wants spaces")}
	}
	// H-3: the library quotes values.
	f := redact.YAML(err)
	return &SyntaxError{Source: source, Line: f.Line, Err: fmt.Errorf("yaml: %w", f.WithoutPosition())}
}

// tabLine is the first line with a tab in its indentation; 0 if there is none.
func tabLine(data []byte) int {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if text := bytes.TrimLeft(line, " \t"); len(text) > 0 && bytes.IndexByte(line[:len(line)-len(text)], '\t') >= 0 {
			return n
		}
	}
	return 0
}

// kind names the JSON type of a value, for error texts.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	}
	return "a number"
}
