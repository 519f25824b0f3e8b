// Package yamljson makes JSON of YAML, which is the same written otherwise, within bounds on what the
// aliases of a document stand for.
package yamljson

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrTooMuch says that the JSON is longer than the limit.
var ErrTooMuch = errors.New("too much")

// JSON makes JSON of the only document of a text; null if there is none. The errors are those of [Read] and [Writer.Value].
func JSON(text []byte, limit int) ([]byte, error) {
	root, err := Read(text)
	switch {
	case errors.Is(err, io.EOF):
		return []byte("null"), nil
	case err != nil:
		return nil, err
	}
	w := Writer{Limit: limit}
	err = w.Value(root)
	return w.B, err
}

// Writer writes values of YAML as JSON, up to a limit. Keys are sorted, so that what means the
// same is spelled the same.
type Writer struct {
	B     []byte // what was written
	Limit int    // in bytes

	depth   int
	within  map[*Node]bool // what is written now by an alias of it
	aliased int            // values that were written so
}

// Value writes a value. The error is [ErrTooMuch], or tells what is wrong, with the line and without
// quoting the text.
func (w *Writer) Value(n *Node) error {
	return w.visit(n, func(n *Node) error {
		switch n.Kind {
		case yaml.SequenceNode:
			return w.list(n.Content)
		case yaml.MappingNode:
			members, err := w.Members(n)
			if err != nil {
				return err
			}
			return w.Object(members)
		}
		w.scalar(n)
		return w.full()
	})
}

// H-10: aliases expand no further.
func (w *Writer) full() error {
	if len(w.B) > w.Limit {
		return ErrTooMuch
	}
	return nil
}

func (w *Writer) list(list []*Node) error {
	w.B = append(w.B, '[')
	for i, n := range list {
		if i > 0 {
			w.B = append(w.B, ',')
		}
		if err := w.Value(n); err != nil {
			return err
		}
	}
	w.B = append(w.B, ']')
	return w.full()
}

// Object writes a map of these members.
func (w *Writer) Object(members []Member) error {
	w.B = append(w.B, '{')
	for i, m := range members {
		if i > 0 {
			w.B = append(w.B, ',')
		}
		w.B = append(AppendString(w.B, m.Key), ':')
		if err := w.Value(m.Value); err != nil {
			return err
		}
	}
	w.B = append(w.B, '}')
	return w.full()
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

// AppendString appends a string as JSON.
func AppendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string can always be marshalled
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
