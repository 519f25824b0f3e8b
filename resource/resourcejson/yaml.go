package resourcejson

import (
	"errors"
	"fmt"

	"github.com/xdswatch/xdswatch/internal/redact"
	"github.com/xdswatch/xdswatch/internal/yamljson"
)

// FromYAML makes JSON of the only document of a text in YAML, with sorted keys; null if there is none. It is an
// error if the JSON is longer than limit bytes, which the aliases of a short text may stand for, and if a key
// is there twice. An error quotes nothing of the text.
func FromYAML(text []byte, limit int) ([]byte, error) {
	b, err := yamljson.JSON(text, limit)
	switch {
	case err == nil:
		return b, nil
	case errors.Is(err, yamljson.ErrTooMuch):
		return nil, fmt.Errorf("yaml: it stands for more than %d bytes", limit)
	}
	f := redact.YAML(err) // H-3
	if f.Line > 0 {
		return nil, fmt.Errorf("yaml: line %d: %w", f.Line, f.WithoutPosition())
	}
	return nil, fmt.Errorf("yaml: %w", f)
}
