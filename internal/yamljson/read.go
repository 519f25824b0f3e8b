package yamljson

import (
	"bytes"
	"errors"
	"io"
	"regexp"

	"go.yaml.in/yaml/v2"
)

// ErrDocuments says that a text has more than one document.
var ErrDocuments = errors.New("more than one document")

// mergeKey is a key that says that equal keys are meant.
var mergeKey = regexp.MustCompile(`<<["']?\s*:`)

// Read reads the only document of a text; empty ones after it say nothing. Equal keys are an error, but where
// a merge key says that there may be some: other readers take the first, or the last. The error is [io.EOF]
// if there is no document, [ErrDocuments], or one of the library, which may quote values.
func Read(text []byte) (root any, _ error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.SetStrict(!mergeKey.Match(text))
	if err := d.Decode(&root); err != nil {
		return nil, err
	}
	for {
		var more any
		switch err := d.Decode(&more); {
		case errors.Is(err, io.EOF):
			return root, nil
		case err != nil:
			return nil, err
		case more != nil:
			return nil, ErrDocuments
		}
	}
}
