package engine

import (
	"runtime"
	"time"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// Call is a call of a sink, or those of a few sinks of one resource one after the other.
type Call struct {
	lane  *lane
	at    *machine.Watch
	begun uint64
}

// Telling returns the call that may be of a watch's sink at this moment. If ok is false the
// sink of a watch that was over before is not called any more.
func (e *Engine) Telling(w *machine.Watch) (c Call, ok bool) {
	l := e.lanes.at(w.Lane)
	if l == nil {
		return Call{}, false
	}
	begun := l.begun.Load()
	at := l.telling.Load()
	if at == nil || at.Name != w.Name || at.Type != w.Type || at.Source != w.Source {
		return Call{}, false
	}
	return Call{l, at, begun}, true
}

func (c Call) over() bool { return c.lane.telling.Load() != c.at || c.lane.begun.Load() != c.begun }

// Await is as the function Await, until the call is over too. What was waited for in vain is
// not waited for again.
func (c Call) Await(over func() bool) bool {
	if c.lane.vain.Load() == c.begun {
		return c.over() || over()
	}
	if Await(func() bool { return c.over() || over() }) {
		return true
	}
	c.lane.vain.Store(c.begun)
	return false
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

// After runs f when no sink is called in the lane of a watch: soon, or after a handler that
// blocks. f must not block.
func (e *Engine) After(w *machine.Watch, f func()) {
	l := e.lanes.at(w.Lane)
	if l == nil || !l.addAfter(f) {
		f()
	}
}

func (l *lane) addAfter(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return false
	}
	l.after = append(l.after, f)
	l.wake.Signal()
	return true
}
