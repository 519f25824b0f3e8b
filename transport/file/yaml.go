package file

import (
	"errors"
	"io"
	"math"
	"slices"

	"github.com/xdswatch/xdswatch/internal/redact"
	"github.com/xdswatch/xdswatch/internal/yamljson"
)

// yaml reads YAML as JSON that is written otherwise. Package yamljson bounds what
// aliases may stand for.
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
func yamlRoot(data []byte) (*yamljson.Node, error) {
	root, err := yamljson.Read(data)
	if errors.Is(err, io.EOF) {
		return nil, ErrEmpty // comments alone
	} else if err != nil {
		return nil, err
	}
	if !yamljson.IsObject(root) {
		return nil, errNotObject
	}
	return root, nil
}

// splitYAML writes a document as JSON, in parts. Keys are sorted, so that what means the
// same is spelled the same.
func splitYAML(root *yamljson.Node, limit int64) (*document, error) {
	d := &document{format: formatYAML}
	w := yamljson.Writer{Limit: int(min(limit, math.MaxInt))}
	members, err := w.Members(root)
	var list []*yamljson.Node
	rest := slices.DeleteFunc(members, func(m yamljson.Member) (isList bool) {
		d.single = d.single || m.Key == keyResource
		if m.Key == keyResources {
			list, isList = yamljson.ListOf(m.Value)
		}
		return isList
	})
	if err == nil {
		err = w.Object(rest)
	}
	ends := make([]int, 0, len(list)+1)
	for i := 0; err == nil && i < len(list); i++ {
		ends = append(ends, len(w.B))
		err = w.Value(list[i])
	}
	switch {
	case errors.Is(err, yamljson.ErrTooMuch):
		return nil, &SizeError{Limit: limit, Expanded: true}
	case err != nil:
		return nil, yamlError(err)
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
