package machine

import (
	"slices"
	"time"
)

// A wildcard begins and ends with a stream: it is asked for in the legacy form, by a first request
// without names, which all servers know, and given up with the stream. Of eight servers that were
// tried six take `*` for the name of a resource, so that goes out only where the wildcard is wanted
// by that name; then it is entered and left by messages (WILD-6).

// byName says whether the wildcard is asked for by the name `*`: by a watch, for its parameters,
// which the legacy form has no room for, at a server that knows it so, or in state of the world,
// where one request names everything, beside structured names.
func (ts *typeState) byName() bool {
	c := ts.star.active()
	return c.explicit || ts.params(ts.star) != nil || ts.stream.ExplicitWildcard || !ts.stream.Delta && ts.structured()
}

// structured says whether structured names are wanted.
func (ts *typeState) structured() bool {
	for _, c := range ts.globs {
		if c.wanted() || c.wantsMember() {
			return true
		}
	}
	for _, c := range ts.plain {
		if c.wantsMember() {
			return true
		}
	}
	return false
}

// wantsMember says whether a resource of the collection is wanted by name.
func (c *collection) wantsMember() bool {
	for _, e := range c.members {
		if e.wanted() && c.has(e) {
			return true
		}
	}
	return false
}

// stateless says that each request stands for itself, as a poll does, and is all the same to a file.
func (s *stream) stateless() bool { return s.Polled || s.FullState }

// nextForm is how the wildcard is to be asked for. The form that it has stays, but for the legacy one
// where the name is wanted since.
func (ts *typeState) nextForm() wildForm {
	switch {
	case ts.stream.watches == 0, ts.outdated():
		return ts.form // as it was
	case !ts.star.wanted():
		return wildNone
	case ts.byName(), ts.form == wildExplicit && !ts.stream.stateless():
		return wildExplicit
	}
	return wildLegacy
}

// outdated says that what is wanted takes a new stream: a legacy wildcard is to begin after names
// were sent for the type, or to end.
func (ts *typeState) outdated() bool {
	switch {
	case !ts.asked, ts.stream.stateless():
		return false
	case ts.star.wanted():
		return ts.form == wildNone && !ts.byName()
	}
	return ts.form == wildLegacy
}

// What is waited for between two streams that are begun anew for a wildcard. The wait doubles, and is
// over with a stream that stood for longer than the longest.
const (
	renewalFirst = time.Second
	renewalMost  = 30 * time.Second
)

// renewal is when a stream was last begun anew for a wildcard, and how long the next time has to wait.
type renewal struct {
	at   time.Time
	wait time.Duration
}

// renewalAt is when a stream that is outdated is begun anew. A wildcard that nobody wants any more
// may be wanted again while it lingers.
func (m *Machine) renewalAt(now time.Time, ts *typeState) time.Time {
	at := ts.stream.renewal.at.Add(ts.stream.renewal.wait)
	if ts.star.wanted() {
		return at
	}
	if ts.leftAt.IsZero() {
		ts.leftAt = now
	}
	if left := ts.leftAt.Add(m.config.Linger); left.After(at) {
		return left
	}
	return at
}

// renewOutdated begins a stream anew if that is due, and says so; else it notes when it will be. What
// is under way comes first.
func (m *Machine) renewOutdated(now time.Time, s *stream) bool {
	for _, ts := range s.order {
		ts.renewAt = time.Time{}
		if s.watches == 0 || !ts.outdated() || ts.busy.on(s.ref()) {
			continue
		}
		if ts.renewAt = m.renewalAt(now, ts); !now.Before(ts.renewAt) {
			m.renewStream(now, s)
			return true
		}
	}
	return false
}

// renewStream begins a stream anew for a wildcard.
func (m *Machine) renewStream(now time.Time, s *stream) {
	r := &s.renewal
	if r.wait = min(max(2*r.wait, renewalFirst), renewalMost); now.Sub(r.at) > renewalMost+r.wait {
		r.wait = renewalFirst
	}
	r.at = now
	m.restart(now, s)
}

// standBeside notes names that are wanted beside a legacy wildcard in state of the world, which does
// not name them.
func (ts *typeState) standBeside(es []*entry) {
	for _, e := range es {
		if !e.asked {
			e.asked = true
			ts.beside = append(ts.beside, e)
		}
	}
}

// answerBeside answers names that stand beside a legacy wildcard. Where responses hold everything the
// wildcard's state does, once it is complete on this stream; where not, their timers, which begin anew
// with the first response. In delta that is so of what is held and whose version was withheld.
func (m *Machine) answerBeside(now time.Time, ts *typeState) {
	if len(ts.beside) == 0 || !ts.left {
		return
	}
	full := ts.fullState()
	es := ts.current(ts.beside)
	sortEntries(es)
	es = slices.Compact(es)
	if ts.beside = es; full && ts.complete || !full && ts.answered {
		ts.beside = nil
	}
	for _, e := range es {
		switch {
		case !e.wanted(), e.pinned:
		case full && ts.complete && !e.known():
			m.remove(now, e, ReasonAbsent)
		case e.withheld && ts.beside != nil: // held until the server has spoken at all
		case (e.withheld || !e.held() && !ts.spokenOf(e)) && (ts.beside == nil || e.timer == 0):
			m.startTimer(now, ts.stream, timer{entry: e})
		}
	}
}

// awaitAsked starts the timer of a name that the server was asked for already.
func (m *Machine) awaitAsked(now time.Time, e *entry) {
	ts := e.of.ts
	m.startTimer(now, ts.stream, timer{entry: e})
	if !ts.stream.Delta && ts.form == wildLegacy {
		ts.beside = append(ts.beside, e)
	}
}

// doubtStar tells the operator once why an explicit wildcard does not work.
func (m *Machine) doubtStar(ts *typeState) {
	if !ts.doubtful {
		ts.doubtful = true
		m.logType(ts, true, "the server seems to take the wildcard's name * for that of a resource; ask for everything without naming it")
	}
}

// takesStarForName says whether a response to an explicit wildcard, that comes over and over, holds
// nothing but what was asked for by name.
func (resp *response) takesStarForName() bool {
	if resp.ts.form != wildExplicit {
		return false
	}
	for e := range resp.ts.entries.all() {
		if e.seen == resp.serial && !e.wanted() {
			return false
		}
	}
	return true
}
