package resourcejson

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/internal/sensitive"
)

// Redact takes out of a message what is secret, also in what an Any contains, and says whether
// there was anything to take out: a string or bytes become [Redacted], other values zero. What
// nobody can tell is emptied: fields that the message's type does not know, and the payload of an Any whose
// message is not linked in, whose bytes are not that message, or which lies too deep in others. What an Any contains is
// encoded anew.
func Redact(m proto.Message) bool {
	var r redactor
	r.message(m.ProtoReflect())
	return r.changed
}

// redactor is what is known on the way through a message.
type redactor struct {
	depth     int // of messages in an Any
	nested    int // of messages
	secret    int // of Secrets
	sensitive int // of fields that are not to be shown
	changed   bool
}

func (r *redactor) message(m protoreflect.Message) {
	r.nested++
	defer func() { r.nested-- }()
	if len(m.GetUnknown()) > 0 {
		m.SetUnknown(nil)
		r.changed = true
	}
	name := m.Descriptor().FullName()
	if name == secretName {
		r.secret++
		defer func() { r.secret-- }()
	}
	switch {
	case name == anyName:
		r.any(m)
	case r.sensitive > 0 && hasOwnMapping(m.Descriptor()):
		proto.Reset(m.Interface())
		r.changed = true
	default:
		m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			r.field(m, fd, v)
			return true
		})
	}
}

// any redacts the message inside.
func (r *redactor) any(m protoreflect.Message) {
	a, ok := m.Interface().(*anypb.Any)
	if !ok { // of another program
		proto.Reset(m.Interface())
		r.changed = true
		return
	}
	a.TypeUrl = r.shown(a.GetTypeUrl())
	inner, err := UnmarshalAny(a)
	if err != nil || r.depth == maxDepth || r.nested > maxNested {
		r.changed = r.changed || len(a.GetValue()) > 0
		a.Value = nil
		return
	}
	r.depth++
	r.message(inner.ProtoReflect())
	r.depth--
	before := len(a.GetValue())
	// H-3: what a later value of the same field replaces is in the bytes, and not in the message.
	a.Value, _ = proto.MarshalOptions{AllowPartial: true, Deterministic: true}.Marshal(inner) // it was read
	r.changed = r.changed || len(a.Value) != before
}

func (r *redactor) field(m protoreflect.Message, fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	if isSensitive(m, fd) || r.secret > 0 && inline[fd.FullName()] {
		r.sensitive++
		defer func() { r.sensitive-- }()
	}
	switch {
	case fd.IsMap():
		r.mapping(fd, v.Map())
	case fd.IsList():
		r.list(fd, v.List())
	case fd.Message() != nil:
		r.message(v.Message())
	default:
		r.value(fd, v, fd.Default(), func(v protoreflect.Value) { m.Set(fd, v) })
	}
}

// value sets what is to be shown of a value that is no message, if that is another.
func (r *redactor) value(fd protoreflect.FieldDescriptor, v, zero protoreflect.Value, set func(protoreflect.Value)) {
	switch {
	case harmless[fd.FullName()]:
	case r.sensitive > 0:
		r.changed = true
		set(redactedValue(fd, zero))
	case fd.Kind() == protoreflect.StringKind:
		if s := r.shown(v.String()); s != v.String() {
			set(protoreflect.ValueOfString(s))
		}
	}
}

// shown is a text without what is secret in it.
func (r *redactor) shown(s string) string {
	hidden := sensitive.HidePasswords(s, Redacted)
	r.changed = r.changed || hidden != s
	return hidden
}

func (r *redactor) mapping(fd protoreflect.FieldDescriptor, values protoreflect.Map) {
	values.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		if fd.MapValue().Message() != nil {
			r.message(v.Message())
		} else {
			r.value(fd.MapValue(), v, fd.MapValue().Default(), func(v protoreflect.Value) { values.Set(k, v) })
		}
		if s := r.shown(k.String()); s != k.String() {
			v := values.Get(k)
			values.Clear(k)
			values.Set(protoreflect.ValueOfString(s).MapKey(), v)
		}
		return true
	})
}

func (r *redactor) list(fd protoreflect.FieldDescriptor, values protoreflect.List) {
	for i := range values.Len() {
		if fd.Message() != nil {
			r.message(values.Get(i).Message())
		} else {
			r.value(fd, values.Get(i), values.NewElement(), func(v protoreflect.Value) { values.Set(i, v) })
		}
	}
}

// redactedValue stands in place of a value.
func redactedValue(fd protoreflect.FieldDescriptor, zero protoreflect.Value) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(Redacted)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(Redacted))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(0)
	}
	return zero
}
