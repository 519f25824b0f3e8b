// Package resource describes xDS resource types: the type URL, the message field with the name,
// how bytes become a value and whether a state-of-the-world response of the type holds all
// resources.
//
// The well-known Envoy types are in packages of their own (cds, eds, lds, …), so that a program
// links only the protos it uses. A program makes a type of its own with [Proto] for a protobuf
// message, or with [Custom] for anything else.
package resource

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/xdswatch/xdswatch/internal/protosize"
	"github.com/xdswatch/xdswatch/internal/redact"
)

// TypePrefix precedes the message name in a type URL.
const TypePrefix = "type.googleapis.com/"

// AnyType is the untyped form of a [Type]: what the client needs to know of a resource type.
// Implementations are immutable, comparable and safe for concurrent use. A client has one for
// each type URL, and takes equal ones for the same.
type AnyType interface {
	// TypeURL is TypePrefix followed by the full name of the message.
	TypeURL() string
	// FullState says whether a state-of-the-world response of this type holds every resource
	// that exists, so that a resource which is not in it is deleted. True for LDS and CDS only
	// (xDS protocol, "Deleting Resources").
	FullState() bool
	// NameField is the number of the string field that holds the resource's name, or 0 for a
	// type whose resources have their name only in the wrapper.
	NameField() protowire.Number
	// Methods are the full gRPC method names of the type's own streams, state of the world and
	// delta; empty if the type has none.
	Methods() (sotw, delta string)
	// Decode makes a value of the bytes of the Any, which the value may share: nobody changes
	// them. Several goroutines may call it at once. The caller turns a panic into an error.
	Decode(Source, []byte) (any, error)
}

// Source says which server sent a resource, and how to decode it.
type Source struct {
	// Server is the URI of the management server that sent the bytes. When another one says the same after a
	// fallback, what is decoded stays as it is; a watch that begins later gets it decoded as the new server's.
	Server   string
	Trusted  bool // the server has the feature trusted_xds_server (gRFC A81)
	Validate bool // run the message's own validation rules (PGV)
	// Bootstrap is the *bootstrap.Config of the client (gRFC A29: certificate providers); an
	// any, so that this package does not depend on that one.
	Bootstrap any
}

// Options describe a type; the zero value is a type whose resources have their name in the
// wrapper, that has no streams of its own and whose responses may be partial.
type Options struct {
	NameField   protowire.Number // of the string field with the name; 0 if it stands in the wrapper alone
	NameGuessed bool             // NameField is a guess: only plausible text there is a name
	FullState   bool             // a state-of-the-world response has all resources: one that it lacks was deleted
	SotWMethod  string           // "/package.Service/StreamThings"
	DeltaMethod string           // "/package.Service/DeltaThings"
}

// Type is a resource type whose values are of type T. The zero value is not usable.
type Type[T any] struct {
	url     string
	options Options
	decode  func(Source, []byte) (T, error)
	plain   AnyType               // of a lazy type, what decodes its values; else nil
	lazily  func(any, []byte) any // of a lazy type, a value of what is decoded already
}

// Custom makes a type of any Go type. The name field is still read from the wire form, so if
// NameField is set the bytes must be a protobuf message in which that field is a string. The value
// may share the bytes, which nobody may change; several goroutines may call decode at once. If it
// returns an error the client refuses the resource; the text goes into logs and to the server, so
// it must quote nothing that is secret. The client reports a panic by its value's type and its
// place. decode must return: other goroutines wait for it, on one or two processors all, and handlers
// where a watch came late.
//
// It panics if the URL is not TypePrefix and a name, if the number of the name field is invalid,
// or if decode is nil: a program makes its types once, when it starts.
func Custom[T any](typeURL string, o Options, decode func(Source, []byte) (T, error)) *Type[T] {
	name, ok := strings.CutPrefix(typeURL, TypePrefix)
	switch {
	// TYPE-1, U-13: a type that cannot work fails where it is made.
	case !ok || name == "":
		panic(fmt.Sprintf("xds: resource.Custom: the type URL %q is not %q and the full name of a message", typeURL, TypePrefix))
	case o.NameField < 0 || o.NameField > protowire.MaxValidNumber:
		panic(fmt.Sprintf("xds: resource.Custom: %s: %d is not the number of a field", typeURL, o.NameField))
	case decode == nil:
		panic(fmt.Sprintf("xds: resource.Custom: %s: the decoder is nil", typeURL))
	}
	return &Type[T]{url: typeURL, options: o, decode: decode}
}

