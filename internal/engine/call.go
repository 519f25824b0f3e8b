package engine

import (
	"runtime"
	"time"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// After runs f when the dispatcher of a lane is past a call that it may be making: one that it makes at a watch of
// which about says so. That is now, or between two calls. f must not block; about must not ask the engine.
func (e *Engine) After(lane int32, about func(at *machine.Watch) bool, f func()) {
	l := e.lanes.at(lane)
	if l == nil || !l.later(about, f) {
		f()
	}
}

// later says whether f is run later.
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

// Await is as the function Await, for the end of a call in a lane. What was waited for in vain is not waited for
// again.
func (e *Engine) Await(lane int32, over func() bool) {
	l := e.lanes.at(lane)
	if l == nil {
		return
	}
	l.mu.Lock()
	vain := l.vain
	l.mu.Unlock()
	if !vain && !Await(over) {
		l.mu.Lock()
		l.vain = len(l.after) > 0
		l.mu.Unlock()
	}
}

// How long Await waits: what is about to begin has a few instructions to go, unless its
// thread was taken away.
const (
	awaitYields = 100
	awaitSleeps = 10
	awaitSleep  = time.Millisecond
)

// Await waits for a moment until something is over, and says whether it is.
func Await(over func() bool) bool {
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
