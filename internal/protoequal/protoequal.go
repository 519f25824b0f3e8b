// Package protoequal compares messages by what they say: it opens an Any of a type that the
// program links, since the bytes inside have maps in any order.
package protoequal

import (
	"bytes"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// maxOpened is how deep an Any may stand in others to be compared by what it holds; deeper
// ones are compared by their bytes.
const maxOpened = 8

// Equal is proto.Equal with the Any of types that the program links opened. It takes as long as
// proto.Equal does, less for messages that both share, and ends at the first difference.
func Equal(a, b proto.Message) bool {
	return a == b || equalMessages(a.ProtoReflect(), b.ProtoReflect(), 0)
}

// equalMessages compares field by field; depth is how many an Any they stand in.
func equalMessages(a, b protoreflect.Message, depth int) bool {
	if a.Interface() == b.Interface() { // messages may share some
		return true
	}
	d := a.Descriptor()
	if d != b.Descriptor() || !bytes.Equal(a.GetUnknown(), b.GetUnknown()) {
		return false
	}
	if x, ok := a.Interface().(*anypb.Any); ok {
		return equalAny(x, b.Interface().(*anypb.Any), depth)
	}
	if d.ExtensionRanges().Len() > 0 { // its fields are not all
		return proto.Equal(a.Interface(), b.Interface())
	}
	fields := d.Fields() // Message.Range would allocate
	for i := range fields.Len() {
		fd := fields.Get(i)
		has := a.Has(fd)
		if has != b.Has(fd) || has && !equalFields(fd, a.Get(fd), b.Get(fd), depth) {
			return false
		}
	}
	return true
}

func equalFields(fd protoreflect.FieldDescriptor, a, b protoreflect.Value, depth int) bool {
	switch {
	case fd.Message() == nil, fd.IsMap() && fd.MapValue().Message() == nil:
		return a.Equal(b)
	case fd.IsMap():
		x, y := a.Map(), b.Map()
		same := x.Len() == y.Len()
		x.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			same = same && y.Has(k) && equalMessages(v.Message(), y.Get(k).Message(), depth)
			return same
		})
		return same
	case fd.IsList():
		x, y := a.List(), b.List()
		same := x.Len() == y.Len()
		for i := 0; same && i < x.Len(); i++ {
			same = equalMessages(x.Get(i).Message(), y.Get(i).Message(), depth)
		}
		return same
	}
	return equalMessages(a.Message(), b.Message(), depth)
}

// equalAny opens two of one type whose bytes have one length.
func equalAny(a, b *anypb.Any, depth int) bool {
	switch {
	case a.GetTypeUrl() != b.GetTypeUrl() || len(a.GetValue()) != len(b.GetValue()):
		return false
	case bytes.Equal(a.GetValue(), b.GetValue()):
		return true
	case depth == maxOpened:
		return false
	}
	// P-10: of types that the program links.
	x, err := a.UnmarshalNew()
	if err != nil {
		return false
	}
	y, err := b.UnmarshalNew()
	return err == nil && equalMessages(x.ProtoReflect(), y.ProtoReflect(), depth+1)
}
