package client

import "github.com/xdswatch/xdswatch/resource"

// form gives a value to a watch in the form that the watch asked for; nil if it is that already.
type form func(value any, raw []byte) (any, error)

// holder makes a lazy value of a decoded one.
type holder interface {
	Holding(value any, raw []byte) any
}

// give puts the value of an event into a form. A value that was accepted before the program
// wanted it decoded may turn out to be unusable.
func (c *Client) give(ev *Event[any], f form) {
	if f == nil || ev.Kind != EventUpdated {
		return
	}
	value, err := f(ev.Value, ev.Raw)
	if ev.Value = value; err != nil {
		ev.Kind, ev.Value, ev.Err = EventFailed, nil, c.rejected(ev, err)
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
