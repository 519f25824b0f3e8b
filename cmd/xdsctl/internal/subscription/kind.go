package subscription

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/wellknown"
)

// Kinds makes the resource types that subscriptions name. A client wants the same value
// for the same type each time, so there is one Kinds for each. It is not safe for
// concurrent use.
type Kinds struct{ made map[string]resource.AnyType }

// Of gives the type of a type URL. A well-known one is itself; of another whose message is
// linked in, values are that message; of any other they are nil, and the bytes of the
// event are all there is.
func (k *Kinds) Of(typeURL string) resource.AnyType {
	if e, ok := wellknown.ByTypeURL(typeURL); ok {
		return e.Kind
	}
	if kind := k.made[typeURL]; kind != nil {
		return kind
	}
	if k.made == nil {
		k.made = map[string]resource.AnyType{}
	}
	if !strings.HasPrefix(typeURL, resource.TypePrefix) {
		k.made[typeURL] = untold(typeURL)
	} else {
		k.made[typeURL] = newKind(typeURL)
	}
	return k.made[typeURL]
}

// untold is the type of a name that does not parse and so does not tell it: the client says what
// is wrong with the name.
type untold string

func (u untold) TypeURL() string                           { return string(u) }
func (untold) FullState() bool                             { return false }
func (untold) NameField() protowire.Number                 { return 0 }
func (untold) Methods() (sotw, delta string)               { return "", "" }
func (untold) Decode(resource.Source, []byte) (any, error) { return nil, nil }

// usualNameField is the number of the name in nearly every resource of Envoy's API.
const usualNameField = 1

func newKind(typeURL string) resource.AnyType {
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(typeURL)
	if err != nil {
		o := resource.Options{NameField: usualNameField, NameGuessed: true}
		return resource.Custom(typeURL, o, func(resource.Source, []byte) (proto.Message, error) { return nil, nil })
	}
	return resource.Message(mt, resource.Options{NameField: nameField(mt.Descriptor())})
}

// nameField finds the field that holds the name: 0 if there is none, so that the wrapper
// has to name the resource.
func nameField(d protoreflect.MessageDescriptor) protowire.Number {
	f := d.Fields().ByName("name")
	if f == nil || f.Kind() != protoreflect.StringKind || f.IsList() {
		return 0
	}
	return f.Number()
}
