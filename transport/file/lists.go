package file

import (
	"sync"

	_ "github.com/cncf/xds/go/xds/core/v3" // which has the entries
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// read has something read that is written in words, with list collections as lists; and if
// one cannot be, with the types as they are. The error is that of the first.
func (c *Config) read(read func(Resolver) error) error {
	l := &lists{Resolver: c.Types}
	err := read(l)
	if err != nil && l.found && read(c.Types) == nil {
		return nil
	}
	return err
}

// lists finds each list collection as a message with any number of entries. On the wire they
// are all alike (xRFC TP1), but some of Envoy's messages have room for one entry only.
type lists struct {
	Resolver
	found bool // one was asked for
}

func (l *lists) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	t, err := l.Resolver.FindMessageByURL(url)
	if !isCollection(url) || err == nil && !hasEntries(t.Descriptor()) {
		return t, err
	}
	l.found = true
	return listType()
}

// hasEntries says that a message is that of a list collection.
func hasEntries(m protoreflect.MessageDescriptor) bool {
	f := m.Fields().ByNumber(1)
	return f != nil && f.Message() != nil && f.Message().FullName() == "xds.core.v3.CollectionEntry"
}

var listType = sync.OnceValues(func() (protoreflect.MessageType, error) {
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name:       proto.String("xdswatch/list.proto"),
		Syntax:     proto.String("proto3"),
		Dependency: []string{"xds/core/v3/collection_entry.proto"},
		MessageType: []*descriptorpb.DescriptorProto{{
			Name: proto.String("ListCollection"),
			Field: []*descriptorpb.FieldDescriptorProto{{
				Name: proto.String("entries"), Number: proto.Int32(1),
				Label:    descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum(),
				Type:     descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(),
				TypeName: proto.String(".xds.core.v3.CollectionEntry"),
			}},
		}},
	}, protoregistry.GlobalFiles)
	if err != nil {
		return nil, err
	}
	return dynamicpb.NewMessageType(file.Messages().Get(0)), nil
})
