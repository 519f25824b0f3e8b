package client

import (
	"cmp"
	queue "container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/follow"
	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Errors of [Client.Get].
var (
	// ErrDoesNotExist says that the server has no such resource.
	ErrDoesNotExist = errors.New("xds: the resource does not exist")
	// ErrTooManyNames says that Get keeps as many names as it may (Config.GetMaxNames), and can
	// drop none: callers wait for each, or it is held while its server cannot be reached.
	ErrTooManyNames = errors.New("xds: too many names are being looked up")
	// ErrInHandler says that a method would have to wait inside a handler, of this client or
	// another: the events that it waits for may wait for the end of that handler.
	ErrInHandler = errors.New("xds: it cannot be waited for inside a handler")
)

// Defaults of the bounds of what Get keeps.
const (
	defaultGetIdle     = time.Minute
	defaultGetMaxNames = 10_000
)

// minGetLook is how long at least a name that is not idle is kept before it is looked at
// again.
const minGetLook = time.Second

// gets is what Get keeps: a watch for each name that is looked up, or was a moment ago.
type gets struct {
	client *Client
	idle   time.Duration
	most   int

	mu     sync.Mutex
	slots  map[getKey]*getSlot
	unused queue.List // of *getSlot that nobody waits in, the longest idle first
}

type getKey struct {
	typeURL, name string
	source        int32 // of the machine
}

// getSlot is one name. Concurrent callers share it.
type getSlot struct {
	key     getKey
	watch   *Watch
	waiting int
	unused  *queue.Element // nil while somebody waits
	used    time.Time
	idle    *time.Timer
	answer  Event[any]    // the last one that was an answer; Kind 0 before
	trouble error         // the last transient one
	cut     bool          // there is a value, and trouble with the way to its server
	ready   chan struct{} // closed with the first answer
}

// Get returns a resource: at once if the client holds it, else when the server has answered. A
// lost connection does not end the call. Callers of the same name share one subscription, which
// the client keeps for Config.GetIdle after its last use, and for as long as it has a value and
// its server cannot be reached. The client keeps at most Config.GetMaxNames names, and drops the
// longest idle one first.
//
// Errors: those of [Client.Watch]; an [ErrDoesNotExist] that says why; a [*ResourceError] if the
// server's resource cannot be used; [ErrTooManyNames]; [ErrInHandler] inside a handler of any
// client if this one holds no value; and ctx's error, with the last trouble on the way to the server, and
// each [BlockedHandler] that may be the cause.
func (c *Client) Get(ctx context.Context, kind resource.AnyType, name string, opts ...WatchOption) (Event[any], error) {
	ev, err := c.get(ctx, kind, name, opts)
	if err == nil {
		ev.Asked = name
	}
	return ev, err
}

func (c *Client) get(ctx context.Context, kind resource.AnyType, name string, opts []WatchOption) (Event[any], error) {
	o := options(slices.Concat(opts, []WatchOption{uncounted, InitialFetchTimeout(0)})) // its callers have contexts
	v, err := c.check(ctx, kind, o)
	if err != nil {
		return Event[any]{}, err
	}
	kind, form := c.serving(kind)
	ev, err := c.getAs(ctx, kind, name, v, o)
	if err == nil {
		if c.give(&ev, form); ev.Err != nil {
			return Event[any]{}, ev.Err
		}
	}
	return ev, err
}

// getAs is get with the value as the client decodes it.
func (c *Client) getAs(ctx context.Context, kind resource.AnyType, name string, v *view, o watchOptions) (Event[any], error) {
	a, err := c.prepare(kind, name, v, new(machine.Watch))
	if err != nil {
		return Event[any]{}, err
	}
	key := getKey{kind.TypeURL(), a.name, a.watch.Source}
	if ev, ok := c.gets.known(key); ok {
		return c.result(ev)
	}
	// ONDEMAND-1: what is held is the answer.
	if ev, ok, err := c.held(kind, a); ok {
		return ev, err
	}
	if engine.InHandler() {
		return Event[any]{}, fmt.Errorf("%w: %s %q is not held", ErrInHandler, key.typeURL, key.name)
	}
	slot, err := c.gets.acquire(c, key, kind, a, o)
	if err != nil {
		return Event[any]{}, err
	}
	defer c.gets.release(slot)
	select {
	case <-slot.ready:
		return c.result(c.gets.answerOf(slot))
	case <-ctx.Done():
		return Event[any]{}, c.gets.timeout(ctx, slot)
	case <-slot.watch.Done():
		return Event[any]{}, slot.watch.Err()
	}
}

// held decodes a value that some watch holds already, also where redirects lead to it.
func (c *Client) held(kind resource.AnyType, a asked) (Event[any], bool, error) {
	for at, hops := a, 0; hops <= follow.MaxHops; hops++ {
		r, ok := c.engine.Held(int(at.watch.Source), at.watch.Type.URL, at.watch.Name)
		if !ok || r.Raw == nil {
			break
		}
		server := c.server(r.Server)
		ev := Event[any]{
			Kind: EventUpdated, Type: kind.TypeURL(), Name: a.name, Version: r.Version,
			Server: server.Name(), Features: server.Features, Raw: r.Raw, Attributes: attributesOf(r.Attributes), Stale: r.Stale,
		}
		ev.Authority, _ = xdstp.AuthorityOf(a.name)
		if hops > 0 {
			ev.Locator = listing.WithoutAlt(*at.at).String()
		}
		err := c.valueOf(&ev, at, r)
		if err != nil {
			return Event[any]{}, true, c.rejected(&ev, err)
		}
		to, redirected := ev.Value.(*engine.Redirect)
		if !redirected {
			ev, err := c.result(ev)
			return ev, true, err
		}
		next := to.To
		if r.Locator && at.at != nil {
			next = follow.WithEntry(next, *at.at)
		}
		if at, err = c.aim(kind, next, at.view, new(machine.Watch)); err != nil {
			break // a watch will say so
		}
	}
	return Event[any]{}, false, nil
}

// valueOf gives an event the value that is held, or what there is of the entry that is
// meant.
func (c *Client) valueOf(ev *Event[any], at asked, r machine.Resource) (err error) {
	if r.Locator {
		ev.Value, err = engine.NewRedirect(at.kind, r.Raw)
		return err
	}
	if ev.Value, err = c.engine.Decode(at.kind, r.Server, r.Raw); err != nil {
		return err
	}
	d, ok := ev.Value.(listing.Directory)
	if !ok {
		return nil
	}
	ev.Value, ev.Raw, ev.Attributes = nil, nil, nil // those of the directory
	name, _ := at.at.Entry()
	switch i, err := d.Named(name); {
	case err != nil:
		return err
	case i < 0:
		ev.Kind, ev.Reason, ev.Version = EventDoesNotExist, ReasonNotFound, ""
		return nil
	default:
		e := &d.Entries[i]
		ev.Raw, ev.Version = e.Raw, cmp.Or(e.Version, ev.Version)
		ev.Value, err = d.Value(i)
		return err
	}
}

// result turns an answer into what Get returns.
func (c *Client) result(ev Event[any]) (Event[any], error) {
	switch ev.Kind {
	case EventUpdated:
		return ev, nil
	// ONDEMAND-3: absence releases who waits.
	case EventDoesNotExist:
		err := fmt.Errorf("%w: %s %q of server %q for node %q (%s)", ErrDoesNotExist, ev.Type, ev.Name, ev.Server, c.node, ev.Reason)
		if ev.Reason == ReasonTimeout {
			err = fmt.Errorf("%w; %v", err, ev.Instead)
		}
		return Event[any]{}, err
	}
	return Event[any]{}, ev.Err
}

// known returns the answer of a name that is kept, and counts as a use of it.
func (g *gets) known(key getKey) (Event[any], bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	slot := g.slots[key]
	if slot == nil || slot.answer.Kind == 0 {
		return Event[any]{}, false
	}
	slot.used = time.Now()
	if slot.unused != nil {
		g.unused.MoveToBack(slot.unused)
	}
	return slot.answer, true
}

// answerOf is what a slot knows, also while its client closes.
func (g *gets) answerOf(slot *getSlot) Event[any] {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slot.answer
}

// acquire finds the slot of a name, or makes it with a watch, and waits in it.
func (g *gets) acquire(c *Client, key getKey, kind resource.AnyType, a asked, o watchOptions) (*getSlot, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.slots == nil {
		return nil, ErrClosed
	}
	slot := g.slots[key]
	if slot == nil {
		// U-6: the number of names is bounded.
		if g.most > 0 && len(g.slots) >= g.most && !g.evict() {
			return nil, fmt.Errorf("%w: %s %q", ErrTooManyNames, key.typeURL, key.name)
		}
		slot = &getSlot{key: key, ready: make(chan struct{})}
		s := &single{handler: Handler[any](func(ev Event[any]) { g.told(slot, ev) })}
		s.init(context.Background(), c, a.view)
		s.watch = *a.watch
		watch, err := s.ask(kind, a, o)
		if err != nil {
			return nil, err
		}
		slot.watch = watch
		g.slots[key] = slot
	}
	slot.waiting++
	g.busy(slot)
	return slot, nil
}

// told keeps what a slot's watch hears.
func (g *gets) told(slot *getSlot, ev Event[any]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	slot.cut = ev.Kind == EventAmbientError && transient(ev.Err)
	if !answers(&ev) {
		if ev.Kind == EventFailed {
			slot.trouble = ev.Err
		}
		return
	}
	if slot.answer.Kind == 0 {
		close(slot.ready)
	}
	slot.answer = ev
}

// busy takes a slot off those that nobody waits in.
func (g *gets) busy(slot *getSlot) {
	if slot.unused != nil {
		g.unused.Remove(slot.unused)
		slot.unused = nil
	}
}

// release ends a caller's waiting. The name goes when it was idle for long enough.
func (g *gets) release(slot *getSlot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.slots == nil {
		return
	}
	slot.used = time.Now()
	if slot.waiting--; slot.waiting == 0 {
		slot.unused = g.unused.PushBack(slot)
	}
	if slot.idle == nil {
		slot.idle = time.AfterFunc(g.idle, func() { g.expire(slot) })
	}
}

// kept says whether a name that nobody waits for has to stay: it is held, and its server
// could not give it again.
func (g *gets) kept(slot *getSlot, works func(*machine.Watch) bool) bool {
	return slot.answer.Kind == EventUpdated && (slot.cut || !works(&slot.watch.watch))
}

// expire lets a name go, or looks again when it may have been idle for long enough.
func (g *gets) expire(slot *getSlot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.slots[slot.key] != slot {
		return
	}
	left := g.idle - time.Since(slot.used)
	// U-6: it is kept while its server cannot give it again.
	if slot.waiting > 0 || left <= 0 && g.kept(slot, g.client.engine.Works) {
		left = max(g.idle, minGetLook)
	}
	if left > 0 {
		slot.idle.Reset(left)
		return
	}
	// ONDEMAND-4: idle names are let go.
	g.drop(slot)
}

// evict lets the longest idle name go, if one may go.
func (g *gets) evict() bool {
	known := map[int32]bool{} // by source
	works := func(w *machine.Watch) bool {
		if _, ok := known[w.Source]; !ok {
			known[w.Source] = g.client.engine.Works(w)
		}
		return known[w.Source]
	}
	for e := g.unused.Front(); e != nil; e = e.Next() {
		if slot := e.Value.(*getSlot); !g.kept(slot, works) {
			g.drop(slot)
			return true
		}
	}
	return false
}

func (g *gets) drop(slot *getSlot) {
	if slot.idle != nil {
		slot.idle.Stop()
	}
	g.busy(slot)
	delete(g.slots, slot.key)
	slot.watch.end(ErrStopped) // and not Stop, which waits for a handler that waits for the lock
}

// timeout is the error of a caller whose context ended.
func (g *gets) timeout(ctx context.Context, slot *getSlot) error {
	g.mu.Lock()
	trouble := slot.trouble
	g.mu.Unlock()
	err := context.Cause(ctx)
	if trouble != nil {
		err = fmt.Errorf("%w while waiting: %w", err, trouble)
	}
	for _, h := range g.client.blocked() {
		err = fmt.Errorf("%w; %w", err, h)
	}
	return err
}

// close ends all timers; the watches end with the client.
func (g *gets) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.slots {
		if s.idle != nil {
			s.idle.Stop()
		}
	}
	g.slots = nil
}
