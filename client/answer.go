package client

import (
	"errors"
	"sync"
	"sync/atomic"
)

// answer is what a subscription was told of its resource, as far as Ready asks, and whether it has ended. A set has
// one of its own for its end.
type answer struct{ state atomic.Uint32 }

const (
	answerAwaited  uint32 = iota // nothing was told yet
	answerLacking                // it was told that there is no value
	answerValue                  // it was told of a value, or a collection's first state
	answerOver                   // the subscription has ended: no call of the handler begins for it
	answerFinished               // of a watch or a set: nor does any run
)

// told is the state that an event gives to an answer; answerAwaited if it is no answer of the server about the
// resource: trouble with the server is none, but the end of an [InitialFetchTimeout] counts as one.
func told(ev *Event[any]) uint32 {
	switch ev.Kind {
	case EventUpdated, EventSynced:
		return answerValue
	case EventDoesNotExist:
		return answerLacking
	case EventFailed:
		_, overdue := errors.AsType[*FetchTimeoutError](ev.Err)
		if overdue || !ev.Err.(*ResourceError).Kind.Transient() {
			return answerLacking
		}
	case EventAmbientError, EventRecovered:
	}
	return answerAwaited
}

// take notes what was told.
func (a *answer) take(in *answers, ev *Event[any]) {
	if ev.Kind != EventUpdated || a.state.Load() != answerValue { // as mostly
		a.takeNew(in, ev)
	}
}

func (a *answer) takeNew(in *answers, ev *Event[any]) { in.become(a, told(ev)) }

// value says that it was told of a value, which stays good.
func (a *answer) value() bool { return a.state.Load() == answerValue }

// over says that the subscription has ended.
func (a *answer) over() bool { return a.state.Load() >= answerOver }

// finished says that the last call of the handler has returned too.
func (a *answer) finished() bool { return a.state.Load() == answerFinished }

// open says whether an answer, or a value, is waited for still.
func (a *answer) open(values bool) bool { return count(a.state.Load(), values) > 0 }

func count(state uint32, values bool) int {
	if state == answerAwaited || values && state == answerLacking {
		return 1
	}
	return 0
}

// answers changes those of all subscriptions. Safe for concurrent use.
type answers struct {
	mu      sync.Mutex
	waiters map[*answer]chan struct{} // closed when the answer changes
}

// become changes an answer, unless that changes nothing for [Client.Ready] or its subscription has ended.
func (in *answers) become(a *answer, state uint32) {
	if state == answerAwaited || a.state.Load() == state {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if a.over() {
		return
	}
	a.state.Store(state)
	if ch := in.waiters[a]; ch != nil {
		close(ch)
		delete(in.waiters, a)
	}
}

// changed returns what is closed when an answer changes that is waited for; nil if it is not.
func (in *answers) changed(a *answer, values bool) <-chan struct{} {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !a.open(values) {
		return nil
	}
	if in.waiters == nil {
		in.waiters = map[*answer]chan struct{}{}
	}
	if in.waiters[a] == nil {
		in.waiters[a] = make(chan struct{})
	}
	return in.waiters[a]
}
