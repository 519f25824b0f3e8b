package resourcejson

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/xdswatch/xdswatch/internal/sensitive"
)

// message writes a message with the mapping of its type. It is false, and what it wrote is to be
// dropped, if the bytes are no such message.
func (w *Writer) message(l *layout, parts span) bool {
	was := w.level
	defer func() { w.level = was }()
	if w.nested++; w.nested > maxNested {
		return false
	}
	if l.secret {
		w.secret++
	}
	switch {
	case l.mapping == ofAny:
		return w.any(l, parts)
	case l.mapping == ofFields:
		return w.object(l, parts)
	case w.redacts():
		return w.redactedMapping(l, parts)
	case w.plain > 0:
		return w.object(l, parts)
	}
	begin, found, here := len(w.buf), len(w.found), w.level
	w.noText = false
	if ok := w.ownMapping(l, parts); ok || !w.noText {
		return ok
	}
	// What lies in it is written the same way: each level would be tried in vain.
	w.buf, w.found, w.level = w.buf[:begin], w.found[:found], here
	w.plain++
	return w.object(l, parts)
}

// object writes a message as its fields.
func (w *Writer) object(l *layout, parts span) bool {
	w.byte('{')
	return w.fields(l, parts)
}

// fields writes the fields of a message that are set, and the end of its object.
func (w *Writer) fields(l *layout, parts span) bool {
	fields, ok := w.index(l, parts)
	if !ok {
		return false
	}
	for at := (span{fields.from, fields.from}); at.from < fields.to; at.from = at.to {
		f := w.found[at.from].field
		for at.to < fields.to && w.found[at.to].field == f {
			at.to++
		}
		if !w.member(l, f, fields, at) {
			return false
		}
	}
	w.found = w.found[:fields.from]
	w.byte('}')
	return true
}

// member writes a field of a message, if it is set.
func (w *Writer) member(l *layout, f *field, fields, at span) bool {
	list := f.list || l.singular && f.Name() == "entries" && at.len() > 1
	switch {
	case f.single:
		if !f.presence && w.found[at.from].isZero() {
			return true
		}
	case f.packable && w.isEmpty(at):
		return true
	}
	w.name(f.name)
	if !w.isSensitive(l, f, fields, at) {
		return w.value(f, list, at)
	}
	w.sensitive++
	ok := w.value(f, list, at)
	w.sensitive--
	return ok
}

// isEmpty says whether a list has nothing.
func (w *Writer) isEmpty(at span) bool {
	return !slices.ContainsFunc(w.found[at.from:at.to], func(o occurrence) bool { return !o.packed() || len(o.bytes) > 0 })
}

// name begins a member.
func (w *Writer) name(quoted string) {
	if w.buf[len(w.buf)-1] != '{' {
		w.byte(',')
	}
	w.raw(quoted)
}

// value writes the value of a field that is set.
func (w *Writer) value(f *field, list bool, at span) bool {
	switch {
	case f.mapped:
		return w.entries(f, at, w.entry)
	case list:
		return w.items(f, at)
	}
	return w.single(f, at)
}

// single writes one value of a field.
func (w *Writer) single(f *field, at span) bool {
	if f.Message() != nil {
		return w.message(w.within(f), at)
	}
	w.scalar(w.found[at.from])
	return true
}

func (w *Writer) items(f *field, at span) bool {
	w.byte('[')
	for i := at.from; i < at.to; i++ {
		if o := w.found[i]; o.packed() {
			if !o.each(w.item) {
				return false
			}
			continue
		}
		w.separate()
		if !w.single(f, span{i, i + 1}) {
			return false
		}
	}
	w.byte(']')
	return true
}

func (w *Writer) item(o occurrence) {
	w.separate()
	w.scalar(o)
}

// separate separates a value of a list from those before.
func (w *Writer) separate() {
	if w.buf[len(w.buf)-1] != '[' {
		w.byte(',')
	}
}

// entry is an entry of a map: its key, and where it is.
type entry struct {
	key string
	at  int
}

// entries writes a map, sorted by key.
func (w *Writer) entries(f *field, at span, write func(f *field, at span) bool) bool {
	l := w.within(f)
	list := make([]entry, 0, at.len())
	for i := at.from; i < at.to; i++ {
		fields, ok := w.index(l, span{i, i + 1})
		if !ok {
			return false
		}
		key := w.lastOf(l, fields, 1)
		list = append(list, entry{key.key(), i})
		w.found = w.found[:fields.from]
	}
	slices.SortStableFunc(list, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	w.byte('{')
	for i, e := range list {
		fields, _ := w.index(l, span{e.at, e.at + 1}) // it was read
		value := fields
		for value.from < value.to && w.found[value.from].Number() == 1 {
			value.from++
		}
		if i+1 < len(list) && list[i+1].key == e.key {
			if !w.replaced(w.field(l, 2), value) {
				return false
			}
		} else {
			w.name("")
			w.shown([]byte(e.key))
			w.byte(':')
			if !write(w.field(l, 2), value) {
				return false
			}
		}
		w.found = w.found[:fields.from]
	}
	w.byte('}')
	return true
}

// entry writes the value of an entry.
func (w *Writer) entry(f *field, at span) bool {
	if f.Message() != nil {
		return w.message(w.within(f), at)
	}
	o := occurrence{field: f}
	if at.len() > 0 {
		o = w.found[at.from]
	}
	w.scalar(o)
	return true
}

// key is the text of a key.
func (o *occurrence) key() string {
	if o.kind == protoreflect.StringKind {
		return string(o.bytes)
	}
	var w Writer
	w.ShowSecrets = true
	w.scalar(*o)
	return strings.Trim(string(w.buf), `"`)
}

// scalar writes a value that is no message: numbers of 64 bits are strings, as JavaScript would
// lose digits of them.
func (w *Writer) scalar(o occurrence) {
	if w.redacts() && !o.harmless {
		w.hidden = true
		w.redacted(o.field)
		return
	}
	switch n := o.number; o.kind {
	case protoreflect.StringKind:
		w.shown(o.bytes)
	case protoreflect.BytesKind:
		w.base64(o.bytes)
	case protoreflect.EnumKind:
		w.enum(o.Enum(), protoreflect.EnumNumber(n))
	case protoreflect.BoolKind:
		w.buf = strconv.AppendBool(w.buf, n != 0)
	case protoreflect.FloatKind:
		w.float(float64(math.Float32frombits(uint32(n))), 32)
	case protoreflect.DoubleKind:
		w.float(math.Float64frombits(n), 64)
	case protoreflect.Int32Kind, protoreflect.Sfixed32Kind:
		w.buf = strconv.AppendInt(w.buf, int64(int32(n)), 10)
	case protoreflect.Sint32Kind:
		w.buf = strconv.AppendInt(w.buf, int64(int32(protowire.DecodeZigZag(n&math.MaxUint32))), 10)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		w.buf = strconv.AppendUint(w.buf, uint64(uint32(n)), 10)
	case protoreflect.Int64Kind, protoreflect.Sfixed64Kind:
		w.quoted(int64(n))
	case protoreflect.Sint64Kind:
		w.quoted(protowire.DecodeZigZag(n))
	default:
		w.byte('"')
		w.buf = strconv.AppendUint(w.buf, n, 10)
		w.byte('"')
	}
}

// shown writes a text, without what is secret in it.
func (w *Writer) shown(s []byte) {
	if !w.ShowSecrets && sensitive.MayHoldPassword(s) {
		if hidden := sensitive.HidePasswords(string(s), Redacted); hidden != string(s) {
			w.hidden = true
			text(w, hidden)
			return
		}
	}
	text(w, s)
}
