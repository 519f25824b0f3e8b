package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

const (
	// maxExplained is how large a JSON text may be whose fields are looked at to name the one
	// with the fault, in bytes.
	maxExplained = 1 << 20
	// maxPath is how many fields a path names at most.
	maxPath = 32
)

// JSON is the fault that an error of protojson tells of a text, with the path of the field
// that it is in: names that the messages have, and no key of a map.
func JSON(err error, text []byte, m protoreflect.MessageDescriptor, types protoregistry.MessageTypeResolver) *Fault {
	f := Proto(err)
	if f.Line == 0 || len(text) > maxExplained {
		return f
	}
	w := walk{text: text, until: offsetOf(text, f.Line, f.Column), types: types, dec: json.NewDecoder(bytes.NewReader(text))}
	_ = w.value(m, m != nil) // it ends at the fault
	f.Path = strings.TrimPrefix(strings.Join(w.path, ""), ".")
	if f.What == unknownField && w.in != nil {
		if name := nearest(w.in, w.key); name != "" {
			f.What += fmt.Sprintf("; did you mean %q?", name)
		}
	}
	return f
}

// offsetOf is where in a text a line and column are, which count characters from 1.
func offsetOf(text []byte, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		n := bytes.IndexByte(text[at:], '\n')
		if n < 0 {
			return len(text)
		}
		at += n + 1
	}
	for ; column > 1 && at < len(text); column-- {
		_, n := utf8.DecodeRune(text[at:])
		at += n
	}
	return at
}

// walk goes through a JSON text up to an offset, and has the path of what is there.
type walk struct {
	text  []byte
	until int
	types protoregistry.MessageTypeResolver
	dec   *json.Decoder

	path []string
	in   protoreflect.MessageDescriptor // of the object in which the walk ended at a key
	key  string                         // that key
}

// errThere ends a walk.
type errThere struct{}

func (errThere) Error() string { return "there" }

func (w *walk) there() bool { return int(w.dec.InputOffset()) > w.until }

// value walks through a value of a message; of anything else with nil.
func (w *walk) value(m protoreflect.MessageDescriptor, isMessage bool) error {
	t, err := w.dec.Token()
	if err != nil {
		return err
	}
	start := int(w.dec.InputOffset()) - 1
	if w.there() {
		return errThere{}
	}
	switch t {
	case json.Delim('{'):
		if isMessage {
			m = w.messageAt(m, start)
		}
		return w.object(m)
	case json.Delim('['):
		return w.list(m, isMessage)
	}
	return nil
}

func (w *walk) list(m protoreflect.MessageDescriptor, isMessage bool) error {
	for i := 0; w.dec.More(); i++ {
		err := w.step(fmt.Sprintf("[%d]", i), func() error { return w.value(m, isMessage) })
		if err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

// object walks through the members of a message's object, or of another with nil.
func (w *walk) object(m protoreflect.MessageDescriptor) error {
	for w.dec.More() {
		t, err := w.dec.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		name, inner, isMessage := member(m, key)
		if w.there() {
			w.in, w.key = m, key
			if name != "" && len(w.path) < maxPath {
				w.path = append(w.path, "."+name)
			}
			return errThere{}
		}
		if name == "" {
			name = "…"
		}
		if err := w.step("."+name, func() error { return w.value(inner, isMessage) }); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

// step walks through a part; the path keeps its name if the walk ends there.
func (w *walk) step(name string, walk func() error) error {
	if len(w.path) >= maxPath {
		var skipped json.RawMessage
		return w.dec.Decode(&skipped)
	}
	w.path = append(w.path, name)
	err := walk()
	if err == nil {
		w.path = w.path[:len(w.path)-1]
	}
	return err
}

// messageAt is the message of an object that begins at an offset: that inside, of an Any.
func (w *walk) messageAt(m protoreflect.MessageDescriptor, start int) protoreflect.MessageDescriptor {
	if m == nil || m.FullName() != "google.protobuf.Any" {
		return m
	}
	var a struct {
		Type string `json:"@type"`
	}
	if json.NewDecoder(bytes.NewReader(w.text[start:])).Decode(&a) != nil || w.types == nil {
		return nil
	}
	t, err := w.types.FindMessageByURL(a.Type)
	if err != nil {
		return nil
	}
	return t.Descriptor()
}

// member is the field that a key is of, by its name in the proto file; "" if there is none.
func member(m protoreflect.MessageDescriptor, key string) (name string, inner protoreflect.MessageDescriptor, isMessage bool) {
	if key == "@type" {
		return "@type", nil, false
	}
	if m == nil || m.ParentFile().Package() == "google.protobuf" { // which have a JSON of their own
		return "", nil, false
	}
	f := m.Fields().ByJSONName(key)
	if f == nil {
		f = m.Fields().ByTextName(key)
	}
	switch {
	case f == nil:
		return "", nil, false
	case f.IsMap():
		return f.TextName(), nil, false
	}
	return f.TextName(), f.Message(), f.Message() != nil
}

// nearest is the field of a message whose name is nearly a key, if there is one.
func nearest(m protoreflect.MessageDescriptor, key string) (name string) {
	best := 3
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		for _, spelled := range []string{f.TextName(), f.JSONName()} {
			if d := distance(spelled, key, best); d < best && 2*d <= len(spelled) {
				best, name = d, f.TextName()
			}
		}
	}
	return name
}

// distance is how many characters are to be changed, added or left out to make one text of
// the other; bound if it is as many or more.
func distance(a, b string, bound int) int {
	if max(len(a)-len(b), len(b)-len(a)) >= bound {
		return bound
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], bound)
}
