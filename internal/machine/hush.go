package machine

import "time"

// hush is how long a name that was added to those of a stream may stay unknown, and the server
// be quiet, until all are asked for on a new stream. Servers that were written for Envoy may
// look at the version of a request alone, and wait for the next one whatever else is asked
// for: Cilium's does. Envoy, with a stream for each subscription, never notices. A first
// request says no version while anything is lacking, so it is answered.
const hush = 2 * time.Second

// unheard is a name that was added.
type unheard struct {
	entry *entry
	at    time.Duration // on the stream's clock, when it may stay unknown no longer
}

// listen waits for news of a name that was added. A stream that carries more than one type is
// not given up for the sake of one, and the legacy wildcard says no names; delta says what was added; polls ask anew by themselves,
// and files hold everything. Where the does-not-exist timer is as short it decides.
func (m *Machine) listen(now time.Time, e *entry) {
	ts, s, timeout := e.of.ts, e.of.ts.stream, m.timeout(e.of.ts.stream)
	if s.url == "" || ts.told == wildLegacy || s.Delta || s.Polled || s.FullState || timeout > 0 && timeout <= hush {
		return
	}
	ts.unheard = append(ts.unheard, unheard{e, s.clock.at(now) + hush})
}

// listenAnew gives all that is waited for its full time again.
func (ts *typeState) listenAnew(now time.Time) {
	for i := range ts.unheard {
		ts.unheard[i].at = ts.stream.clock.at(now) + hush
	}
}

// hushAt is when the wait for news of the first name ends; zero for never. A server that has
// not answered on the stream yet is waited for, and so is one that just spoke.
func (s *stream) hushAt() time.Time {
	if s.state != up || s.url == "" || len(s.order) == 0 || !s.clock.since.IsZero() {
		return time.Time{}
	}
	ts := s.order[0]
	for len(ts.unheard) > 0 && !ts.lacks(ts.unheard[0].entry) {
		ts.unheard = ts.unheard[1:]
	}
	if len(ts.unheard) == 0 || !ts.answered {
		return time.Time{}
	}
	at := s.clock.when(ts.unheard[0].at)
	if quiet := ts.storm.heardAt.Add(hush); quiet.After(at) {
		return quiet
	}
	return at
}

// lacks says that an entry is asked for and nothing is known of it.
func (ts *typeState) lacks(e *entry) bool {
	return ts.has(e) && e.wanted() && e.status == StatusRequested
}
