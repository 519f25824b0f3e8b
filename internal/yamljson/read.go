package yamljson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrDocuments says that a text has more than one document.
var ErrDocuments = errors.New("more than one document")

// Node is a value of a document, as it is written.
type Node = yaml.Node

// Read reads the only document of a text; empty ones after it say nothing. The error is [io.EOF]
// if there is no document, [ErrDocuments], or one of the library, which may quote values.
func Read(text []byte) (root *Node, _ error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	root, err := document(d)
	for more := (*Node)(nil); err == nil; {
		switch more, err = document(d); {
		case errors.Is(err, io.EOF):
			return root, nil
		case err == nil && !isNull(more):
			return nil, ErrDocuments
		}
	}
	return nil, err
}

func document(d *yaml.Decoder) (root *Node, err error) {
	var doc Node
	if err := d.Decode(&doc); err != nil {
		return nil, err
	}
	dropComments(&doc)
	return doc.Content[0], nil
}

// dropComments frees what may be most of a text.
func dropComments(n *Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for _, part := range n.Content {
		dropComments(part)
	}
}

// IsObject says whether a value is a map.
func IsObject(n *Node) bool { return n.Kind == yaml.MappingNode }

// ListOf is what a list has; ok is false for another value.
func ListOf(n *Node) (items []*Node, ok bool) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n.Content, n.Kind == yaml.SequenceNode
}

// Member is one of a map.
type Member struct {
	Key   string // the text of it, whatever it would be as a value
	Value *Node
}

// Members are those of a map, sorted, with those of the maps that merge keys (`<<`) name, which the
// map's own replace, and without those that the tag !ignore takes out, as Envoy does. A key that is there twice is an
// error: other readers take the first, or the last.
func (w *Writer) Members(n *Node) (all []Member, err error) {
	var merged []*Node
	there := make(map[string]bool, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			return nil, faultAt(key, "a key that is no text")
		case key.Tag == "!ignore":
		case key.Tag == "!!merge":
			merged = append(merged, n.Content[i+1])
		case there[key.Value]:
			return nil, faultAt(n.Content[i], "a key is there twice")
		default:
			there[key.Value] = true
			all = append(all, Member{key.Value, n.Content[i+1]})
		}
	}
	for _, from := range merged {
		inherited, err := w.inherited(from)
		if err != nil {
			return nil, err
		}
		for _, m := range inherited {
			if !there[m.Key] {
				there[m.Key] = true
				all = append(all, m)
			}
		}
	}
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}

// inherited are the members of what a merge key names: a map, or several of which the first that has a key counts.
func (w *Writer) inherited(from *Node) (all []Member, err error) {
	err = w.visit(from, func(n *Node) error {
		switch n.Kind {
		case yaml.MappingNode:
			all, err = w.Members(n)
			w.aliased += len(all)
			return err
		case yaml.SequenceNode:
			for _, item := range n.Content {
				more, err := w.inherited(item)
				if err != nil {
					return err
				}
				all = append(all, more...)
			}
			return nil
		}
		return faultAt(n, "map merge requires map or sequence of maps as the value")
	})
	return all, err
}

const (
	// maxDepth is how deep values may be nested, also by aliases.
	maxDepth = 10_000
	// maxAliased is how many values the aliases of a document may stand for.
	maxAliased = 400_000
)

// visit calls f with a value, or with what it is an alias of.
func (w *Writer) visit(n *Node, f func(*Node) error) error {
	if w.depth == maxDepth {
		return faultAt(n, "exceeded max depth of "+strconv.Itoa(maxDepth))
	}
	w.depth++
	defer func() { w.depth-- }()
	if n.Kind == yaml.AliasNode {
		at := n
		if n = n.Alias; w.within[n] {
			return faultAt(at, "an anchor contains itself")
		}
		if w.within == nil {
			w.within = map[*Node]bool{}
		}
		w.within[n] = true
		defer delete(w.within, n)
	}
	// H-10: aliases expand no further.
	if len(w.within) > 0 {
		if w.aliased++; w.aliased > maxAliased {
			return errAliases
		}
	}
	return f(n)
}

var errAliases = errors.New("document contains excessive aliasing")

// faultAt tells what is wrong with a value.
func faultAt(n *Node, what string) error { return fmt.Errorf("line %d: %s", n.Line, what) }

var (
	decimal = regexp.MustCompile(`^[-+]?(?:0|[1-9][0-9]*)$`)
	octal   = regexp.MustCompile(`^[-+]?0[0-7]+$`)
	hex     = regexp.MustCompile(`^[-+]?0x[0-9a-fA-F]+$`)
	float   = regexp.MustCompile(`^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$`)
)

// scalar writes a value that is no list and no map. What is neither quoted nor tagged is read as Envoy reads it, which
// is YAML 1.1 but for numbers with underscores or in base 2.
func (w *Writer) scalar(n *Node) {
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	if tagged := n.Style&yaml.TaggedStyle != 0; tagged && n.Tag == "!!str" || quoted && !tagged {
		w.B = AppendString(w.B, n.Value)
		return
	}
	switch v := n.Value; v {
	case "", "~", "null", "Null", "NULL":
		w.B = append(w.B, "null"...)
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		w.B = append(w.B, "true"...)
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		w.B = append(w.B, "false"...)
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF":
		w.B = append(w.B, `"Infinity"`...)
	case "-.inf", "-.Inf", "-.INF":
		w.B = append(w.B, `"-Infinity"`...)
	case ".nan", ".NaN", ".NAN":
		w.B = append(w.B, `"NaN"`...)
	default:
		w.number(v)
	}
}

// number writes a number, or a string if the text is none. An integer of more than 32 bits is a
// string, as protobuf's JSON and Envoy have it, so that none is rounded; one of more than 64 bits is a float.
func (w *Writer) number(text string) {
	base := 0
	switch {
	case decimal.MatchString(text):
		base = 10
	case octal.MatchString(text):
		base = 8
	case hex.MatchString(text):
		base = 16
	}
	if base > 0 {
		digits := strings.Replace(text, "0x", "", 1)
		if i, err := strconv.ParseInt(digits, base, 64); err == nil {
			if int64(int32(i)) == i {
				w.B = strconv.AppendInt(w.B, i, 10)
			} else {
				w.B = AppendString(w.B, strconv.FormatInt(i, 10))
			}
			return
		}
		if u, err := strconv.ParseUint(strings.TrimPrefix(digits, "+"), base, 64); err == nil {
			w.B = AppendString(w.B, strconv.FormatUint(u, 10))
			return
		}
	}
	if float.MatchString(text) {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			w.B = strconv.AppendFloat(w.B, f, 'g', -1, 64)
			return
		}
	}
	w.B = AppendString(w.B, text)
}

func isNull(n *Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }
