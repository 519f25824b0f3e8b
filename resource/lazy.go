package resource

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/xdswatch/xdswatch/internal/redact"
)

// Lazy is a resource whose bytes are known to be a message of its type, and that is decoded when
// it is first read; [LazyOf] makes a type with such values. It is safe for concurrent use.
type Lazy[T proto.Message] struct {
	typ *Type[T]
	src Source
	raw []byte // shared with the client, never changed

	once  sync.Once
	value T
	err   error
}

// LazyOf derives a type that builds no messages: it accepts a resource by a walk over its bytes,
// and t decodes it when [Lazy.Value] is first called. It is made for programs that hold many
// resources and read few: relays, stores, balancers of a large configuration.
//
// The client refuses exactly what proto.Unmarshal refuses: bytes that are no message of the type,
// and strings that are not valid UTF-8. Whatever else t refuses comes as the error of Value, and
// the server hears nothing of it: validation rules (PGV), and checks of t itself and of [With].
// A resource with other bytes is a change, also where the bytes mean the same (fields or map
// entries in another order). Guards get values of either form: see [Decoded].
//
// The derived type has the URL and the options of t. A program may use both on one client, say
// watch all lazily and make a view: they share one subscription and the bytes, and each watch gets
// its form. From then on the client decodes each resource of the type and refuses what t refuses,
// and a lazy value has the same message as t's. LazyOf panics if t is nil or is not a type of the messages T.
func LazyOf[T proto.Message](t *Type[T]) *Type[*Lazy[T]] {
	if t == nil || t.decode == nil {
		panic("xds: resource.LazyOf: the type is nil")
	}
	var zero T
	mt := zero.ProtoReflect().Type()
	name := mt.Descriptor().FullName()
	if t.url != TypePrefix+string(name) {
		panic(fmt.Sprintf("xds: resource.LazyOf: %s is not the type of %s", t.url, name))
	}
	compiled := sync.OnceValue(func() *layout {
		return newLayout(mt.Descriptor(), map[protoreflect.FullName]*layout{})
	})
	return &Type[*Lazy[T]]{url: t.url, options: t.options, plain: t, lazily: (*Lazy[T])(nil).Holding, decode: func(src Source, b []byte) (*Lazy[T], error) {
		// U-19: what the walk is not sure of, protobuf itself decides.
		if !compiled().accepts(b, maxDepth) {
			if err := unmarshal(b, mt.New().Interface()); err != nil {
				return nil, err
			}
		}
		return &Lazy[T]{typ: t, src: src, raw: b}, nil
	}}
}

// Value is the decoded resource, or why it cannot be used: what the type's decoding, its
// validation rules or its checks say, or that they panicked. The first call decodes, and others
// wait for it meanwhile; all get the same value, which is shared and read only.
func (l *Lazy[T]) Value() (T, error) {
	l.once.Do(func() {
		defer func() {
			if p := recover(); p != nil {
				l.err = fmt.Errorf("the decoder panicked: %s", redact.Panic(p))
			}
		}()
		l.value, l.err = l.typ.decode(l.src, l.raw)
	})
	return l.value, l.err
}

// Holding is a lazy value of a message that is decoded already, and its bytes; any other value is
// returned as it is. The client calls it where a program watches the type decoded too. It does not
// look at its receiver, which may be nil.
func (*Lazy[T]) Holding(value any, raw []byte) any {
	msg, ok := value.(T)
	if !ok {
		return value
	}
	l := &Lazy[T]{raw: raw, value: msg}
	l.once.Do(func() {}) // it is decoded
	return l
}

func (l *Lazy[T]) decoded() (any, error) { return l.Value() }

// Decoded is a value without its lazy form: what [Lazy.Value] returns, and any other value as it is.
// It is for code that gets values of a type whichever way the program watches it, as guards do.
func Decoded(value any) (any, error) {
	if l, ok := value.(interface{ decoded() (any, error) }); ok {
		return l.decoded()
	}
	return value, nil
}

// Plain is the type that decodes the values of a type by [LazyOf], and what makes such a value of a
// message of it; both are nil of another type.
func (t *Type[T]) Plain() (AnyType, func(message any, raw []byte) any) { return t.plain, t.lazily }

// Format implements [fmt.Formatter]: it does not print the bytes or the value, since they may be a Secret's.
func (l *Lazy[T]) Format(s fmt.State, _ rune) {
	if l == nil {
		io.WriteString(s, "no lazy resource")
		return
	}
	fmt.Fprintf(s, "lazy %T of %d bytes", l.value, len(l.raw))
}

// MarshalJSON writes what Format prints: a program that wants the value as JSON writes what [Lazy.Value] returns.
func (l *Lazy[T]) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(l)) }

// Raw is the resource as received; shared, read only.
func (l *Lazy[T]) Raw() []byte { return l.raw }
