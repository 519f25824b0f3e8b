package file

import (
	"errors"
	"io"
	"maps"
	"math"

	"github.com/xdswatch/xdswatch/internal/redact"
	"github.com/xdswatch/xdswatch/internal/yamljson"
)

// yaml reads YAML as JSON that is written otherwise. What aliases may stand for is
// bounded by the library and by package yamljson.
func (p *parsing) yaml() (*content, error) {
	if err := nodes(p.data, formatYAML); err != nil {
		return nil, err
	}
	root, err := yamlRoot(p.data)
	if err != nil {
		return nil, yamlError(err)
	}
	d, err := splitYAML(root, p.config.MaxSize)
	if err != nil {
		return nil, err
	}
	return p.convert(d)
}

// yamlRoot is the object that the only document of a file is.
func yamlRoot(data []byte) (map[any]any, error) {
	root, err := yamljson.Read(data)
	if errors.Is(err, io.EOF) {
		return nil, ErrEmpty // comments alone
	} else if err != nil {
		return nil, err
	}
	m, ok := root.(map[any]any)
	if !ok {
		return nil, errNotObject
	}
	return m, nil
}

// splitYAML writes a document as JSON, in parts. Keys are sorted, so that what means the
// same is spelled the same.
func splitYAML(root map[any]any, limit int64) (*document, error) {
	d := &document{format: formatYAML}
	list, isList := root[keyResources].([]any)
	w := yamljson.Writer{Limit: int(min(limit, math.MaxInt))}
	rest := maps.Clone(root)
	if isList {
		delete(rest, keyResources)
	}
	_, d.single = rest[keyResource]
	ends := make([]int, 0, len(list)+1)
	err := w.Value(rest)
	for i := 0; err == nil && i < len(list); i++ {
		ends = append(ends, len(w.B))
		err = w.Value(list[i])
	}
	switch {
	case errors.Is(err, yamljson.ErrTooMuch):
		return nil, &SizeError{Limit: limit, Expanded: true}
	case err != nil:
		return nil, &SyntaxError{Format: formatYAML.String(), Entry: len(ends) - 1, Err: err}
	}
	ends = append(ends, len(w.B))
	d.rest = w.B[:ends[0]]
	for i := range list {
		d.entries = append(d.entries, jsonEntry{text: w.B[ends[i]:ends[i+1]]})
	}
	return d, nil
}

// yamlError takes the first line number, and the kind of fault, out of an error text.
func yamlError(err error) error {
	if errors.Is(err, ErrEmpty) {
		return err
	}
	if errors.Is(err, errNotObject) {
		return &SyntaxError{Format: formatYAML.String(), Entry: -1, Err: err}
	}
	f := redact.YAML(err)
	return &SyntaxError{Format: formatYAML.String(), Line: f.Line, Entry: -1, Err: f.WithoutPosition()}
}
