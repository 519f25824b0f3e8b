package machine

import "slices"

// In delta the first request of a stream lists the versions of what is held, so that the server's silence
// confirms it. What it does not list is unconfirmed until the server speaks of it ([subscription.see]), and goes if
// the server does not: under a watched name by its timer ([Machine.await]), members of collections together ([sweep]).
//
// Three kinds of values are neither listed nor unconfirmed:
//   - another server's value that is watched by its name alone;
//   - what is kept though the server deleted it;
//   - an alias's value where the name in the list is taken ([link.appendVersions]).
//
// Members from the store are unconfirmed after the first state ([link.unconfirmStale]). In state of the world those are
// unconfirmed that another server said and a full state lacks ([Machine.unconfirmForeign]).

// unconfirm notes that a value goes unless the server confirms it: the request does not list its version, or a full state
// left it out and another server gave it. A name that is watched has a timer of its own. For all others there is one
// ([sweep]).
func (l *link) unconfirm(sub *subscription) {
	sub.unconfirmed = true
	l.toSweep = append(l.toSweep, sub)
	l.stream.agenda.touch(l.stream) // the step may be about another stream
}

// unlisted has the server confirm a resource whose version the first request to it does not list: a value that it gave itself;
// and in a collection a value or an error that another server gave, or a resource that exists without a value.
func (l *link) unlisted(sub *subscription) {
	switch {
	case !l.owns(sub), sub.loaded():
	// DELTA-4: the server does not state the removal of what was not listed.
	case sub.holdsOwn(), sub.exists() && (sub.foreign() || !sub.held()) && sub.missable():
		l.unconfirm(sub)
	}
}

// takeOver has the server, which is active now, confirm a resource of which another server's word counted until now.
func (l *link) takeOver(sub *subscription) {
	// DELTA-4: a first request that left before lists no version of it.
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
