package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v2"

	"github.com/xdswatch/xdswatch/internal/redact"
)

// yaml reads YAML as JSON that is written otherwise. The library bounds how many nodes the
// aliases of a document may stand for; how many bytes is bounded here, since a large string
// may be one node.
func (p *parsing) yaml() (*content, error) {
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

// yamlRoot is the object that the only document of a file is. Equal keys are an error, but
// where a merge key says that there may be some.
func yamlRoot(data []byte) (map[any]any, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.SetStrict(!bytes.Contains(data, []byte("<<")))
	var root, more any
	if err := dec.Decode(&root); errors.Is(err, io.EOF) {
		return nil, ErrEmpty // comments alone
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(&more); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	m, ok := root.(map[any]any)
	switch {
	case more != nil:
		return nil, errDocuments
	case !ok:
		return nil, errNotObject
	}
	return m, nil
}

var errDocuments = errors.New("more than one document")

// splitYAML writes a document as JSON, in parts. Keys are sorted, so that what means the
// same is spelled the same.
func splitYAML(root map[any]any, limit int64) (*document, error) {
	d := &document{format: formatYAML}
	list, isList := root[keyResources].([]any)
	w := jsonWriter{limit: int(min(limit, math.MaxInt))}
	rest := maps.Clone(root)
	if isList {
		delete(rest, keyResources)
	}
	_, d.single = rest[keyResource]
	ends := make([]int, 0, len(list)+1)
	err := w.value(rest)
	for i := 0; err == nil && i < len(list); i++ {
		ends = append(ends, len(w.b))
		err = w.value(list[i])
	}
	switch {
	case errors.Is(err, errTooMuch):
		return nil, &SizeError{Limit: limit, Expanded: true}
	case err != nil:
		return nil, &SyntaxError{Format: formatYAML.String(), Entry: len(ends) - 1, Err: err}
	}
	ends = append(ends, len(w.b))
	d.rest = w.b[:ends[0]]
	for i := range list {
		d.entries = append(d.entries, jsonEntry{text: w.b[ends[i]:ends[i+1]]})
	}
	return d, nil
}

var errTooMuch = errors.New("too much")

// yamlError takes the first line number, and the kind of fault, out of an error text.
func yamlError(err error) error {
	if errors.Is(err, ErrEmpty) {
		return err
	}
	if errors.Is(err, errDocuments) || errors.Is(err, errNotObject) {
		return &SyntaxError{Format: formatYAML.String(), Entry: -1, Err: err}
	}
	f := redact.YAML(err)
	return &SyntaxError{Format: formatYAML.String(), Line: f.Line, Entry: -1, Err: f.WithoutPosition()}
}

// jsonWriter writes values of YAML as JSON, up to a limit.
type jsonWriter struct {
	b     []byte
	limit int
}

func (w *jsonWriter) value(v any) error {
	switch v := v.(type) {
	case nil:
		w.b = append(w.b, "null"...)
	case bool:
		w.b = strconv.AppendBool(w.b, v)
	case int:
		w.b = strconv.AppendInt(w.b, int64(v), 10)
	case int64:
		w.b = strconv.AppendInt(w.b, v, 10)
	case uint64:
		w.b = strconv.AppendUint(w.b, v, 10)
	case float64:
		w.float(v)
	case string:
		w.b = appendJSONString(w.b, v)
	case []any:
		return w.list(v)
	case map[any]any:
		return w.object(v)
	default:
		return fmt.Errorf("a value of type %T has no form in JSON", v)
	}
	return w.full()
}

func (w *jsonWriter) full() error {
	if len(w.b) > w.limit {
		return errTooMuch
	}
	return nil
}

// float writes what protobuf's JSON takes for a number.
func (w *jsonWriter) float(v float64) {
	switch {
	case math.IsNaN(v):
		w.b = append(w.b, `"NaN"`...)
	case math.IsInf(v, 1):
		w.b = append(w.b, `"Infinity"`...)
	case math.IsInf(v, -1):
		w.b = append(w.b, `"-Infinity"`...)
	default:
		w.b = strconv.AppendFloat(w.b, v, 'g', -1, 64)
	}
}

func (w *jsonWriter) list(list []any) error {
	w.b = append(w.b, '[')
	for i, v := range list {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		if err := w.value(v); err != nil {
			return err
		}
	}
	w.b = append(w.b, ']')
	return w.full()
}

func (w *jsonWriter) object(m map[any]any) error {
	type member struct {
		key   string
		value any
	}
	members := make([]member, 0, len(m))
	for k, v := range m {
		key, err := keyText(k)
		if err != nil {
			return err
		}
		members = append(members, member{key, v})
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	w.b = append(w.b, '{')
	for i, m := range members {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = append(appendJSONString(w.b, m.key), ':')
		if err := w.value(m.value); err != nil {
			return err
		}
	}
	w.b = append(w.b, '}')
	return w.full()
}

// keyText is the key of a map, which protobuf's JSON writes as a string whatever it is.
func keyText(k any) (string, error) {
	switch k := k.(type) {
	case string:
		return k, nil
	case int, int64, uint64, bool:
		return fmt.Sprint(k), nil
	}
	return "", fmt.Errorf("a key of type %T has no form in JSON", k)
}

// appendJSONString quotes a string.
func appendJSONString(b []byte, s string) []byte {
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
