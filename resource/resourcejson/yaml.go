package resourcejson

import (
	"errors"
	"fmt"
	"io"

	"github.com/xdswatch/xdswatch/internal/redact"
	"github.com/xdswatch/xdswatch/internal/yamljson"
)

// FromYAML makes JSON of the only document of a text in YAML, with sorted keys; null if there is none. It is an
// error if the JSON is longer than limit bytes, which the aliases of a short text may stand for, and if a key
// is there twice. An error quotes nothing of the text.
func FromYAML(text []byte, limit int) ([]byte, error) {
	root, err := yamljson.Read(text)
	w := yamljson.Writer{Limit: limit}
	if err == nil {
		err = w.Value(root)
	}
	switch {
	case err == nil:
		return w.B, nil
	case errors.Is(err, io.EOF):
		return []byte("null"), nil
	case errors.Is(err, yamljson.ErrTooMuch):
		return nil, fmt.Errorf("yaml: it stands for more than %d bytes", limit)
	}
	f := redact.YAML(err) // H-3
	if f.Line > 0 {
		return nil, fmt.Errorf("yaml: line %d: %w", f.Line, f.WithoutPosition())
	}
	return nil, fmt.Errorf("yaml: %w", f)
}
