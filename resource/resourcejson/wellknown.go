package resourcejson

import (
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// any writes the message inside, with "@type" before its fields.
func (w *Writer) any(l *layout, parts span) bool {
	fields, ok := w.index(l, parts)
	if !ok {
		return false
	}
	url, payload := w.lastOf(l, fields, 1), w.lastOf(l, fields, 2)
	w.found = w.found[:fields.from]
	w.content(url.bytes, payload.bytes)
	return true
}

// content writes what an Any contains.
func (w *Writer) content(typeURL, payload []byte) {
	was, begin, found := w.level, len(w.buf), len(w.found)
	if len(typeURL) == 0 && len(payload) == 0 {
		w.raw("{}")
		return
	}
	w.depth++
	l := w.linked(typeURL)
	ok := l != nil && w.depth <= maxDepth && w.typed(typeURL, l, w.push(payload))
	w.level, w.found = was, w.found[:found]
	if !ok {
		w.buf = w.buf[:begin]
		w.unknown(string(typeURL), payload)
	}
}

// typed writes a message with "@type" before its fields.
func (w *Writer) typed(typeURL []byte, l *layout, parts span) bool {
	if l.secret {
		w.secret++
	}
	w.raw(`{"@type":`)
	w.shown(typeURL)
	if l.mapping == ofFields {
		return w.fields(l, parts)
	}
	w.raw(`,"value":`)
	ok := w.message(l, parts)
	w.byte('}')
	return ok
}

// redactedMapping stands for a message that is not shown and whose JSON is no object of its fields.
func (w *Writer) redactedMapping(l *layout, parts span) bool {
	begin := len(w.buf)
	if !w.object(l, parts) {
		return false
	}
	w.hidden = true
	w.buf = w.buf[:begin]
	w.sensitive = 0
	if !w.ownMapping(l, span{}) {
		w.buf = w.buf[:begin]
		text(w, Redacted)
	}
	return true
}

// ownMapping writes a value of a type with a mapping of its own, none of which can hold an
// Any. It is false if the bytes are no such message, and with noText if the mapping has no text for the value,
// such as for a duration of a million years.
func (w *Writer) ownMapping(l *layout, parts span) bool {
	switch l.mapping {
	case ofWrapper:
		fields, ok := w.index(l, parts)
		if ok {
			w.scalar(w.lastOf(l, fields, 1))
			w.found = w.found[:fields.from]
		}
		return ok
	case ofDuration, ofTimestamp:
		fields, ok := w.index(l, parts)
		if !ok {
			return false
		}
		seconds, nanos := int64(w.lastOf(l, fields, 1).number), int64(int32(w.lastOf(l, fields, 2).number))
		w.found = w.found[:fields.from]
		if l.mapping == ofTimestamp {
			return w.timestamp(seconds, nanos)
		}
		return w.duration(seconds, nanos)
	case ofMask:
		return w.mask(parts)
	default:
		return w.untyped(l, parts)
	}
}

// without says that there is no text for a value.
func (w *Writer) without() bool {
	w.noText = true
	return false
}

// Bounds of a google.protobuf.Duration and Timestamp.
const (
	maxDuration  = 315_576_000_000
	minTimestamp = -62_135_596_800
	maxTimestamp = 253_402_300_799
	second       = 1_000_000_000
)

func (w *Writer) duration(seconds, nanos int64) bool {
	if seconds < -maxDuration || seconds > maxDuration || nanos <= -second || nanos >= second || seconds > 0 && nanos < 0 || seconds < 0 && nanos > 0 {
		return w.without()
	}
	w.byte('"')
	if seconds < 0 || nanos < 0 {
		w.byte('-')
		seconds, nanos = -seconds, -nanos
	}
	w.buf = strconv.AppendInt(w.buf, seconds, 10)
	w.fraction(nanos)
	w.raw(`s"`)
	return true
}

func (w *Writer) timestamp(seconds, nanos int64) bool {
	if seconds < minTimestamp || seconds > maxTimestamp || nanos < 0 || nanos >= second {
		return w.without()
	}
	w.byte('"')
	w.buf = time.Unix(seconds, 0).UTC().AppendFormat(w.buf, "2006-01-02T15:04:05")
	w.fraction(nanos)
	w.raw(`Z"`)
	return true
}

// fraction writes nanoseconds behind seconds, in three, six or nine digits.
func (w *Writer) fraction(nanos int64) {
	if nanos == 0 {
		return
	}
	digits := strconv.AppendInt(nil, second+nanos, 10)
	digits[0] = '.'
	for strings.HasSuffix(string(digits), "000") {
		digits = digits[:len(digits)-3]
	}
	w.buf = append(w.buf, digits...)
}

func (w *Writer) mask(parts span) bool {
	m := &fieldmaskpb.FieldMask{}
	for _, o := range w.found[parts.from:parts.to] {
		if (proto.UnmarshalOptions{Merge: true}).Unmarshal(o.bytes, m) != nil {
			return false
		}
	}
	b, err := protojson.Marshal(m)
	if err != nil {
		return w.without()
	}
	w.hidden = w.hidden || len(m.ProtoReflect().GetUnknown()) > 0
	w.buf = append(w.buf, b...)
	return true
}

// untyped writes a Struct, a ListValue or a Value.
func (w *Writer) untyped(l *layout, parts span) bool {
	if w.nested++; w.nested > maxNested {
		return false
	}
	fields, ok := w.index(l, parts)
	switch {
	case !ok:
	case l.mapping == ofStruct && fields.len() == 0:
		w.raw("{}")
	case l.mapping == ofStruct:
		ok = w.entries(w.found[fields.from].field, fields, func(f *field, at span) bool { return w.untyped(w.within(f), at) })
	case l.mapping == ofList:
		w.byte('[')
		for i := fields.from; i < fields.to && ok; i++ {
			w.separate()
			ok = w.untyped(w.within(w.found[i].field), span{i, i + 1})
		}
		w.byte(']')
	case fields.len() == 0:
		ok = w.without()
	default:
		ok = w.kind(fields)
	}
	w.found = w.found[:fields.from]
	w.nested--
	return ok
}

// kind writes the value in a Value.
func (w *Writer) kind(fields span) bool {
	o := w.found[fields.to-1]
	switch o.kind {
	case protoreflect.MessageKind:
		return w.untyped(w.within(o.field), fields)
	case protoreflect.DoubleKind:
		if f := math.Float64frombits(o.number); math.IsNaN(f) || math.IsInf(f, 0) {
			return w.without()
		}
	default:
	}
	w.scalar(o)
	return true
}