// Proto makes a type of a protobuf message; T is the pointer to the generated struct. Unknown
// fields are kept and ignored. A resource that would take more than 128 MiB of memory once it is
// decoded, or eight times its size, is refused. If the message has a generated Validate method and the source
// asks for validation, the client calls it (through an interface, so builds with the tag
// disable_pgv work). Errors name fields and rules, and quote no values.
//
// It panics if NameField is not the number of a string field of the message: no resource would have a name but where its
// server wraps it.
func Proto[T proto.Message](o Options) *Type[T] {
	var zero T
	return Map(Message(zero.ProtoReflect().Type(), o), func(m proto.Message) (T, error) { return m.(T), nil })
}

// Message is [Proto] for a message that a program does not name but finds, as in
// protoregistry.GlobalTypes. A client has one type for each URL, so a program makes it once.
func Message(mt protoreflect.MessageType, o Options) *Type[proto.Message] {
	name := mt.Descriptor().FullName()
	t := Custom(TypePrefix+string(name), o, func(src Source, b []byte) (proto.Message, error) {
		msg := mt.New().Interface()
		if err := unmarshal(b, msg); err != nil {
			return nil, err
		}
		if src.Validate {
			// TYPE-7: of generated rules too.
			if err := validate(msg); err != nil {
				return nil, fmt.Errorf("not a valid %s: %w", name, err)
			}
		}
		return msg, nil
	})
	f := mt.Descriptor().Fields().ByNumber(o.NameField)
	if named := f != nil && f.Kind() == protoreflect.StringKind && !f.IsList(); !named && o.NameField != 0 && !o.NameGuessed {
		panic(fmt.Sprintf("xds: resource.Proto: field %d of %s is no string, which the name of a resource is", o.NameField, name))
	}
	return t
}

// With derives a type that also refuses what a program cannot use: if check returns an error the
// client refuses the resource, as for an error of a decoder, and the text goes to the server.
// Several goroutines at once may call check, with each new value, and it must not change the
// value. The derived type has the URL and the options of t; a client has one type for each URL,
// so make it once and share the variable. With panics if t or check is nil.
func With[T any](t *Type[T], check func(T) error) *Type[T] {
	if check == nil {
		panic("xds: resource.With: the check is nil")
	}
	// U-18: a type is refined.
	return Map(t, func(v T) (T, error) { return v, check(v) })
}

// Map derives a type whose values convert makes from those of t; if convert returns an error the
// client refuses the resource. For the rest see [With].
func Map[T, U any](t *Type[T], convert func(T) (U, error)) *Type[U] {
	switch {
	case t == nil || t.decode == nil:
		panic("xds: resource.Map: the type is nil")
	case convert == nil:
		panic("xds: resource.Map: the conversion is nil")
	}
	return &Type[U]{url: t.url, options: t.options, decode: func(src Source, b []byte) (u U, err error) {
		v, err := t.decode(src, b)
		if err != nil {
			return u, err
		}
		// U-18: a type is refined.
		return convert(v)
	}}
}

func unmarshal(b []byte, msg proto.Message) error {
	if err := protosize.Check(b, msg.ProtoReflect().Descriptor()); err != nil {
		return err
	}
	if err := proto.Unmarshal(b, msg); err != nil {
		return fmt.Errorf("not a message of type %s: %w", msg.ProtoReflect().Descriptor().FullName(), err)
	}
	return nil
}

func validate(msg proto.Message) error {
	if v, ok := msg.(interface{ Validate() error }); ok {
		// H-3: no text quotes a value.
		return redact.Validation(v.Validate())
	}
	return nil
}

// TypeURL implements [AnyType].
func (t *Type[T]) TypeURL() string { return t.url }

// NameGuessed says whether the name field is a guess, so that its content is a name only if it
// is printable text of a usual length.
func (t *Type[T]) NameGuessed() bool { return t.options.NameGuessed }

// FullState implements [AnyType].
func (t *Type[T]) FullState() bool { return t.options.FullState }

// NameField implements [AnyType].
func (t *Type[T]) NameField() protowire.Number { return t.options.NameField }

// Methods implements [AnyType].
func (t *Type[T]) Methods() (sotw, delta string) {
	return t.options.SotWMethod, t.options.DeltaMethod
}

// Decode implements [AnyType].
func (t *Type[T]) Decode(src Source, b []byte) (any, error) { return t.decode(src, b) }
