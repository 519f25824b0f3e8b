package client

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// maxHops is how many locators, redirects and alternatives, the client follows from the name
// that the program asks for (xRFC TP1 sets no bound).
const maxHops = 8

// Errors of redirects, of kind [ErrorData].
var (
	// ErrRedirectLoop says that a redirect leads back to an earlier one.
	ErrRedirectLoop = errors.New("xds: the redirects go round in a ring")
	// ErrTooManyHops says that a name has more than eight redirects.
	ErrTooManyHops = errors.New("xds: there are too many redirects, one after the other")
)

// outlet is who hears what a follow has to tell, as an engine.Sink does.
type outlet interface {
	alive() bool
	hear(*Event[any]) (wantsFlush bool)
	Flush(last bool)
}

// follow serves one name with what its redirects and directives lead to (xRFC TP1). It is
// made when the first of them is met, and lives in the dispatcher of the name.
type follow struct {
	client    *Client
	kind      resource.AnyType
	inner     *inner
	out       outlet
	lane      int32
	asked     string
	view      *view
	authority string
	root      *hop

	// What was told.
	said    *Event[any] // the newest value, absence or failure; nil if none
	also    *Event[any] // the answer of an alternative that it speaks of
	by      *hop        // whose it was
	holds   bool        // it was a value, and nothing took it back
	trouble *Event[any] // with the value
}

// hop is one locator on the way from the name that was asked for. Each knows what is so
// there; what is told follows from all.
type hop struct {
	follow *follow
	from   *hop // nil of the root
	at     xdstp.Locator
	text   string         // of at without its alternative
	watch  *machine.Watch // nil if it is not the follow's own, or there is none
	server int
	gone   bool

	now     *Event[any]     // value, absence or failure; nil if none came, or a redirect
	to      *xdstp.Locator  // where the redirect leads that came in its place
	toText  string          // of to
	raw     []byte          // of the value or redirect
	layout  *listing.Layout // of the directory that an entry of is meant, kept for the next one
	trouble *Event[any]     // with the value or redirect

	next  *hop   // where the redirect leads
	ledTo string // the text of its locator
	alt   *hop   // the alternative, while it is used
}

// newFollow begins to follow a name that is known by a watch, which is the caller's to
// start and stop.
func (c *Client) newFollow(kind resource.AnyType, a asked, in *inner, out outlet) *follow {
	f := &follow{client: c, kind: kind, inner: in, out: out, lane: a.watch.Lane, asked: a.name, view: a.view}
	var l xdstp.Locator
	if a.at != nil {
		l = *a.at
	} else if n, err := xdstp.ParseReceived(a.name); err == nil {
		l.Name = n // only such names are redirected
	}
	f.authority = l.Name.Authority
	f.root = &hop{follow: f, at: l, text: listing.WithoutAlt(l).String(), server: c.sources.first(a.watch)}
	return f
}

// redirects says whether a notice brings a redirect.
func redirects(n *machine.Notice) bool {
	_, ok := n.Value.(*engine.Redirect)
	return ok
}

// Tell implements engine.Sink.
func (h *hop) Tell(n *machine.Notice) bool {
	if h.gone || !h.follow.out.alive() {
		return false
	}
	h.server = n.Server
	return h.follow.tell(h, h.follow.client.event(n))
}

// Flush implements engine.Sink.
func (h *hop) Flush(last bool) { h.follow.out.Flush(last) }

// tell takes what a hop's watch heard.
func (f *follow) tell(h *hop, ev *Event[any]) bool {
	switch ev.Kind {
	case EventUpdated:
		h.updated(ev)
	case EventDoesNotExist, EventFailed:
		h.lost(ev)
	case EventAmbientError:
		h.trouble = ev
	case EventRecovered:
		h.trouble = nil
	case EventSynced: // of collections
	}
	f.tend(f.root)
	return f.emit()
}

// lost takes an absence or a failure.
func (h *hop) lost(ev *Event[any]) {
	h.now, h.to, h.raw, h.trouble = ev, nil, nil, nil
	h.layout = nil
	if h.follow.by == h {
		h.follow.holds = false
	}
}

// updated takes a value, which may be a redirect, or a directory of which an entry is
// meant.
func (h *hop) updated(ev *Event[any]) {
	h.trouble = nil
	if name, ok := h.at.Entry(); ok {
		switch v := ev.Value.(type) {
		// ENTRY-1: an entry of the collection is meant.
		case listing.Directory:
			h.entry(ev, v, name)
			h.layout = v.Layout
			return
		case *engine.Redirect: // of the directory
			h.layout = nil
			own := *ev
			// ENTRY-1: the directive goes with the redirect.
			own.Value = &engine.Redirect{To: withEntry(v.To, h.at)}
			ev = &own
		}
	}
	h.value(ev)
}

func (h *hop) value(ev *Event[any]) {
	h.now, h.to, h.raw = ev, nil, ev.Raw
	if r, ok := ev.Value.(*engine.Redirect); ok {
		// REDIR-1: a locator is a redirect.
		h.now, h.to, h.toText = nil, &r.To, r.To.String()
	}
}

// entry takes the inline entry of a directory. An entry whose bytes are as before is no
// news; a bad one takes no good one away, as with resources (gRFC A88).
func (h *hop) entry(ev *Event[any], d listing.Directory, name string) {
	if i, err := d.Named(name); err == nil && i >= 0 && h.raw != nil {
		e := &d.Entries[i]
		if e.Err == nil && e.Redirects == (h.to != nil) && bytes.Equal(h.raw, e.Raw) {
			h.raw = e.Raw // so that the old directory is not kept
			return
		}
	}
	own := *ev
	err := fill(d, &own, name)
	switch {
	case err != nil:
		own.Err = h.follow.client.rejected(&own, err)
		if own.Kind = EventFailed; h.raw != nil && !h.follow.client.server(h.server).Features.FailOnDataErrors {
			own.Kind, h.trouble = EventAmbientError, &own
			return
		}
		h.lost(&own)
	case own.Kind == EventDoesNotExist:
		if h.now == nil || h.now.Kind != EventDoesNotExist {
			h.lost(&own)
		}
	default:
		h.value(&own)
	}
}

// fill makes the event of a directory that of its inline entry: a value, an absence, or the
// error why the entry cannot be used.
func fill(d listing.Directory, ev *Event[any], name string) error {
	i, err := d.Named(name)
	ev.Value, ev.Raw, ev.Attributes = nil, nil, nil // those of the directory
	switch {
	case err != nil:
		return err
	case i < 0:
		ev.Kind, ev.Reason, ev.Version = EventDoesNotExist, ReasonNotFound, ""
		return nil
	}
	return fillAt(d, ev, i)
}

// fillAt makes an event that of an inline entry.
func fillAt(d listing.Directory, ev *Event[any], i int) (err error) {
	e := &d.Entries[i]
	if ev.Value, err = d.Value(i); err != nil {
		return err
	}
	if ev.Raw = e.Raw; e.Version != "" {
		ev.Version = e.Version
	}
	return nil
}

// tend has each hop lead to where it is to lead now.
func (f *follow) tend(h *hop) {
	switch {
	case h.to == nil:
		f.drop(&h.next)
	case h.next == nil || h.ledTo != h.toText:
		f.drop(&h.next)
		h.next, h.ledTo = f.lead(h, *h.to), h.toText
	}
	if h.next != nil {
		f.tend(h.next)
	}
	alt := h.at.Alt()
	if alt == nil {
		return
	}
	switch o := h.primary(); {
	case answered(o.ev):
		f.drop(&h.alt)
	// ALT-1: the first cannot be reached, and there is no value.
	case h.alt == nil && unreachable(o.ev) && !f.holds:
		h.alt = f.lead(h, *alt)
	}
	if h.alt != nil {
		f.tend(h.alt)
	}
}

// lead makes the hop to a locator. Where that cannot be followed the hop is one that failed.
func (f *follow) lead(from *hop, l xdstp.Locator) *hop {
	h := &hop{follow: f, from: from, at: l, text: listing.WithoutAlt(l).String(), server: from.server}
	var trail []string
	for a := from; a != nil; a = a.from {
		trail = append(trail, a.text)
	}
	switch {
	// REDIR-3: no loops.
	case slices.Contains(trail, h.text):
		return h.fail(ErrorData, fmt.Errorf("%w: %s", ErrRedirectLoop, h.trail(trail)))
	// REDIR-3: no more than so many.
	case len(trail) > maxHops:
		return h.fail(ErrorData, fmt.Errorf("%w: %s", ErrTooManyHops, h.trail(trail)))
	}
	a, err := f.client.aim(f.kind, l, f.view, new(machine.Watch))
	if err != nil {
		kind := ErrorConfig
		if wrongName(err) {
			kind = ErrorData
		}
		return h.fail(kind, fmt.Errorf("the locator %q cannot be followed: %w", h.text, cause(err)))
	}
	if from.from != nil || from.to != nil { // else it is the program's own alternative
		if err := f.inner.borrow(f.view, from.at, l, a.watch); err != nil {
			return h.fail(ErrorData, fmt.Errorf("the locator %q is not followed: %w", h.text, err))
		}
	}
	f.client.invite(a.watch, f.lane)
	a.watch.Owner, h.watch, h.server = h, a.watch, f.client.sources.first(a.watch)
	f.inner.start(h.watch)
	return h
}

// fail makes the hop one that cannot be followed.
func (h *hop) fail(kind ErrorKind, err error) *hop {
	c := h.follow.client
	server := c.server(h.server).URI
	h.now = &Event[any]{Kind: EventFailed, Server: server, Err: &ResourceError{
		Kind: kind, Type: h.follow.kind.TypeURL(), Name: h.follow.asked, Server: server, NodeID: c.node, Err: err,
	}}
	return h
}

// trail writes the way to the hop, given the hops before it from the last to the root.
func (h *hop) trail(before []string) string {
	var b strings.Builder
	for _, text := range slices.Backward(before) {
		fmt.Fprintf(&b, "%q to ", text)
	}
	return b.String() + strconv.Quote(h.text)
}

// drop leaves a hop and all that it leads to.
func (f *follow) drop(at **hop) {
	h := *at
	if h == nil {
		return
	}
	h.gone = true
	if h.watch != nil {
		f.inner.stop(h.watch)
	}
	f.drop(&h.next)
	f.drop(&h.alt)
	*at = nil
}

// end leaves everything, of a follow whose owner goes on.
func (f *follow) end() {
	root := f.root
	f.drop(&root)
}
