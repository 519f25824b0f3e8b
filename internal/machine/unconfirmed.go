package machine

import "slices"

// In delta the first request of a stream lists the versions of what is held, so that the server's silence
// confirms it. What it does not list is unconfirmed until the server speaks of it ([subscription.see]), and goes if
// the server does not: under a watched name by its timer ([Machine.await]), members of collections together ([sweep]).
//
// Three are neither listed nor unconfirmed:
//   - another server's value that is watched by its name alone;
//   - what is kept though the server deleted it;
//   - an alias's value where the name in the list is taken ([link.appendVersions]).
//
// Members from the store are unconfirmed after the first state ([link.unconfirmStale]). In state of the world those are
// unconfirmed that another server said and a full state lacks ([Machine.unconfirmForeign]).

// unconfirm has the server confirm a value that is held, or it goes: one whose version the server is not
// told, or one of another server that it left out. A name that is watched has its own timer; what is not, or is
// not any more, is waited for together.
func (l *link) unconfirm(sub *subscription) {
	sub.unconfirmed = true
	l.unconfirmed = append(l.unconfirmed, sub)
	l.stream.agenda.touch(l.stream) // it may be another one than the step looks at
}

// unlisted has the server confirm what a first message did not tell it a version of: its own value, and of a
// collection what another server spoke of, or what exists without a value.
func (l *link) unlisted(sub *subscription) {
	switch {
	case !l.owns(sub), sub.loaded():
	// DELTA-4: of what was not listed the server does not tell the removal.
	case sub.listable(), sub.exists() && (sub.foreign() || !sub.held()) && sub.missable():
		l.unconfirm(sub)
	}
}

// takeOver has the server confirm what another one had to speak of until now.
func (l *link) takeOver(sub *subscription) {
	// DELTA-4: a first request that left before lists none of it.
	if l.requested && l.stream.Delta {
		l.untold = l.untold || sub.listable()
		l.unlisted(sub)
	}
}

// missable says whether a collection's state that leaves a resource out tells that the server does not have it. A resource
// that is watched by its name alone is held until the server speaks of it.
func (sub *subscription) missable() bool {
	return !sub.wanted() || sub.held() && len(sub.audience()) > 0
}

// unconfirmStale gives the server a period to speak of the members that only the store speaks of, once it
// has told their collection's first state.
func (l *link) unconfirmStale() {
	l.cache.stale = slices.DeleteFunc(l.cache.stale, func(sub *subscription) bool { return sub.gone || !sub.stale() })
	for _, sub := range l.cache.stale {
		// LKG-9: members that the first state lacks, in both variants; what it has is maybe refused.
		if l.owns(sub) && !sub.wanted() && !sub.unconfirmed && sub.seen.before(l.firstResponse) && sub.of.complete {
			l.unconfirm(sub)
		}
	}
}
