package client

import (
	"errors"
	"slices"
	"sync/atomic"
)

// answer is whether a subscription had its first answer.
type answer struct{ state atomic.Uint32 }

const (
	answerNone uint32 = iota
	answerExpected
	answerSettled
)

// beside says whether an event is about trouble that leaves the held value good.
func beside(ev *Event[any]) bool { return ev.Kind == EventAmbientError || ev.Kind == EventRecovered }

// answers says whether an event is an answer of the server about the resource.
func answers(ev *Event[any]) bool {
	if ev.Kind != EventFailed {
		return !beside(ev)
	}
	_, ok := ev.Err.(*ResourceError)
	return ok && !transient(ev.Err)
}

// settles says whether an event ends what [Client.Ready] waits for: an answer, or that there
// is none in the time that the start of a program waits for one.
func settles(ev *Event[any]) bool {
	if answers(ev) {
		return true
	}
	_, overdue := errors.AsType[*FetchTimeoutError](ev.Err)
	return overdue && ev.Kind == EventFailed
}

func (a *answer) expect(c *Client) {
	if a.state.CompareAndSwap(answerNone, answerExpected) {
		c.count(+1)
	}
}

func (a *answer) settle(c *Client) {
	if a.state.Load() == answerExpected && a.state.CompareAndSwap(answerExpected, answerSettled) {
		c.count(-1)
	}
}

// count counts subscriptions without an answer.
func (c *Client) count(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending += by
	switch {
	case c.pending == 0:
		close(c.settled)
	case c.pending == 1 && by > 0:
		c.settled = make(chan struct{})
	}
}

// book puts a watch on the client's books.
func (c *Client) book(w *core) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return ErrClosed
	}
	c.watches = append(c.watches, w)
	w.place = len(c.watches)
	return nil
}

// forget takes a watch off the books, if it is there.
func (c *Client) forget(w *core) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.place == 0 {
		return
	}
	n := len(c.watches) - 1
	last := c.watches[n]
	c.watches[w.place-1], last.place = last, w.place
	c.watches[n], w.place = nil, 0
	if c.watches = c.watches[:n]; n < cap(c.watches)/4 {
		c.watches = slices.Clone(c.watches)
	}
}
