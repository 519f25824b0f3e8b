package client

import "fmt"

// outcome is what is so at a hop and where it leads.
type outcome struct {
	ev      *Event[any] // value, absence or failure; nil if there is none yet
	by      *hop        // whose it is
	trouble *Event[any] // with the value
	also    *Event[any] // what an alternative said that is of no use
}

// primary is the outcome without the alternative.
func (h *hop) primary() outcome {
	if h.next == nil {
		return outcome{ev: h.now, by: h, trouble: h.trouble}
	}
	o := h.next.outcome()
	if o.trouble == nil {
		o.trouble = h.trouble
	}
	return o
}

// outcome is that of the alternative only if that has a value: it is used because of
// trouble on the way to the primary, which stays what is told otherwise.
func (h *hop) outcome() outcome {
	o := h.primary()
	if h.alt == nil {
		return o
	}
	a := h.alt.outcome()
	if a.ev == nil || a.ev.Kind != EventUpdated {
		o.also = a.ev
		return o
	}
	if a.trouble == nil {
		a.trouble = o.ev
	}
	return a
}

// unreachable says that an event tells of a server that cannot be reached, and not of one
// that has not answered in time.
func unreachable(ev *Event[any]) bool {
	if ev == nil || ev.Kind != EventFailed {
		return false
	}
	re, ok := ev.Err.(*ResourceError)
	return ok && (re.Kind == ErrorConnection || re.Kind == ErrorStream)
}

func answered(ev *Event[any]) bool { return ev != nil && answers(ev) }

// emit tells what is new. A value whose place is taken by something that has not answered
// yet stays good.
func (f *follow) emit() (wantsFlush bool) {
	o := f.root.outcome()
	stays := f.holds && !answered(o.ev) && !answered(o.also) // a value beside also was the alternative's
	if o.ev != nil && !stays && (o.ev != f.said || o.also != f.also) {
		f.said, f.also, f.by, f.trouble = o.ev, o.also, o.by, nil
		f.holds = o.ev.Kind == EventUpdated
		wantsFlush = f.out.hear(f.event(o.ev, o.also))
	}
	if !f.holds || !f.out.alive() {
		return wantsFlush
	}
	trouble := o.trouble
	if stays && o.ev != nil {
		trouble = o.ev
	}
	if trouble == f.trouble {
		return wantsFlush
	}
	f.trouble = trouble
	kind, heard := EventAmbientError, trouble
	if trouble == nil {
		kind, heard = EventRecovered, &Event[any]{Server: f.said.Server, Version: f.said.Version, Stale: f.said.Stale}
	}
	ev := f.event(heard, nil)
	ev.Kind = kind
	return f.out.hear(ev) || wantsFlush
}

// event makes what is told of what some hop heard.
func (f *follow) event(heard, also *Event[any]) *Event[any] {
	ev := *heard
	// REDIR-2: under the name that was watched.
	ev.Type, ev.Name, ev.Asked, ev.Authority = f.kind.TypeURL(), f.asked, f.asked, f.authority
	if f.by != f.root {
		ev.Locator = f.by.text
	}
	if re, ok := ev.Err.(*ResourceError); ok {
		ev.Err = f.explained(re, also)
	}
	return &ev
}

// explained is an error as one of the name that was asked for: it says which other it is
// of, and what became of the alternative.
func (f *follow) explained(re *ResourceError, also *Event[any]) error {
	own := *re
	own.Type, own.Name = f.kind.TypeURL(), f.asked
	if re.Name != f.asked && re.Name != withoutDirectives(f.root.at).String() {
		own.Err = fmt.Errorf("at %q: %w", re.Name, re.Err)
	}
	switch {
	case also == nil:
	case also.Kind == EventDoesNotExist:
		own.Err = fmt.Errorf("%w; the alternative %q does not exist (%s)", own.Err, also.Name, also.Reason)
	default:
		own.Err = fmt.Errorf("%w; the alternative: %w", own.Err, also.Err)
	}
	return &own
}
