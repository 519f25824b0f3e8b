package client

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/xdswatch/xdswatch/internal/ctxerr"
	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/follow"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
)

// Watch is a live subscription. Its methods are safe for concurrent use.
type Watch struct{ core }

// subscription is a name or a collection that the program asks for, by a watch or in a set.
// What each call of a handler needs stands first: where one resource has many watches, memory decides.
type subscription struct {
	// tree is what serves it besides watch; nil if nothing does. It asks whether the sink is alive after it was noted
	// here, and the end of the sink is noted before the tree is looked for: so it begins nothing, or is ended.
	tree   atomic.Pointer[follow.Tree]
	answer answer
	is     watchKind // of the watch; isOne of what is in a set
	watch  machine.Watch
}

// asked is what the program asked for.
func (x *subscription) asked() (typeURL, name string) {
	if tree := x.tree.Load(); tree != nil {
		return tree.Asked.TypeURL, tree.Asked.Name
	}
	return x.watch.Type.URL, x.watch.Name
}

// sink hears of a subscription, by its watch or by its tree.
type sink interface {
	engine.Sink
	follow.Sink
}

// tell hands a notice of the subscription's watch to its tree. If there is none, a redirect makes one. taken says that
// the sink hears of the notice from the tree, or is over; else the notice is the sink's own.
func (x *subscription) tell(n *machine.Notice, v *view, s follow.Sink) (taken, wantsFlush bool) {
	tree := x.tree.Load()
	if tree == nil {
		if !follow.Redirects(n) {
			return false, false
		}
		tree = x.grow(v, x.watch.Type.Owner.(resource.AnyType), follow.Asked{TypeURL: x.watch.Type.URL, Name: x.watch.Name}, s)
		if !x.watch.Wildcard && x.answer.value() {
			tree.Holds(n.Server)
		}
	}
	return tree.Take(n)
}

// grow makes the tree of what was asked for.
func (x *subscription) grow(v *view, kind resource.AnyType, a follow.Asked, s follow.Sink) *follow.Tree {
	tree := follow.New(host{v, kind, x.watch.Lane}, a, &x.watch, s)
	x.tree.Store(tree)
	return tree
}

// leave ends the subscription, which may not have begun.
func (x *subscription) leave(c *Client) {
	c.answers.become(&x.answer, answerOver)
	c.engine.Post(machine.Stop{Watch: &x.watch})
	if tree := x.tree.Load(); tree != nil {
		tree.End()
	}
}

// tellTo has a sink told of what was asked for, by a tree from the start if that has directives or is a list
// collection.
func (x *subscription) tellTo(s sink, v *view, a asked) {
	if x.watch.Owner = s; a.At != nil || a.List {
		x.grow(v, a.kind, a.Asked, s)
	}
}

// core is what watches and sets have in common. Its exported methods are theirs.
type core struct {
	*view
	tie          *tie    // nil if its context has no end
	place        int32   // on the client's books, from 1; 0 if not on them; guarded by its lock
	subscription         // the only one; of a set none, but its kind, its watch's Owner and the end in its answer
	ending       *ending // nil while it lives and nobody has asked for Done; guarded by Client.endings
}

// tie is what ends a watch with its context.
type tie struct {
	ctx    context.Context
	unhook func() bool // takes the watch off it; nil before the watch begins; guarded by Client.endings
}

// ending is the end of a watch.
type ending struct {
	done chan struct{} // nil until somebody asks
	err  error         // nil while the watch lives
}

func (w *core) init(ctx context.Context, v *view, is watchKind) {
	w.view, w.is = v, is
	if ctx.Done() != nil {
		w.tie = &tie{ctx: ctx}
	}
}

// start begins a watch with its only subscription, of what was prepared.
func (w *Watch) start(s sink, a asked) (*Watch, error) {
	w.tellTo(s, w.view, a)
	if err := w.begin(); err != nil {
		return nil, err
	}
	if err := w.run(&w.subscription); err != nil {
		return nil, err
	}
	return w, nil
}

