package client

import (
	"sync/atomic"

	"github.com/xdswatch/xdswatch/resource"
)

// form gives a value to a watch in the form that the watch asked for; nil if it is that already.
type form func(value any, raw []byte) (any, error)

// holder makes a lazy value of a decoded one.
type holder interface {
	Holding(value any, raw []byte) any
}

// serving is the kind that the client uses for a watch of a kind, and the form of the watch's
// values. A type URL has one kind, whose values the client makes; a type and its lazy form are
// two forms of it. Whether two kinds are in conflict is for typeOf to say.
func (k *kinds) serving(kind resource.AnyType) (resource.AnyType, form) {
	plain := decoderOf(kind)
	// U-19: lazy and plain watches of a type share its subscription and its bytes.
	switch first := k.owned(kind).Owner.(resource.AnyType).(type) {
	case *forms:
		switch first.plain {
		case plain:
			return first, first.lazily
		case kind:
			first.decodes.Store(true)
			return first, plainly
		}
	default:
		if first == plain {
			return first, lazily(kind)
		}
	}
	return kind, nil
}

// ownerOf is the kind that the client uses for a type URL, of which the program used this kind first.
func ownerOf(kind resource.AnyType) resource.AnyType {
	if plain := decoderOf(kind); plain != nil {
		return &forms{AnyType: kind, plain: plain, lazily: lazily(kind)}
	}
	return kind
}

// plainly is the form of a plain watch.
func plainly(value any, _ []byte) (any, error) { return resource.Decoded(value) }

// forms is the kind of a type URL that the program first watched lazily ([resource.LazyOf]). The
// client only walks over the bytes until the program wants the type decoded too; from then on
// the plain type decides what is refused, for all.
type forms struct {
	resource.AnyType // the lazy one
	plain            resource.AnyType
	lazily           form
	decodes          atomic.Bool // the program wants both
}

// Decode implements [resource.AnyType].
func (f *forms) Decode(src resource.Source, b []byte) (any, error) {
	if f.decodes.Load() {
		return f.plain.Decode(src, b)
	}
	return f.AnyType.Decode(src, b)
}

// lazyKind is a [resource.Type]. Plain returns nils unless the type was made by [resource.LazyOf].
type lazyKind interface {
	Plain() (of resource.AnyType, holding func(value any, raw []byte) any)
}

// decoderOf is the type that decodes the values of a lazy one; nil of another.
func decoderOf(kind resource.AnyType) (plain resource.AnyType) {
	if l, ok := kind.(lazyKind); ok {
		plain, _ = l.Plain()
	}
	return plain
}

// lazily is the form of a lazy watch.
func lazily(kind resource.AnyType) form {
	_, holding := kind.(lazyKind).Plain()
	return func(value any, raw []byte) (any, error) { return holding(value, raw), nil }
}

// give puts the value of an event into a form. A value that was accepted before the program
// wanted it decoded may turn out to be unusable.
func (c *Client) give(ev *Event[any], f form) {
	if f == nil || ev.Kind != EventUpdated {
		return
	}
	value, err := f(ev.Value, ev.Raw)
	if ev.Value = value; err != nil {
		ev.Kind, ev.Value, ev.Err = EventFailed, nil, &ResourceError{
			Kind: ErrorRejected, Type: ev.Type, Name: ev.Name, Server: ev.Server, NodeID: c.NodeID(), Version: ev.Version, Err: err,
		}
	}
}

// granting calls the handler of a watch of one resource with events as the program wishes: in the form of the
// value, and with the name as the program wrote it.
type granting struct {
	caller
	client *Client
	form   form // nil for that of the client
	name   string
}

func (g *granting) call(ev Event[any]) {
	// U-11: as the program wrote it.
	ev.Asked = g.name
	g.client.give(&ev, g.form)
	g.caller.call(ev)
}

func (g *granting) callAll(r *round) {
	g.call(r.event)
	r.called()
}

// granting gives a handler its events in a form, nil for that of the client, and under a name. Of a lazy kind a
// typed handler makes the form itself: see [Typed].
func (c *Client) granting(h caller, kind resource.AnyType, f form, canonical, name string) caller {
	if _, untyped := h.(Handler[any]); !untyped && decoderOf(kind) != nil {
		f = nil
	}
	if f == nil && name == canonical {
		return h
	}
	return &granting{h, c, f, name}
}
