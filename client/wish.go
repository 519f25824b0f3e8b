package client

import "github.com/xdswatch/xdswatch/resource"

// wish says how the events of a watch differ from those that the client makes: in the form of the value, or in
// the spelling of the name.
type wish struct {
	client          *Client
	form            form   // nil for that of the client
	canonical, name string // of what was asked for; the name as the program wrote it
}

// grant makes an event the program's own.
func (w *wish) grant(ev *Event[any]) {
	if ev.Name == w.canonical {
		// U-11: as the program wrote it.
		ev.Asked = w.name
	}
	w.client.give(ev, w.form)
}

// granting calls a handler with events as the program wishes.
type granting struct {
	caller
	wish
}

func (g *granting) call(ev Event[any]) {
	g.grant(&ev)
	g.caller.call(ev)
}

func (g *granting) callAll(r *round) {
	g.call(r.event)
	r.called()
}

// wishing gives a handler its events as the program wishes. Of a lazy kind a typed handler makes the
// form itself: see [Typed].
func (w wish) wishing(h caller, kind resource.AnyType) caller {
	if _, untyped := h.(Handler[any]); !untyped && decoderOf(kind) != nil {
		w.form = nil
	}
	if w.form == nil && w.name == w.canonical {
		return h
	}
	return &granting{h, w}
}

// wishingAll is wishing for batches, whose events are their handler's own.
func (w wish) wishingAll(h BatchHandler[any]) BatchHandler[any] {
	if w.form == nil && w.name == w.canonical {
		return h
	}
	return func(b Batch[any]) {
		for i := range b.Events {
			w.grant(&b.Events[i])
		}
		h(b)
	}
}
