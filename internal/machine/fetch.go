package machine

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"
)

// fetch is a watch that is told so if it has no answer in time
// (envoy.config.core.v3.ConfigSource.initial_fetch_timeout). The time begins with the watch,
// whatever becomes of the stream, and stands still while handlers hold up its reading.
type fetch struct {
	at     time.Time
	watch  *Watch
	stream *stream       // of the watch when at was set
	stood  time.Duration // how long that had stood still by then
	serial uint64        // of the watch
}

type fetches []fetch

func (q fetches) Len() int { return len(q) }
func (q fetches) Less(i, j int) bool {
	return cmp.Or(q[i].at.Compare(q[j].at), cmp.Compare(q[i].serial, q[j].serial)) < 0
}
func (q fetches) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *fetches) Push(x any)   { *q = append(*q, x.(fetch)) }
func (q *fetches) Pop() any {
	n := len(*q) - 1
	f := (*q)[n]
	(*q)[n] = fetch{}
	*q = (*q)[:n]
	return f
}

// FetchTimeoutError is that a watch had no answer in time.
type FetchTimeoutError struct{ After time.Duration }

func (e *FetchTimeoutError) Error() string {
	return fmt.Sprintf("no answer within the initial fetch timeout of %v", e.After)
}

func (m *Machine) beginFetch(now time.Time, w *Watch) {
	if w.FetchTimeout > 0 {
		s := w.stream()
		m.fetchSerial++
		if len(m.fetches) > 64+2*m.fetchesKept { // most may be over; those at the front alone go by themselves
			m.fetches = slices.DeleteFunc(m.fetches, func(f fetch) bool { return !f.watch.unanswered() })
			heap.Init(&m.fetches)
			m.fetchesKept = len(m.fetches)
		}
		heap.Push(&m.fetches, fetch{now.Add(w.FetchTimeout), w, s, s.life.stood(now), m.fetchSerial})
	}
}

// nextFetch is when the first is due; zero for never.
func (m *Machine) nextFetch() time.Time {
	for len(m.fetches) > 0 && !m.fetches[0].watch.unanswered() {
		heap.Pop(&m.fetches)
	}
	if len(m.fetches) == 0 {
		return time.Time{}
	}
	return m.fetches[0].at
}

// stream is the one that a live watch is on.
func (w *Watch) stream() *stream { return w.entry.of.ts.stream }

// unanswered says that nothing is known yet of what is watched, but how its server fares.
func (w *Watch) unanswered() bool {
	switch e := w.entry; {
	case !w.alive:
		return false
	case w.Wildcard:
		return !e.of.synced && e.of.absence == nil && e.of.self.fault == nil
	default:
		return !e.held() && e.status == StatusRequested
	}
}

// expireFetches tells the watches whose time is over.
func (m *Machine) expireFetches(now time.Time) {
	for at := m.nextFetch(); !at.IsZero() && !now.Before(at); at = m.nextFetch() {
		f := heap.Pop(&m.fetches).(fetch)
		s := f.watch.stream()
		var stood time.Duration
		if s == f.stream {
			stood = s.life.stood(now) - f.stood
		}
		switch {
		case !s.life.since.IsZero():
			s.parked = append(s.parked, f)
		case stood > 0:
			f.at, f.stood = f.at.Add(stood), f.stood+stood
			heap.Push(&m.fetches, f)
		default:
			m.overdue(now, f.watch)
		}
	}
}

// restartFetches gives what ran out while the program did not run its time again.
func (m *Machine) restartFetches(now time.Time) {
	for i := range m.fetches {
		if f := &m.fetches[i]; !now.Before(f.at) {
			f.at = now.Add(f.watch.FetchTimeout)
		}
	}
	heap.Init(&m.fetches)
}

// overdue tells a watch that it has no answer yet. The subscription stays.
func (m *Machine) overdue(now time.Time, w *Watch) {
	f := &Fault{Kind: FaultTimeout, Err: &FetchTimeoutError{w.FetchTimeout}, At: now}
	to := []*Watch{w}
	if w.Wildcard {
		m.tellCollectionTo(w.entry.of, Notice{Kind: NoticeFailed, Fault: f, Instead: w.entry.of.ts.instead}, to)
	} else {
		n := m.noticeTo(w.entry, NoticeFailed, to, nil)
		n.Fault, n.Instead = f, w.entry.of.ts.instead
	}
}

// patient says that all of some watches wait for their first answer for ever
// (initial_fetch_timeout of 0): silence says nothing to them.
func patient(watches []*Watch) bool {
	return len(watches) > 0 && !slices.ContainsFunc(watches, func(w *Watch) bool { return w.FetchTimeout >= 0 })
}