// begin puts the watch on the client's books and ties it to its context.
func (w *core) begin() error {
	w.client.books.enter(w)
	if w.client.closed.Load() { // since then nobody may look at the books
		w.end(ErrClosed)
		return ErrClosed
	}
	if t := w.tie; t != nil {
		unhook := context.AfterFunc(t.ctx, func() { w.end(ctxerr.Of(t.ctx)) })
		w.client.endings.Lock()
		t.unhook = unhook
		w.client.endings.Unlock()
		if w.answer.over() { // its end may have come before that
			unhook()
		}
	}
	return nil
}

// run starts subscriptions of the watch.
func (w *core) run(xs ...*subscription) error {
	var one [1]*machine.Watch // as mostly: on the stack
	ms := one[:0]
	for _, x := range xs {
		ms = append(ms, &x.watch)
	}
	if !w.client.engine.Start(ms...) {
		return ErrClosed // so the client ends what is on its books
	}
	for _, x := range xs {
		if x.answer.over() { // its end may have come before the start
			w.client.engine.Post(machine.Stop{Watch: &x.watch})
		}
	}
	return nil
}

// end is the end of the watch, whoever comes first.
func (w *core) end(err error) {
	w.client.endings.Lock()
	if w.answer.over() {
		w.client.endings.Unlock()
		return
	}
	w.itsEnding().err = err
	w.client.answers.become(&w.answer, answerOver)
	var unhook func() bool
	if w.tie != nil {
		unhook = w.tie.unhook
	}
	w.client.endings.Unlock()
	if unhook != nil {
		unhook()
	}
	for x := range w.subscriptions {
		x.leave(w.client)
	}
	w.client.books.remove(w)
	w.client.engine.After(w.lanes(), w.calledAt, w.finish)
}

// lanes are those in which the handler may be called.
func (w *core) lanes() []int32 {
	s := w.set()
	if s == nil {
		return []int32{w.watch.Lane}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.batches))
}

// set is the set that the watch is of; nil of others.
func (w *core) set() *Set {
	s, _ := w.watch.Owner.(*Set)
	return s
}

// alive says whether the handler may be called.
func (w *core) alive() bool {
	return (w.tie == nil || w.tie.ctx.Err() == nil) && !w.client.closed.Load() && !w.answer.over()
}

// Stop ends the watch, or the set. After it returns, no call of the handler begins. It does not wait for a
// call that runs, except for some ten milliseconds at most for one that is just beginning. The
// handler may call it. A second call does nothing.
func (w *core) Stop() {
	w.end(ErrStopped)
	if !w.answer.finished() && !engine.InHandler() {
		w.client.engine.Await(w.lanes(), w.answer.finished)
	}
}

// Done is closed when the watch, or the set, has ended and the last call of its handler has returned. No
// handler may wait for it, be it this watch's or another's.
func (w *core) Done() <-chan struct{} {
	w.client.endings.Lock()
	defer w.client.endings.Unlock()
	e := w.itsEnding()
	if e.done == nil {
		e.done = make(chan struct{})
		if w.answer.finished() {
			close(e.done)
		}
	}
	return e.done
}

// itsEnding is called with the lock held.
func (w *core) itsEnding() *ending {
	if w.ending == nil {
		w.ending = &ending{}
	}
	return w.ending
}

// Err is nil while the watch, or the set, lives, then says why it ended: [ErrStopped], [ErrClosed], its context's
// error, with the cause where that is another, [ErrHandlerExited] or a [*PanicError]. It is set before Done is closed.
func (w *core) Err() error {
	if t := w.tie; t != nil && t.ctx.Err() != nil {
		w.end(ctxerr.Of(t.ctx)) // which its context may not have come to
	}
	w.client.endings.Lock()
	defer w.client.endings.Unlock()
	if w.ending == nil {
		return nil
	}
	return w.ending.err
}
