package machine

import (
	"fmt"
	"slices"
	"time"
)

// fetch is a watch that is told so if it has no answer in time
// (envoy.config.core.v3.ConfigSource.initial_fetch_timeout). The time begins with the watch,
// whatever becomes of the stream.
type fetch Watch

func (m *Machine) beginFetch(now time.Time, w *Watch) {
	if w.FetchTimeout > 0 { // DNE-10
		m.setAlarm(now, w.sub.stream(), (*fetch)(w), w.FetchTimeout)
	}
}

// ring tells the watch that it has no answer yet. The subscription stays. It may be on another stream by
// now, whose reading handlers hold up.
func (f *fetch) ring(m *Machine, now time.Time) {
	w := (*Watch)(f)
	if !w.unanswered() {
		return
	}
	if s := w.sub.stream(); s.clock.stopped() {
		m.setAlarm(now, s, f, 0)
		return
	}
	n := m.noticeTo(w.sub, NoticeFailed, []*Watch{w}, nil)
	n.Fault, n.Instead = &Fault{Kind: FaultTimeout, Err: &FetchTimeoutError{w.FetchTimeout}, At: now}, w.sub.link().instead
}

// FetchTimeoutError is that a watch had no answer in time.
type FetchTimeoutError struct{ After time.Duration }

func (e *FetchTimeoutError) Error() string {
	return fmt.Sprintf("no answer within the initial fetch timeout of %v", e.After)
}

// unanswered says that nothing is known yet of what is watched, but how its server fares.
func (w *Watch) unanswered() bool {
	return w.alive && !w.sub.usable() && w.sub.status == StatusRequested
}

// patient says that silence says nothing to any of some watches.
func patient(watches []*Watch) bool {
	return len(watches) > 0 && !slices.ContainsFunc(watches, func(w *Watch) bool { return !w.Patient })
}
