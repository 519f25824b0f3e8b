package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

// Changes of a [Difference].
const (
	ChangeAdded   = "added" // in the second state only
	ChangeRemoved = "removed"
	ChangeChanged = "changed"
)

// Difference is a resource that differs between two states.
type Difference struct {
	Type   string        `json:"type"`
	Name   string        `json:"name"`
	Change string        `json:"change"`
	Fields []FieldChange `json:"fields"` // of a change; else empty
}

// FieldChange is a field that differs; a side without it is null.
type FieldChange struct {
	Path string          `json:"path"`
	A    json.RawMessage `json:"a"`
	B    json.RawMessage `json:"b"`
}

// side is a value of JSON, and how it is shown: the same, but with secrets redacted.
type side struct{ value, shown any }

// text is what is shown of the value.
func (s side) text() json.RawMessage { return encoded(marked(s.value, s.shown)) }

// marked is the shown form of a value with [resourcejson.Redacted] in place of what stands for a secret, which is of the
// type of its field and does not tell that it is none.
func marked(value, shown any) any {
	switch own := value.(type) {
	case map[string]any:
		if form, ok := shown.(map[string]any); ok {
			all := map[string]any{}
			for key, part := range form {
				all[key] = marked(own[key], part)
			}
			return all
		}
	case []any:
		if form, ok := shown.([]any); ok && len(form) == len(own) {
			all := make([]any, len(form))
			for i, part := range form {
				all[i] = marked(own[i], part)
			}
			return all
		}
	}
	part, _ := shown.(string) // of a text
	if same(value, shown) || strings.Contains(part, resourcejson.Redacted) {
		return shown
	}
	return resourcejson.Redacted
}

// CompareJSON lists the fields in which two resources differ, and counts those of which that cannot be known: one side has what
// stands for a secret, as a recording has, and the other a secret. The shown forms have the same shape,
// but for what is redacted.
func CompareJSON(a, shownA, b, shownB []byte) (changes []FieldChange, unknown int) {
	read := func(text []byte) (v any) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		_ = d.Decode(&v) // it is JSON
		return v
	}
	c := comparison{}
	c.compare("", side{read(a), read(shownA)}, side{read(b), read(shownB)})
	return c.changes, c.unknown
}

type comparison struct {
	changes []FieldChange
	unknown int
}

func (c *comparison) compare(path string, a, b side) {
	switch av := a.value.(type) {
	case map[string]any:
		if bv, ok := b.value.(map[string]any); ok {
			c.objects(path, av, bv, a.shown, b.shown)
			return
		}
	case []any:
		if bv, ok := b.value.([]any); ok {
			c.lists(path, av, bv, a.shown, b.shown)
			return
		}
	}
	switch change := (FieldChange{path, a.text(), b.text()}); {
	case same(a.value, b.value):
	case a.standsForSecret() != b.standsForSecret() && bytes.Equal(change.A, change.B):
		c.unknown++
	default:
		c.changes = append(c.changes, change)
	}
}

// standsForSecret says that the value is as it is shown. Beside one that is shown alike and is another, it stands for a secret.
func (s side) standsForSecret() bool { return same(s.value, s.shown) }

func same(a, b any) bool { return string(encoded(a)) == string(encoded(b)) }

func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // of what was decoded
	return bytes.TrimSpace(b.Bytes())
}

func (c *comparison) objects(path string, a, b map[string]any, shownA, shownB any) {
	keys := map[string]bool{}
	for key := range a {
		keys[key] = true
	}
	for key := range b {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		at := key
		if path != "" {
			at = path + "." + key
		}
		c.compare(at, side{a[key], field(shownA, key)}, side{b[key], field(shownB, key)})
	}
}

// field is what is shown of a field: of what is redacted as a whole, that.
func field(shown any, key string) any {
	if m, ok := shown.(map[string]any); ok {
		return m[key]
	}
	return shown
}

// lists compares by name where all elements have one of their own, else by place.
func (c *comparison) lists(path string, a, b []any, shownA, shownB any) {
	inA, inB := byName(a), byName(b)
	if inA == nil || inB == nil {
		for i := range max(len(a), len(b)) {
			at := path + "[" + strconv.Itoa(i) + "]"
			c.compare(at, element(a, shownA, i), element(b, shownB, i))
		}
		return
	}
	names := maps.Clone(inA)
	maps.Copy(names, inB)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		ea, eb := side{}, side{}
		if i, ok := inA[name]; ok {
			ea = element(a, shownA, i)
		}
		if i, ok := inB[name]; ok {
			eb = element(b, shownB, i)
		}
		c.compare(path+"["+strconv.Quote(name)+"]", ea, eb)
	}
	if order := func(s []any, in map[string]int) (out []string) {
		for _, e := range s {
			if name := e.(map[string]any)["name"].(string); has(inA, name) && has(inB, name) {
				out = append(out, name)
			}
		}
		return out
	}; !slices.Equal(order(a, inA), order(b, inB)) {
		c.changes = append(c.changes, FieldChange{path, encoded(order(a, inA)), encoded(order(b, inB))})
	}
}

func has(m map[string]int, name string) bool { _, ok := m[name]; return ok }

func element(list []any, shown any, i int) side {
	if i >= len(list) {
		return side{}
	}
	if s, ok := shown.([]any); ok && i < len(s) {
		return side{list[i], s[i]}
	}
	return side{list[i], shown}
}

// byName is the place of each element by its name; nil if one has none, or two have the same.
func byName(list []any) map[string]int {
	places := map[string]int{}
	for i, e := range list {
		m, _ := e.(map[string]any)
		name, ok := m["name"].(string)
		if !ok || has(places, name) {
			return nil
		}
		places[name] = i
	}
	return places
}

// WriteDiff writes differences: as "text" or "json".
func WriteDiff(out io.Writer, format string, ds []Difference) error {
	if format == "json" {
		return WriteJSON(out, ds)
	}
	var b bytes.Buffer
	marks := map[string]string{ChangeAdded: "+", ChangeRemoved: "-", ChangeChanged: "~"}
	for _, d := range ds {
		fmt.Fprintf(&b, "%s %s %s\n", marks[d.Change], Clean(subscription.Short(d.Type)), Clean(d.Name))
		for _, f := range d.Fields {
			fmt.Fprintf(&b, "    %s: %s -> %s\n", Clean(f.Path), missing(f.A), missing(f.B))
		}
	}
	_, err := out.Write(b.Bytes())
	return err
}

func missing(v json.RawMessage) string {
	if string(v) == "null" {
		return "(none)"
	}
	return Clean(string(v))
}
