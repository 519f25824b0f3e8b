package client

import (
	"errors"
	"sync/atomic"
)

// answer is what a subscription was told of its resource, as far as Ready asks.
type answer struct{ state atomic.Uint32 }

const (
	answerUncounted uint32 = iota // nobody waits for it
	answerAwaited                 // nothing was told yet
	answerLacking                 // it was told that there is no value
	answerValue                   // it was told of a value, or a collection's first state
	answerOver                    // the subscription has ended
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

// told is the state that an event gives to an answer; answerUncounted if the event changes nothing for
// [Client.Ready]. The end of an [InitialFetchTimeout] counts as an answer.
func told(ev *Event[any]) uint32 {
	switch ev.Kind {
	case EventUpdated, EventSynced:
		return answerValue
	case EventDoesNotExist:
		return answerLacking
	case EventFailed:
		if _, overdue := errors.AsType[*FetchTimeoutError](ev.Err); overdue || answers(ev) {
			return answerLacking
		}
	case EventAmbientError, EventRecovered:
	}
	return answerUncounted
}

// expect makes Ready wait for the answer.
func (a *answer) expect(c *Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.state.Load() == answerUncounted {
		a.change(c, answerAwaited)
	}
}

// take notes what was told.
func (a *answer) take(c *Client, ev *Event[any]) {
	if ev.Kind != EventUpdated || a.state.Load() != answerValue { // as mostly
		a.takeNew(c, ev)
	}
}

func (a *answer) takeNew(c *Client, ev *Event[any]) { a.become(c, told(ev)) }

// settle ends the waiting for the answer: the subscription has ended.
func (a *answer) settle(c *Client) { a.become(c, answerOver) }

// over says that the subscription has ended.
func (a *answer) over() bool { return a.state.Load() == answerOver }

func (a *answer) become(c *Client, state uint32) {
	if now := a.state.Load(); state == answerUncounted || now == state || now == answerUncounted {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := a.state.Load(); now != state && now != answerOver {
		a.change(c, state)
	}
}

// change is called with the client's lock held.
func (a *answer) change(c *Client, state uint32) {
	a.state.Store(state)
	if ch := c.waiters[a]; ch != nil {
		close(ch)
		delete(c.waiters, a)
	}
}

// open says whether an answer, or a value, is waited for still.
func (a *answer) open(values bool) bool { return count(a.state.Load(), values) > 0 }

func count(state uint32, values bool) int {
	if state == answerAwaited || values && state == answerLacking {
		return 1
	}
	return 0
}
