package yamljson

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
)

// MaxParts is how many parts a text may have whose reader bounds its memory: each takes some hundred bytes while the text
// is read, whatever it is.
const MaxParts = 450_000

// Parts counts what may begin a part of a text, each of which needs a line, a colon, or one of the characters that lists, maps
// and comments are made of.
func Parts(text []byte) (n int) {
	for _, beginning := range []string{"\n", ",", "[", "{", ":", "- ", "? ", "#"} {
		n += bytes.Count(text, []byte(beginning))
	}
	return n
}

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

func isNull(n *Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }
