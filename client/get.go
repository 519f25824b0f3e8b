package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/follow"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/ondemand"
	"github.com/xdswatch/xdswatch/resource"
)

// Errors of [Client.Get].
var (
	// ErrDoesNotExist says that the server has no such resource.
	ErrDoesNotExist = errors.New("xds: the resource does not exist")
	// ErrTooManyNames says that Get keeps as many names as it may (Config.GetMaxNames), and can
	// drop none: callers wait for each, or it is held while its server cannot be reached.
	ErrTooManyNames = ondemand.ErrTooMany
	// ErrInHandler says that a method would have to wait inside a handler, of this client or
	// another: the events that it waits for may wait for the end of that handler.
	ErrInHandler = errors.New("xds: it cannot be waited for inside a handler")
)

// getKey is a name that Get looks up.
type getKey struct {
	typeURL, name string
	source        int32 // of the machine
}

// lookup is a name that is looked up, or was a moment ago. Concurrent callers share it.
type lookup struct {
	watch *Watch

	mu     sync.Mutex
	answer Event[any] // the last one that was an answer; Kind 0 before
	cut    bool       // there is a value, and trouble with the way to its server
}

// irreplaceable makes a function that says whether a lookup has a value that its server cannot give again now.
func (c *Client) irreplaceable() func(*lookup) bool {
	type way struct {
		source  int32
		typeURL string // a server may have a stream for each type
	}
	works := map[way]bool{}
	return func(l *lookup) bool {
		l.mu.Lock()
		held, cut := l.answer.Kind == EventUpdated, l.cut
		l.mu.Unlock()
		if !held || cut {
			return held
		}
		w := &l.watch.watch
		at := way{w.Source, w.Type.URL}
		if _, known := works[at]; !known {
			c.engine.Ask(func(m *machine.Machine) { works[at] = m.Works(int(w.Source), w.Type.URL) })
		}
		return !works[at]
	}
}

// Get returns a resource: at once if the client holds it, else when the server has answered. A
// lost connection does not end the call. Callers of the same name share one subscription, which
// the client keeps for Config.GetIdle after its last use, and for as long as it has a value and
// its server cannot be reached. Of a name that the client holds for a watch alone, Get makes no subscription:
// each call waits for the client's loop and decodes the value anew. The client keeps at most Config.GetMaxNames names, and drops the
// longest idle one first.
//
// Errors: those of [Client.Watch]; an [ErrDoesNotExist] that says why; a [*ResourceError] if the
// server's resource cannot be used; [ErrTooManyNames]; [ErrInHandler] inside a handler of any
// client if this one holds no value; and a [*NotReadyError] when ctx ends.
func (c *Client) Get(ctx context.Context, kind resource.AnyType, name string, opts ...WatchOption) (Event[any], error) {
	v, err := c.check(ctx, kind, slices.Concat(opts, []WatchOption{InitialFetchTimeout(0)})) // its callers have contexts
	if err != nil {
		return Event[any]{}, err
	}
	kind, form := c.kinds.serving(kind)
	ev, err := c.get(ctx, kind, name, v)
	if err == nil {
		ev.Asked = name
		c.give(&ev, form)
		err = c.useless(&ev)
	}
	if err != nil {
		return Event[any]{}, err
	}
	return ev, nil
}

// get is the answer of Get, as the client decodes it.
func (c *Client) get(ctx context.Context, kind resource.AnyType, name string, v *view) (ev Event[any], err error) {
	w := &machine.Watch{}
	a, err := v.prepare(kind, name, false, w)
	if err != nil {
		return ev, err
	}
	key := getKey{a.TypeURL, a.Name, w.Source}
	if l, ok := c.gets.Touch(key); ok {
		if ev = l.known(); ev.Kind != 0 {
			return ev, nil
		}
	}
	// ONDEMAND-1: what is held is the answer.
	if ev, ok := v.held(a, w); ok {
		return ev, nil
	}
	if engine.InHandler() {
		return ev, fmt.Errorf("%w: %s is not held", ErrInHandler, textOf(key.typeURL, key.name))
	}
	item, err := c.gets.Enter(key, func() (*lookup, error) { return v.lookUp(a, w) })
	switch {
	case err == ErrTooManyNames:
		return ev, fmt.Errorf("%w: %s", err, textOf(key.typeURL, key.name))
	case err != nil:
		return ev, err
	}
	defer c.gets.Leave(item, false)
	err = item.Value.watch.Ready(ctx)
	return item.Value.known(), err
}

// lookUp begins to watch a name for who looks it up.
func (v *view) lookUp(a asked, w *machine.Watch) (l *lookup, err error) {
	l = &lookup{}
	s := &single{handler: Handler[any](l.hear)}
	s.init(context.Background(), v, isGet)
	s.watch = *w
	l.watch, err = s.start(s, a)
	return l, err
}

// hear keeps what the watch is told.
func (l *lookup) hear(ev Event[any]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	re, _ := ev.Err.(*ResourceError)
	l.cut = ev.Kind == EventAmbientError && (re.Kind == ErrorConnection || re.Kind == ErrorStream)
	gone := ev.Kind == EventFailed && l.answer.Kind == EventUpdated // that of an alternative, whose primary cannot be reached
	if told(&ev) != answerAwaited || gone {
		l.answer = ev
	}
}

// known is the last answer.
func (l *lookup) known() Event[any] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answer
}

// held is the first event of a watch of the name if the client holds all that it takes: a value, or the
// absence of an entry in a list collection. Else ok is false.
func (v *view) held(a asked, w *machine.Watch) (ev Event[any], ok bool) {
	h := &holding{host: host{v, a.kind, w.Lane}}
	h.tree = follow.New(h, a.Asked, w, h)
	defer h.tree.End()
	w.Owner = h
	for w != nil {
		h.next = nil
		if n := v.client.engine.Held(w); n != nil {
			w.Owner.(engine.Sink).Tell(n)
		}
		w = h.next
	}
	return h.event, h.event.Kind != 0
}

// holding is a host whose watches are told of what is held, and nothing later.
type holding struct {
	host
	tree  *follow.Tree
	next  *machine.Watch // that was started
	event Event[any]
}

func (h *holding) Start(ws ...*machine.Watch) { h.next = ws[0] }

// Stop implements [follow.Host]: the watch has not begun.
func (h *holding) Stop(w *machine.Watch) { h.client.foreign.release(w) }

// Tell implements engine.Sink, for the first watch.
func (h *holding) Tell(n *machine.Notice) bool {
	_, wantsFlush := h.tree.Take(n)
	return wantsFlush
}

// Alive implements [follow.Sink].
func (h *holding) Alive() bool { return h.event.Kind == 0 }

// Hear implements [follow.Sink].
func (h *holding) Hear(t *follow.Told) bool {
	h.event = h.client.followed(t)
	return false
}

// Flush implements [follow.Sink].
func (h *holding) Flush(bool) {}

// useless says why an answer is of no use; nil of a value.
func (c *Client) useless(ev *Event[any]) error {
	if ev.Kind != EventDoesNotExist {
		return ev.Err
	}
	// ONDEMAND-3: absence releases who waits.
	err := c.absence(ev.Type, ev.Name, ev.Server, ev.Reason)
	if ev.Reason == ReasonTimeout {
		err = fmt.Errorf("%w; %v", err, ev.Instead)
	}
	return err
}

// absence is the error of who needs a resource that does not exist.
func (c *Client) absence(typeURL, name, server string, why Reason) error {
	return fmt.Errorf("%w: %s (%s)", ErrDoesNotExist, textFor(textOf(typeURL, name), server, c.NodeID()), why)
}
