package machine

import (
	"slices"
	"time"
)

// hush is how long a name that was added to those of a stream in state of the world may stay
// unknown, and the server be quiet, until it is asked for on a new stream. Servers that were
// written for Envoy may look at the version of a request alone, and wait for the next one
// whatever else is asked for: Cilium's does. Envoy, with a stream for each subscription, never
// notices. A first request says no version while anything is lacking, so it is answered.
const hush = 2 * time.Second

// unheard is a name that was added.
type unheard struct {
	entry *entry
	at    time.Duration // on the stream's clock, when it may stay unknown no longer
	wait  time.Duration // how long that is
}

// hush is how long a name may stay unknown: not so long that the does-not-exist timer decides.
func (m *Machine) hush(s *stream) time.Duration {
	if timeout := m.timeout(s); timeout > 0 {
		return min(hush, timeout/2)
	}
	return hush
}

// listen waits for news of a name that was added, where the server might not hear of it.
func (m *Machine) listen(now time.Time, e *entry) {
	ts, s := e.of.ts, e.of.ts.stream
	if !ts.overhears() {
		return
	}
	if len(ts.unheard) > 64+2*ts.watched { // most may be over; those at the front alone go by themselves
		ts.unheard = slices.DeleteFunc(ts.unheard, func(u unheard) bool { return !ts.awaits(u.entry) })
	}
	wait := m.hush(s)
	ts.unheard = append(ts.unheard, unheard{e, s.clock.at(now) + wait, wait})
}

// overhears says whether the server might not hear of names that are added. A stream that carries
// more than one type is not given up for the sake of one, and the legacy wildcard says no
// names; polls ask anew by themselves, and files hold everything.
func (ts *typeState) overhears() bool {
	s := ts.stream
	return !s.Delta && !s.stateless() && s.url != "" && ts.form != wildLegacy
}

// listenAnew gives all that is waited for its full time again.
func (ts *typeState) listenAnew(now time.Time) {
	for i := range ts.unheard {
		ts.unheard[i].at = ts.stream.clock.at(now) + ts.unheard[i].wait
	}
}

// hushAt is when the wait for news of a first name ends; zero for never.
func (s *stream) hushAt() (at time.Time) {
	if s.state == up && s.clock.since.IsZero() {
		for _, ts := range s.order {
			at = sooner(at, ts.hushAt())
		}
	}
	return at
}

// hushAt is the same for one type. A server that has not answered on the stream yet is waited
// for, and so is one that just spoke.
func (ts *typeState) hushAt() time.Time {
	for len(ts.unheard) > 0 && !ts.awaits(ts.unheard[0].entry) {
		ts.unheard = ts.unheard[1:]
	}
	if len(ts.unheard) == 0 || !ts.answered {
		return time.Time{}
	}
	at := ts.stream.clock.when(ts.unheard[0].at)
	if quiet := ts.storm.heardAt.Add(ts.unheard[0].wait); quiet.After(at) {
		return quiet
	}
	return at
}

// hushed asks on a new stream for what the server has not heard of in time. A name that was stopped
// may come back before the server is told, and is waited for anew.
func (m *Machine) hushed(now time.Time, s *stream) {
	for _, ts := range s.order {
		for at := ts.hushAt(); !at.IsZero() && !now.Before(at); at = ts.hushAt() {
			u := ts.unheard[0]
			ts.unheard = ts.unheard[1:]
			if !u.entry.noted {
				m.restart(now, s)
				return
			}
			ts.unheard = append(ts.unheard, unheard{u.entry, s.clock.at(now) + u.wait, u.wait})
		}
	}
}

// awaits says that nothing is known of an entry that is asked for until the server is told of
// what changed.
func (ts *typeState) awaits(e *entry) bool {
	return ts.has(e) && (e.wanted() || e.noted) && e.status == StatusRequested
}
