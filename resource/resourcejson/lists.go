package resourcejson

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
)

// isSingular says whether a message is a list collection (xRFC TP1) whose field is for one entry, as
// most of Envoy's are by mistake. What is on the wire are many.
func isSingular(d protoreflect.MessageDescriptor) bool {
	fd := d.Fields().ByName("entries")
	return fd != nil && strings.HasSuffix(string(d.Name()), "Collection") && !fd.IsList() && fd.Message() != nil && fd.Message().FullName() == "xds.core.v3.CollectionEntry"
}

// listType is a message that is the same on the wire, with a field for many entries; nil if it is not
// linked in.
func listType() protoreflect.MessageType {
	mt, _ := protoregistry.GlobalTypes.FindMessageByName("envoy.config.endpoint.v3.LbEndpointCollection")
	return mt
}

// UnmarshalAny returns the message in an Any, whose required fields may be missing. A list collection
// (xRFC TP1) of several entries has them all: Envoy's messages have a field for one by mistake, and
// such a list is an envoy.config.endpoint.v3.LbEndpointCollection, which is the same on the wire, if
// that is linked in. The error is that of [anypb.UnmarshalNew].
func UnmarshalAny(a *anypb.Any) (proto.Message, error) {
	o := proto.UnmarshalOptions{AllowPartial: true, Resolver: protoregistry.GlobalTypes}
	m, err := anypb.UnmarshalNew(a, o)
	if err != nil || !isSingular(m.ProtoReflect().Descriptor()) {
		return m, err
	}
	mt := listType()
	if mt == nil {
		return m, nil
	}
	all := mt.New()
	if err := o.Unmarshal(a.GetValue(), all.Interface()); err != nil || all.Get(mt.Descriptor().Fields().ByName("entries")).List().Len() < 2 {
		return m, err
	}
	return all.Interface(), nil
}
