package file

import (
	"bytes"
	"errors"
	"fmt"
)

// Bounds of what is made of a file. They keep what converting one takes near to its size.
const (
	// maxKeys is how many keys the object may have that a file in JSON is.
	maxKeys = 1000
	// maxYAML and maxTextParts are how many parts a file in YAML or in the text format may have: each
	// takes some hundred bytes while the file is read, whatever it is.
	maxYAML      = 450_000
	maxTextParts = 1 << 20
)

// errStopped says that a conversion was given up because the stream is over.
var errStopped = errors.New("the stream is over")

// nodes counts what may begin a part of a text: every part of YAML needs a line, a colon, or one
// of the characters that lists, maps and comments are made of, and every message in the text format a
// bracket.
func nodes(text []byte, f format) error {
	beginnings, limit := []string{"\n", ",", "[", "{", ":", "- ", "? ", "#"}, maxYAML
	if f == formatText {
		beginnings, limit = []string{"{", "<", "[", ",", ":"}, maxTextParts
	}
	n := 0
	for _, b := range beginnings {
		n += bytes.Count(text, []byte(b))
	}
	// H-5: what a file expands to is bounded.
	if n > limit {
		return &SyntaxError{Format: f.String(), Entry: -1, Err: fmt.Errorf("it may have %d parts, and the limit is %d; the binary form and JSON have room for more", n, limit)}
	}
	return nil
}
