// Package yamljson makes JSON of YAML, which is the same written otherwise, within bounds on what the
// aliases of a document stand for.
package yamljson

import (
	"encoding/json"
	"errors"

	"go.yaml.in/yaml/v3"
)

// ErrTooMuch says that the JSON is longer than the limit.
var ErrTooMuch = errors.New("too much")

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
