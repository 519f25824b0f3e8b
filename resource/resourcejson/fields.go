package resourcejson

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/xdswatch/xdswatch/internal/sensitive"
)

// fields writes the fields of a message that are set.
func (w *writer) fields(m protoreflect.Message, name func(string)) {
	fds := m.Descriptor().Fields()
	for i := range fds.Len() {
		if fd := fds.Get(i); m.Has(fd) {
			if w.ProtoNames {
				name(fd.TextName())
			} else {
				name(fd.JSONName())
			}
			w.field(m, fd)
		}
	}
}

// field writes the value of a field, unless it is one that is not to be shown.
func (w *writer) field(m protoreflect.Message, fd protoreflect.FieldDescriptor) {
	if isSensitive(m, fd) || w.secret > 0 && inline[fd.FullName()] {
		w.sensitive++
		defer func() { w.sensitive-- }()
	}
	w.value(fd, m.Get(fd))
}

func (w *writer) value(fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch {
	case fd.IsList():
		w.list(fd, v.List())
	case fd.IsMap():
		w.mapping(fd, v.Map())
	default:
		w.single(fd, v)
	}
}

func (w *writer) list(fd protoreflect.FieldDescriptor, l protoreflect.List) {
	w.WriteByte('[')
	for i := range l.Len() {
		if i > 0 {
			w.WriteByte(',')
		}
		w.single(fd, l.Get(i))
	}
	w.WriteByte(']')
}

func (w *writer) mapping(fd protoreflect.FieldDescriptor, m protoreflect.Map) {
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return cmp.Compare(a.String(), b.String()) })
	w.object(func(name func(string)) {
		for _, k := range keys {
			name(k.String())
			w.single(fd.MapValue(), m.Get(k))
		}
	})
}

// single writes one value of a field: numbers of 64 bits are strings, as JavaScript would
// lose digits of them.
func (w *writer) single(fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	if w.redacts() && fd.Message() == nil && !harmless[fd.FullName()] {
		w.redacted(fd)
		return
	}
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		w.message(v.Message())
	case protoreflect.StringKind:
		w.shown(v.String())
	case protoreflect.BytesKind:
		w.base64(v.Bytes())
	case protoreflect.EnumKind:
		w.enum(fd.Enum(), v.Enum())
	case protoreflect.FloatKind:
		w.float(v.Float(), 32)
	case protoreflect.DoubleKind:
		w.float(v.Float(), 64)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind,
		protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		w.text(v.String())
	default: // booleans and numbers of 32 bits
		w.WriteString(v.String())
	}
}

// shown writes a text, without what is secret in it.
func (w *writer) shown(s string) {
	if !w.ShowSecrets {
		s = sensitive.HidePasswords(s, Redacted)
	}
	w.text(s)
}

// enum writes the name of a value, or its number where it has none.
func (w *writer) enum(d protoreflect.EnumDescriptor, n protoreflect.EnumNumber) {
	switch vd := d.Values().ByNumber(n); {
	case d.FullName() == "google.protobuf.NullValue":
		w.WriteString("null")
	case vd != nil:
		w.text(string(vd.Name()))
	default:
		w.WriteString(strconv.Itoa(int(n)))
	}
}

func (w *writer) float(f float64, bits int) {
	switch {
	case math.IsNaN(f):
		w.text("NaN")
	case math.IsInf(f, 0):
		w.text(map[bool]string{true: "Infinity", false: "-Infinity"}[f > 0])
	case bits == 32:
		b, _ := json.Marshal(float32(f)) // it is finite
		w.Write(b)
	default:
		b, _ := json.Marshal(f)
		w.Write(b)
	}
}
