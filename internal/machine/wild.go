package machine

import (
	"slices"
	"time"
)

// A wildcard begins and ends with a stream: it is requested in the legacy form, by a first request
// without names, which all servers know, until the stream ends. Of eight servers that were
// tried six take `*` for the name of a resource, so that goes out only where the wildcard is wanted
// by that name; then it is entered and left by messages (WILD-6).

// explicitly says whether the wildcard is requested by the name `*`: by a watch, for its parameters,
// which the legacy form has no room for, at a server that knows it so, as files do, or in state of the
// world, where one request names everything, beside structured names that are wanted.
func (l *link) explicitly() bool {
	// WILD-2, DYN-1, S-21: only these request it by its name.
	return l.cache.star.explicit || l.params(l.cache.star) != nil || l.stream.ExplicitWildcard || l.stream.AlwaysFull || !l.stream.Delta && l.structured > 0
}

// nextForm is the form in which the next request has the wildcard. An explicit wildcard stays explicit; a legacy one becomes
// explicit as soon as explicitly says so.
func (l *link) nextForm() wildForm {
	switch {
	case l.stream.watches == 0, l.outdated():
		return l.form // as it was
	case !l.wantsStar():
		return wildNone
	// WILD-4: a new stream begins with the form that is wanted then.
	case l.explicitly(), l.form == wildExplicit && !l.stream.Polled:
		return wildExplicit
	}
	// WILD-1: a first request without names.
	return wildLegacy
}

// setForm notes how the message being composed requests the wildcard.
func (l *link) setForm(form wildForm) {
	before := l.form
	if l.form = form; before != form && form == wildLegacy {
		l.lastFullState = 0 // the responses so far do not answer the wildcard
	}
	l.message.hadWild = before != wildNone
	switch wild := l.cache.star; {
	case before == wildNone && form != wildNone:
		l.subscribe([]*subscription{&wild.subscription})
	// WILD-6: what only the wildcard held is dropped.
	case before != wildNone && form == wildNone && wild.ownedBy(l.stream):
		for sub := range wild.all() {
			if sub.of == wild && !sub.lives() {
				l.leave(sub, []byte(sub.onWire()))
			}
		}
		l.cache.dropIfUnwanted(&wild.subscription)
	}
}

// outdated says that the type needs a new stream: a legacy wildcard is to begin after names were sent for the type, or is to
// end.
func (l *link) outdated() bool {
	switch {
	case !l.requested, l.stream.Polled:
		return false
	case l.wantsStar():
		return l.form == wildNone && !l.explicitly()
	}
	// WILD-3: a wildcard ends with its stream.
	return l.form == wildLegacy
}

// namedBeside keeps of some names those that count as subscribed to from now on namedBeside a legacy wildcard, in state of the world,
// though no request names them. Structured names do not: they wait for a request that names them.
func (l *link) namedBeside(subs []*subscription) []*subscription {
	return slices.DeleteFunc(subs, func(sub *subscription) bool {
		return !l.owns(sub) || sub.subscribed || structured(sub.name)
	})
}

// The waits between two streams that are begun anew for a wildcard, or for names that the server ignores ([hushes]). They
// double, and start over after a stream that stood for longer than the longest of them.
const (
	restartFirst = time.Second
	restartMost  = 30 * time.Second
)

// restartAt says whether a type is outdated, so that its stream is to be begun anew, and when.
func (m *Machine) restartAt(now time.Time, l *link) (at time.Time, outdated bool) {
	if l.stream.watches == 0 || !l.outdated() {
		return time.Time{}, false
	}
	at = l.stream.restarts.until
	if l.wantsStar() {
		return at, true
	}
	if l.unwantedSince.IsZero() {
		l.unwantedSince = now
	}
	// WILD-3: a wildcard that nobody watches lingers, since a watch may begin again.
	return later(at, l.unwantedSince.Add(m.config.Linger)), true
}

// restartPaced begins a stream anew, and notes until when it is not begun anew again.
func (m *Machine) restartPaced(now time.Time, s *stream) {
	if now.Sub(s.restarts.until) > restartMost {
		s.restarts = pauses{} // the stream stood for long
	}
	s.restarts.begin(now, restartFirst, restartMost)
	m.renewStream(now, s)
}
