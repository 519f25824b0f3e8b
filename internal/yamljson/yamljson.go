// Package yamljson makes JSON of YAML, which is the same written otherwise, within a bound. The
// YAML library bounds how many nodes the aliases of a document may stand for; how many bytes
// is bounded here, since a large string may be one node.
package yamljson

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ErrTooMuch says that the JSON is longer than the limit.
var ErrTooMuch = errors.New("too much")

// Writer writes values of YAML as JSON, up to a limit. Keys are sorted, so that what means the
// same is spelled the same.
type Writer struct {
	B     []byte // what was written
	Limit int    // in bytes
}

// Value writes a value as the YAML library decodes it. The error is [ErrTooMuch], or tells of a
// value that JSON has no form for.
func (w *Writer) Value(v any) error {
	switch v := v.(type) {
	case nil:
		w.B = append(w.B, "null"...)
	case bool:
		w.B = strconv.AppendBool(w.B, v)
	case int:
		w.B = strconv.AppendInt(w.B, int64(v), 10)
	case int64:
		w.B = strconv.AppendInt(w.B, v, 10)
	case uint64:
		w.B = strconv.AppendUint(w.B, v, 10)
	case float64:
		w.float(v)
	case string:
		w.B = AppendString(w.B, v)
	case []any:
		return w.list(v)
	case map[any]any:
		return w.object(v)
	default:
		return fmt.Errorf("a value of type %T has no form in JSON", v)
	}
	return w.full()
}

// H-10: aliases expand no further.
func (w *Writer) full() error {
	if len(w.B) > w.Limit {
		return ErrTooMuch
	}
	return nil
}

// float writes what protobuf's JSON takes for a number.
func (w *Writer) float(v float64) {
	switch {
	case math.IsNaN(v):
		w.B = append(w.B, `"NaN"`...)
	case math.IsInf(v, 1):
		w.B = append(w.B, `"Infinity"`...)
	case math.IsInf(v, -1):
		w.B = append(w.B, `"-Infinity"`...)
	default:
		w.B = strconv.AppendFloat(w.B, v, 'g', -1, 64)
	}
}

func (w *Writer) list(list []any) error {
	w.B = append(w.B, '[')
	for i, v := range list {
		if i > 0 {
			w.B = append(w.B, ',')
		}
		if err := w.Value(v); err != nil {
			return err
		}
	}
	w.B = append(w.B, ']')
	return w.full()
}

func (w *Writer) object(m map[any]any) error {
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
	w.B = append(w.B, '{')
	for i, m := range members {
		if i > 0 {
			w.B = append(w.B, ',')
		}
		w.B = append(AppendString(w.B, m.key), ':')
		if err := w.Value(m.value); err != nil {
			return err
		}
	}
	w.B = append(w.B, '}')
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
