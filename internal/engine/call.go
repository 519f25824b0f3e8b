package engine

import (
	"runtime"
	"time"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// After runs f when the dispatcher of each of some lanes is past a call that it may be making: one that it makes at a
// watch of which about says so. That is now, or between two calls. f must not block; about must not ask the engine.
func (e *Engine) After(lanes []int32, about func(at *machine.Watch) bool, f func()) {
	m := newMarker(len(lanes)+1, f)
	for _, number := range lanes {
		if l := e.lanes.at(number); l == nil || !l.later(about, m.reached) {
			m.reached()
		}
	}
	m.reached()
}

// later says whether the dispatcher makes such a call. Then it runs f behind it.
func (l *lane) later(about func(at *machine.Watch) bool, f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaited.Store(true) // and then telling is read: the dispatcher writes that, and then reads this
	at := l.telling.Load()
	if at == nil || !about(at) {
		return false
	}
	l.after = append(l.after, f)
	return true
}

// move notes what the dispatcher is at, nil for nothing, and runs what waited for the end of the call before.
func (l *lane) move(at *machine.Watch) {
	l.telling.Store(at)
	if !l.awaited.Load() {
		return
	}
	l.mu.Lock()
	fs := l.after
	l.after, l.vain = nil, false
	l.awaited.Store(false)
	l.mu.Unlock()
	for _, f := range fs {
		f()
	}
}

// Await waits for a moment until calls in some lanes are over. A call in one lane that was waited for in vain is not
// waited for again.
func (e *Engine) Await(lanes []int32, over func() bool) {
	var told []*lane // that are there
	waits := false
	for _, number := range lanes {
		if l := e.lanes.at(number); l != nil {
			told = append(told, l)
			waits = waits || !l.waitedInVain()
		}
	}
	if !waits || await(over) || len(told) > 1 { // of several it is not known in which the call is
		return
	}
	l := told[0]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.vain = len(l.after) > 0
}

func (l *lane) waitedInVain() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.vain
}

// How long await waits: what is about to begin has a few instructions to go, unless its
// thread was taken away.
const (
	awaitYields = 100
	awaitSleeps = 10
	awaitSleep  = time.Millisecond
)

// await waits for a moment until something is over, and says whether it is.
func await(over func() bool) bool {
	for i := range awaitYields + awaitSleeps {
		if over() {
			return true
		}
		if i < awaitYields {
			runtime.Gosched()
		} else {
			time.Sleep(awaitSleep)
		}
	}
	return over()
}
