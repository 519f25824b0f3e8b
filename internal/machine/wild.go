package machine

import (
	"slices"
	"time"
)

// A wildcard begins and ends with a stream: it is requested in the legacy form, by a first request
// without names, which all servers know, and given up with the stream. Of eight servers that were
// tried six take `*` for the name of a resource, so that goes out only where the wildcard is wanted
// by that name; then it is entered and left by messages (WILD-6).

// byName says whether the wildcard is requested by the name `*`: by a watch, for its parameters,
// which the legacy form has no room for, at a server that knows it so, or in state of the world,
// where one request names everything, beside structured names.
func (l *link) byName() bool {
	// WILD-2, DYN-1: only these ask for everything by a star.
	return l.star.explicit || l.params(l.star) != nil || l.stream.ExplicitWildcard || !l.stream.Delta && l.structured()
}

// structured says whether structured names are wanted.
func (l *link) structured() bool {
	for _, src := range l.stream.sources {
		if !src.reaches(l.stream) {
			continue
		}
		for _, c := range l.collectionsOf(src) {
			if c != l.star && c.wantsMember() {
				return true
			}
		}
	}
	return false
}

// wantsMember says whether a resource of the collection is wanted by name.
func (c *collection) wantsMember() bool {
	for _, sub := range c.members {
		if sub.wanted() && c.has(sub) {
			return true
		}
	}
	return false
}

// stateless says that each request stands for itself, as a poll does, and is all the same to a file.
func (s *stream) stateless() bool { return s.Polled || s.FullState }

// nextForm is how the wildcard is to be requested. The form that it has stays, but for the legacy one
// where the name is wanted since.
func (l *link) nextForm() wildForm {
	switch {
	case l.stream.watches == 0, l.outdated():
		return l.form // as it was
	case !l.wantsStar():
		return wildNone
	case l.byName(), l.form == wildExplicit && !l.stream.stateless():
		return wildExplicit
	}
	// WILD-1: a first request without names.
	return wildLegacy
}

// outdated says that what is wanted takes a new stream: a legacy wildcard is to begin after names
// were sent for the type, or to end.
func (l *link) outdated() bool {
	switch {
	case !l.requested, l.stream.stateless():
		return false
	case l.wantsStar():
		return l.form == wildNone && !l.byName()
	}
	// WILD-3: a wildcard ends with its stream.
	return l.form == wildLegacy
}

// What is waited for between two streams that are begun anew for a wildcard. The wait doubles, and is
// over with a stream that stood for longer than the longest.
const (
	renewalFirst = time.Second
	renewalMost  = 30 * time.Second
)

// renewalAt is when a stream that is outdated is begun anew. A wildcard that nobody wants any more
// may be wanted again while it lingers.
func (m *Machine) renewalAt(now time.Time, l *link) time.Time {
	at := l.stream.renewal.until
	if l.wantsStar() {
		return at
	}
	if l.leftAt.IsZero() {
		l.leftAt = now
	}
	// WILD-3: a wildcard that nobody watches lingers.
	return later(at, l.leftAt.Add(m.config.Linger))
}

// renewOutdated begins a stream anew if that is due for a type, and says so; else it notes when it will
// be. What is under way comes first.
func (m *Machine) renewOutdated(now time.Time, l *link) bool {
	s := l.stream
	// WILD-3: a wildcard begins with a new stream.
	if s.watches == 0 || !l.outdated() {
		return false
	}
	if at, _ := m.notBefore(now, l, sayAnew); now.Before(at) {
		l.pacer.wait(at)
		return false
	}
	if now.Sub(s.renewal.until) > renewalMost {
		s.renewal = pauses{} // the stream stood for long
	}
	s.renewal.begin(now, renewalFirst, renewalMost)
	m.restart(now, s)
	return true
}

// standBeside notes names that are wanted beside a legacy wildcard in state of the world, which does
// not name them. It says nothing of structured names: they wait to be named.
func (l *link) standBeside(subs []*subscription) {
	for _, sub := range subs {
		if l.owns(sub) && !sub.subscribed && !structured(sub.name) {
			sub.subscribed = true
			l.beside = append(l.beside, sub)
		}
	}
}

// answerBeside answers names that stand beside a legacy wildcard. Where responses hold everything the
// wildcard's state does, once it is complete on this stream; where not, their timers, which begin anew
// with the first response. In delta that is so of what is held and whose version was withheld.
func (m *Machine) answerBeside(now time.Time, l *link) {
	if len(l.beside) == 0 || !l.left {
		return
	}
	full := l.fullState()
	subs := slices.DeleteFunc(l.beside, func(sub *subscription) bool { return !l.has(sub) })
	sortSubs(subs)
	subs = slices.Compact(subs)
	if l.beside = subs; full && l.complete || !full && l.answered {
		l.beside = nil
	}
	for _, sub := range subs {
		switch {
		case !sub.wanted():
		// P-1: the wildcard's state has no such name.
		case full && l.complete && !sub.known():
			m.remove(now, sub, ReasonAbsent)
		case sub.withheld && l.beside != nil: // held until the server has spoken at all
		case l.beside == nil || sub.timer == 0:
			m.await(now, sub)
		}
	}
}

// awaitSubscribed starts the timer of a name that the server was maybe sent already.
func (m *Machine) awaitSubscribed(now time.Time, sub *subscription) {
	l := sub.link()
	m.await(now, sub)
	if sub.subscribed && !l.leaving(sub) && !l.stream.Delta && l.form == wildLegacy {
		l.beside = append(l.beside, sub)
	}
}

// doubtStar tells the operator once why an explicit wildcard does not work.
func (m *Machine) doubtStar(l *link) {
	if !l.doubtful {
		l.doubtful = true
		m.logType(l, true, "the server seems to take the wildcard's name * for that of a resource; ask for everything without naming it")
	}
}

// takesStarForName says whether a response to an explicit wildcard, that comes over and over, holds
// nothing but what was subscribed to by name.
func (resp *response) takesStarForName() bool {
	// P-3: only an explicit wildcard can be taken for a name.
	if resp.link.form != wildExplicit {
		return false
	}
	for sub := range resp.link.owned() {
		if sub.seen == resp.serial && !sub.wanted() {
			return false
		}
	}
	return true
}
