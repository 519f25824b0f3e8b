package xdstp

import (
	"bytes"
	"cmp"
	"testing"
)

// The order of keys is that of their escaped forms.
func TestCompareParams(t *testing.T) {
	var keys []string
	for _, head := range []string{"", "a", "%"} {
		keys = append(keys, head)
		for c := range 256 {
			keys = append(keys, head+string([]byte{byte(c)}))
		}
	}
	escaped := func(key string) []byte { return append(escape(nil, key, paramSet), '=') }
	for _, x := range keys {
		for _, y := range keys {
			got, want := compareParams(Param{Key: x}, Param{Key: y}), bytes.Compare(escaped(x), escaped(y))
			if cmp.Compare(got, 0) != want {
				t.Fatalf("%q, %q: %d, want %d", x, y, got, want)
			}
		}
	}
}
