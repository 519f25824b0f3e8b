package file

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/xdswatch/xdswatch/internal/yamljson"
)

// Bounds of what is made of a file. They keep what converting one takes near to its size.
const (
	// maxKeys is how many keys the object may have that a file in JSON is.
	maxKeys = 1000
	// maxTextParts is how many parts a file in the text format may have: each takes some hundred bytes while
	// the file is read, whatever it is. For YAML there is [yamljson.MaxParts].
	maxTextParts = 1 << 20
)

// errStopped says that a conversion was given up because the stream is over.
var errStopped = errors.New("the stream is over")

// nodes bounds what may begin a part of a text: in the text format every message needs a bracket.
func nodes(text []byte, f format) error {
	n, limit := yamljson.Parts(text), yamljson.MaxParts
	if f == formatText {
		n, limit = 0, maxTextParts
		for _, beginning := range []string{"{", "<", "[", ",", ":"} {
			n += bytes.Count(text, []byte(beginning))
		}
	}
	// H-5: what a file expands to is bounded.
	if n > limit {
		return &SyntaxError{Format: f.String(), Entry: -1, Err: fmt.Errorf("it may have %d parts, and the limit is %d; the binary form and JSON have room for more", n, limit)}
	}
	return nil
}
