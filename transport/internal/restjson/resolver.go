package restjson

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/xdswatch/xdswatch/internal/apiv2"
)

// Resolver finds the types of messages. It is safe for concurrent use.
type Resolver interface {
	protoregistry.MessageTypeResolver
	protoregistry.ExtensionTypeResolver
}

// V2 finds what Response does with types, which may be nil, and resources of version 2 as
// those of version 3.
func V2(types Resolver) Resolver { return apiv2.Types{Resolver: known{types}} }

// known finds what own knows, if it is not nil, and then what the program links.
type known struct{ own Resolver }

func (k known) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	return find(k, func(r Resolver) (protoreflect.MessageType, error) { return r.FindMessageByName(name) })
}

func (k known) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	return find(k, func(r Resolver) (protoreflect.MessageType, error) { return r.FindMessageByURL(url) })
}

func (k known) FindExtensionByName(name protoreflect.FullName) (protoreflect.ExtensionType, error) {
	return find(k, func(r Resolver) (protoreflect.ExtensionType, error) { return r.FindExtensionByName(name) })
}

func (k known) FindExtensionByNumber(message protoreflect.FullName, n protoreflect.FieldNumber) (protoreflect.ExtensionType, error) {
	return find(k, func(r Resolver) (protoreflect.ExtensionType, error) { return r.FindExtensionByNumber(message, n) })
}

func find[T any](k known, in func(Resolver) (T, error)) (T, error) {
	if k.own != nil {
		if t, err := in(k.own); err == nil {
			return t, nil
		}
	}
	return in(protoregistry.GlobalTypes)
}

// lenient takes each type that is not known for one without fields, so that with unknown
// fields discarded any message of it can be read.
type lenient struct{ known }

func (l lenient) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	t, err := l.known.FindMessageByURL(url)
	if err == protoregistry.NotFound {
		return (*corev3.AggregatedConfigSource)(nil).ProtoReflect().Type(), nil
	}
	return t, err
}
