package client

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
)

// WatchOption changes a watch.
type WatchOption func(*watchOptions)

type watchOptions struct {
	explicit  bool
	uncounted bool
}

// uncounted keeps Ready from waiting for the watch.
func uncounted(o *watchOptions) { o.uncounted = true }

// ExplicitWildcard spells the wildcard as the name "*" on the wire even where it stands
// alone. Without it the older form is used there, which all servers know: a first request
// without names (xDS protocol, "Wildcard subscriptions").
func ExplicitWildcard() WatchOption { return func(o *watchOptions) { o.explicit = true } }

func options(opts []WatchOption) watchOptions {
	var o watchOptions
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// Watch is a live subscription. Its methods are safe for concurrent use.
type Watch struct{ core *core }

// Stop ends the watch; no call of its handler begins afterwards. It does not wait for one
// that runs, and may be called inside it. Stopping twice is nothing.
func (w *Watch) Stop() { w.core.end(ErrStopped) }

// Done is closed when the watch is over.
func (w *Watch) Done() <-chan struct{} { return w.core.Done() }

// Err is nil while the watch lives, then why it ended: [ErrStopped], [ErrClosed], the
// cause of its context's end, or a [*PanicError].
func (w *Watch) Err() error { return w.core.Err() }

// PanicError is the end of a watch whose handler panicked.
type PanicError struct {
	Value any    // what the handler panicked with
	Stack []byte // of the goroutine, as of runtime/debug.Stack
}

func (e *PanicError) Error() string { return fmt.Sprintf("xds: the handler panicked: %v", e.Value) }

// core is what all watches have in common.
type core struct {
	client  *Client
	ctx     context.Context
	options watchOptions
	over    atomic.Bool
	unhook  func() bool // takes the watch off its context

	mu      sync.Mutex
	done    chan struct{} // nil until somebody asks
	err     error
	watches []*machine.Watch

	answer answer
}

func (w *core) init(c *Client, ctx context.Context, o watchOptions) {
	w.client, w.ctx, w.options = c, ctx, o
}

// start begins a watch with its only subscription.
func (w *core) start(m *machine.Watch, kind resource.Kind) (*Watch, error) {
	if !w.options.uncounted {
		w.answer.expect(w.client)
	}
	if err := w.begin(); err != nil {
		w.answer.settle(w.client)
		return nil, err
	}
	if err := w.run(m, kind); err != nil {
		return nil, err
	}
	return &Watch{w}, nil
}

// begin puts the watch on the client's books and ties it to its context.
func (w *core) begin() error {
	c := w.client
	c.mu.Lock()
	if c.closed.Load() {
		c.mu.Unlock()
		return ErrClosed
	}
	c.watches[w] = struct{}{}
	c.mu.Unlock()
	if w.ctx.Done() != nil {
		unhook := context.AfterFunc(w.ctx, func() { w.end(context.Cause(w.ctx)) })
		w.mu.Lock()
		w.unhook = unhook
		w.mu.Unlock()
	}
	return nil
}

// run starts one subscription of the watch.
func (w *core) run(m *machine.Watch, kind resource.Kind) error {
	w.mu.Lock()
	w.watches = append(w.watches, m)
	over := w.over.Load()
	w.mu.Unlock()
	if over {
		return nil // it ended while it began; Err says why
	}
	if !w.client.engine.Start(m, kind) {
		w.end(ErrClosed)
		return ErrClosed
	}
	return nil
}

// end is the end of the watch, whoever comes first.
func (w *core) end(err error) {
	w.mu.Lock()
	if w.over.Load() {
		w.mu.Unlock()
		return
	}
	w.over.Store(true)
	w.err = err
	if w.done != nil {
		close(w.done)
	}
	watches, unhook := w.watches, w.unhook
	w.watches = nil
	w.mu.Unlock()
	if unhook != nil {
		unhook()
	}
	for _, m := range watches {
		w.client.engine.Stop(m)
	}
	w.answer.settle(w.client)
	w.client.forget(w)
}

// alive says whether the handler may be called.
func (w *core) alive() bool {
	return !w.over.Load() && w.ctx.Err() == nil && !w.client.closed.Load()
}

func (w *core) Done() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done == nil {
		w.done = make(chan struct{})
		if w.over.Load() {
			close(w.done)
		}
	}
	return w.done
}

func (w *core) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// call calls a handler. Its panic fails the watch, and nothing else.
func (w *core) call(handler func()) {
	defer func() {
		if p := recover(); p != nil {
			w.client.config.Logger.Error("a handler panicked; its watch is over", "panic", p, "stack", string(debug.Stack()))
			w.end(&PanicError{Value: p, Stack: debug.Stack()})
		}
	}()
	handler()
}

// single is a watch of one resource.
type single struct {
	core
	handler Handler
}

// Tell implements engine.Sink.
func (s *single) Tell(n *machine.Notice) {
	if !s.alive() {
		return
	}
	ev := s.client.event(n)
	s.call(func() { s.handler(ev) })
	if answers(ev) {
		s.answer.settle(s.client)
	}
}

// Flush implements engine.Sink.
func (s *single) Flush(bool) {}

// batcher is a watch of a collection.
type batcher struct {
	core
	handler BatchHandler
	batch   Batch
	open    bool // a batch that was not the last was handed over
}

// Tell implements engine.Sink.
func (s *batcher) Tell(n *machine.Notice) {
	if s.alive() {
		s.add(s.client.event(n))
	}
}

func (s *batcher) add(ev Event) {
	s.batch.Events = append(s.batch.Events, ev)
	if len(s.batch.Events) == MaxBatch {
		s.deliver()
	}
	if ev.Name == wildcard && answers(ev) {
		s.answer.settle(s.client)
	}
}

// Flush implements engine.Sink.
func (s *batcher) Flush(last bool) {
	s.batch.Last = last
	if len(s.batch.Events) > 0 || last && s.open {
		s.deliver()
	}
}

func (s *batcher) deliver() {
	b := s.batch
	s.batch, s.open = Batch{}, !b.Last
	if s.alive() {
		s.call(func() { s.handler(b) })
	}
}
