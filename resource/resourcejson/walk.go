package resourcejson

import (
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// occurrence is a field as it stands on the wire.
type occurrence struct {
	*field
	bytes  []byte // of a value that has a length, and of many values that have none
	number uint64 // of others; 1 of a message whose bytes are a copy
}

// joined says whether the bytes of a message are a copy, to which more may be appended.
func (o *occurrence) joined() bool { return o.number > 0 }

// packed says whether the bytes are many values.
func (o *occurrence) packed() bool { return o.packable && o.bytes != nil }

// span are some of the occurrences that were found. Those of a field that holds a message are its parts: a
// message may come in several (what is merged is the same as what follows one another).
type span struct{ from, to int }

func (s span) len() int { return s.to - s.from }

// push has the encoded form of a message be found.
func (w *Writer) push(b []byte) span {
	w.found = append(w.found, occurrence{bytes: b})
	return span{len(w.found) - 1, len(w.found)}
}

// index finds the fields of a message, in the order of their definition; those of one field as they came. Of fields
// of which only one is set the last is left, as decoding does. It is false if the bytes are no message.
func (w *Writer) index(l *layout, parts span) (fields span, ok bool) {
	fields.from = len(w.found)
	many := fields.from + maxLoose
	for i := parts.from; i < parts.to; i++ {
		for b := w.found[i].bytes; len(b) > 0; {
			num, typ, n := protowire.ConsumeTag(b)
			if n < 0 || num > protowire.MaxValidNumber {
				return fields, false
			}
			b = b[n:]
			var o occurrence
			if o, n = value(num, typ, b); n < 0 {
				return fields, false
			}
			b = b[n:]
			o.field = w.field(l, num)
			if !o.fits(typ) {
				w.hidden = true
				continue
			}
			if o.utf8 && !utf8.Valid(o.bytes) {
				return fields, false
			}
			if w.found = append(w.found, o); len(w.found) >= many {
				if !w.settle(fields.from) {
					return fields, false
				}
				n := len(w.found) - fields.from
				w.found = slices.Grow(w.found, n) // by more than append would: most is left where little was replaced
				many = max(many, len(w.found)+n)
			}
		}
	}
	ok = w.settle(fields.from)
	fields.to = len(w.found)
	return fields, ok
}

// maxLoose is how many occurrences of a message's fields are kept, of which some may be replaced by others.
const maxLoose = 1024

// settle sorts what was found of a message, and leaves out what is replaced. It is false if that is not of its type.
func (w *Writer) settle(from int) bool {
	oneofs, sorted, again := 0, true, false
	for i := from; i < len(w.found); i++ {
		o := &w.found[i]
		if o.oneof != nil {
			oneofs++
		}
		if i > from {
			sorted = sorted && w.found[i-1].order <= o.order
			again = again || o.single && o.field == w.found[i-1].field
		}
	}
	if oneofs > 1 && !w.choose(from) {
		return false
	}
	if !sorted {
		slices.SortStableFunc(w.found[from:], func(a, b occurrence) int { return a.order - b.order })
	}
	if again || !sorted {
		w.compact(from)
	}
	w.join(from)
	return true
}

// compact leaves the last of each field that has one value.
func (w *Writer) compact(from int) {
	to := from
	for i := from; i < len(w.found); i++ {
		if to > from && w.found[i].single && w.found[i].field == w.found[to-1].field {
			w.hidden = true
			to--
		}
		w.found[to] = w.found[i]
		to++
	}
	w.found = w.found[:to]
}

// maxParts is in how many parts a message is left.
const maxParts = 1 << 16

// join makes one part of the parts of each message that has very many, in what was found of a message and is sorted.
func (w *Writer) join(from int) {
	if len(w.found)-from < maxParts {
		return
	}
	to := from
	for i := from; i < len(w.found); to++ {
		o, n := w.found[i], 1
		for i+n < len(w.found) && w.found[i+n].field == o.field {
			n++
		}
		if !o.merges {
			to += copy(w.found[to:], w.found[i:i+n]) - 1
		} else {
			if n > 1 && !o.joined() {
				o.bytes, o.number = slices.Clone(o.bytes), 1
			}
			for _, part := range w.found[i+1 : i+n] {
				o.bytes = append(o.bytes, part.bytes...)
			}
			w.found[to] = o
		}
		i += n
	}
	w.found = w.found[:to]
}

// value takes the value after a tag; n is negative if there is none.
func value(num protowire.Number, typ protowire.Type, b []byte) (o occurrence, n int) {
	switch typ {
	case protowire.VarintType:
		o.number, n = protowire.ConsumeVarint(b)
	case protowire.Fixed32Type:
		var v uint32
		v, n = protowire.ConsumeFixed32(b)
		o.number = uint64(v)
	case protowire.Fixed64Type:
		o.number, n = protowire.ConsumeFixed64(b)
	case protowire.BytesType:
		o.bytes, n = protowire.ConsumeBytes(b)
	case protowire.StartGroupType:
		o.bytes, n = protowire.ConsumeGroup(num, b)
	default:
		n = -1
	}
	return o, n
}

// fits says whether an occurrence is one of its field. What is not is an unknown field.
func (o *occurrence) fits(typ protowire.Type) bool {
	if o.field == nil {
		return false
	}
	return typ == o.wire || typ == protowire.BytesType && o.packable
}

// choose leaves out what a later member of the same oneof replaces. It is false if one of these is not its message.
func (w *Writer) choose(from int) bool {
	type choice struct {
		of       protoreflect.OneofDescriptor
		member   *field
		replaces bool // another member
	}
	choices := make([]choice, 0, 8)
	for i := len(w.found) - 1; i >= from; i-- {
		o := w.found[i]
		if o.oneof == nil {
			continue
		}
		at := slices.IndexFunc(choices, func(c choice) bool { return c.of == o.oneof })
		if at < 0 {
			at = len(choices)
			choices = append(choices, choice{of: o.oneof, member: o.field})
		}
		c := &choices[at]
		if c.replaces = c.replaces || c.member != o.field; c.replaces {
			w.found[i].field = nil
			if !w.replaced(o.field, span{i, i + 1}) {
				return false
			}
		}
	}
	w.found = append(w.found[:from], slices.DeleteFunc(w.found[from:], func(o occurrence) bool { return o.field == nil })...)
	return true
}

// replaced drops the value of a field that another replaces. It is false if that is not of its type.
func (w *Writer) replaced(f *field, at span) bool {
	w.hidden = true
	if f.Message() == nil {
		return true
	}
	begin := len(w.buf)
	w.plain++ // its fields tell, and a mapping without a text would be tried again at each level
	ok := w.message(w.within(f), at)
	w.plain--
	w.buf = w.buf[:begin]
	return ok
}

// each calls f with the values of a packed occurrence; false if they are none.
func (o *occurrence) each(f func(occurrence)) bool {
	for b := o.bytes; len(b) > 0; {
		one, n := value(0, o.wire, b)
		if n < 0 {
			return false
		}
		b = b[n:]
		one.field = o.field
		f(one)
	}
	return true
}

// isZero says whether a single value is that of its type.
func (o *occurrence) isZero() bool {
	switch o.kind {
	case protoreflect.StringKind, protoreflect.BytesKind:
		return len(o.bytes) == 0
	case protoreflect.EnumKind, protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Uint32Kind:
		return uint32(o.number) == 0
	default:
		return o.number == 0
	}
}

// lastOf is the last value of a field; a zero one if it does not occur.
func (w *Writer) lastOf(l *layout, fields span, n protowire.Number) occurrence {
	for i := fields.to - 1; i >= fields.from; i-- {
		if w.found[i].Number() == n {
			return w.found[i]
		}
	}
	return occurrence{field: w.field(l, n)}
}
