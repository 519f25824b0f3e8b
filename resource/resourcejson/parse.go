package resourcejson

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// ParseAny reads what [Options.Any] has written, and what [Unknown] has: also an Any
// whose message is not linked in, at any depth. An error may quote the text.
func ParseAny(text []byte) (*anypb.Any, error) {
	r := &opaque{Types: protoregistry.GlobalTypes}
	a := &anypb.Any{}
	o := protojson.UnmarshalOptions{Resolver: r, AllowPartial: true}
	err := o.Unmarshal(text, a)
	if err != nil {
		r.lists = true // of several entries
		if o.Unmarshal(text, a) == nil {
			err = nil
		}
	}
	if err != nil {
		if whole := payload(text); whole != nil {
			return whole, nil
		}
		return nil, err
	}
	if !r.used {
		return a, nil
	}
	return a, bare(a.ProtoReflect())
}

// Parse reads the JSON of a message, in which each Any whose message is not linked in is written as its
// bytes, as [Options.Message] does. Fields that are not known are left out. An error may
// quote the text.
func Parse(text []byte, m proto.Message) error {
	r := &opaque{Types: protoregistry.GlobalTypes}
	o := protojson.UnmarshalOptions{Resolver: r, AllowPartial: true, DiscardUnknown: true}
	if err := o.Unmarshal(text, m); err != nil || !r.used {
		return err
	}
	return bare(m.ProtoReflect())
}

// payload is an Any that is written as its bytes; nil if it is not. Those of a known type are not
// a message of that type.
func payload(text []byte) *anypb.Any {
	var fields map[string]json.RawMessage
	var it struct {
		Type  string `json:"@type"`
		Value []byte `json:"value"`
	}
	if json.Unmarshal(text, &fields) != nil || json.Unmarshal(text, &it) != nil || len(fields) != 2 || it.Type == "" || fields["value"] == nil {
		return nil
	}
	return &anypb.Any{TypeUrl: it.Type, Value: it.Value}
}

// opaque resolves types; one that is not known becomes a BytesValue, whose JSON in an Any is what
// is written of unknown types.
type opaque struct {
	*protoregistry.Types
	used  bool
	lists bool // list collections are read as messages with a field for many entries
}

func (o *opaque) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	if mt, err := o.Types.FindMessageByURL(url); err == nil {
		if many := listType(); o.lists && many != nil && isSingular(mt.Descriptor()) {
			return many, nil
		}
		return mt, nil
	}
	o.used = true
	return (&wrapperspb.BytesValue{}).ProtoReflect().Type(), nil
}

// bare takes the bytes of each Any of an unknown type out of its BytesValue.
func bare(m protoreflect.Message) (err error) {
	if a, ok := m.Interface().(*anypb.Any); ok {
		return bareAny(a)
	}
	each := func(v protoreflect.Value) bool {
		err = bare(v.Message())
		return err == nil
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			if fd.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { return each(v) })
			}
		case fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				if !each(v.List().Get(i)) {
					break
				}
			}
		default:
			each(v)
		}
		return err == nil
	})
	return err
}

func bareAny(a *anypb.Any) error {
	inner, err := UnmarshalAny(a)
	if err != nil {
		var b wrapperspb.BytesValue
		err := proto.Unmarshal(a.Value, &b)
		a.Value = b.GetValue()
		return err
	}
	if err := bare(inner.ProtoReflect()); err != nil {
		return err
	}
	a.Value, err = proto.MarshalOptions{AllowPartial: true, Deterministic: true}.Marshal(inner)
	return err
}
