package machine

import (
	"slices"
	"strings"
)

// conclude works out what a response means for members of collections that are gone, for what it leaves out,
// and for collections. Nothing is changed here.
func (r *reader) conclude() {
	slices.SortStableFunc(r.statements, func(a, b statement) int { return int(a.kind) - int(b.kind) })
	all := make([]statement, 0, len(r.statements))
	for _, it := range r.statements {
		if it.sub.isCollection() {
			all = append(all, r.membersGone(it)...)
		}
		all = append(all, it)
	}
	r.response.statements = append(all, r.absent()...)
	r.findCompleted()
}

// findCompleted lists the collections of which a response holds the first state: those that were requested from the
// server and have none yet, of the globs only those that it speaks of, or of a member, unless it speaks of
// everything or of nothing at all.
func (resp *response) findCompleted() {
	l := resp.link
	cs := resp.collections
	// DELTA-14: an empty response makes all globs complete.
	if l.fullState() || len(resp.Resources)+len(resp.Removed)+len(resp.RemovedNames)+len(resp.Errors) == 0 {
		cs = make([]*collection, 0, len(l.cache.globs))
		for _, c := range l.cache.globs {
			cs = append(cs, c)
		}
	}
	for _, c := range cs {
		if c.isGlob() && resp.awaited(c) {
			resp.completes = append(resp.completes, c)
		}
	}
	slices.SortFunc(resp.completes, byName)
	// WILD-5, DELTA-14: any response makes the wildcard ready, an empty one too.
	if star := l.cache.star; resp.awaited(star) {
		resp.completes = slices.Insert(resp.completes, 0, star)
	}
}

// awaited says that a collection was requested from the server and has no first state yet.
func (resp *response) awaited(c *collection) bool {
	return c.ownedBy(resp.link.stream) && resp.link.hasLeft(c.self) && !c.self.complete
}

// membersGone is what the end of a collection means (xRFC TP1): it has no members but those that the response
// holds.
func (resp *response) membersGone(end statement) (all []statement) {
	kind := statesBare
	switch {
	case end.reason() == 0 && !end.drops(resp.link):
		return nil
	case end.kind == statesRemoved:
		kind = statesRemoved
	}
	// GLOB-3: the glob is empty.
	for _, member := range end.sub.of.inOrder() {
		if member.known() && member.seen != resp.serial {
			all = append(all, statement{sub: member, kind: kind})
			for _, key := range resp.link.aliasesOf(member.name) { // ALIAS-2
				if key.seen != resp.serial {
					all = append(all, statement{sub: key, kind: kind})
				}
			}
		}
	}
	return all
}

// absent is what a full state means for names that it lacks. A name that was never received may have been
// subscribed to too late for it, so nothing follows, except at a file.
func (r *reader) absent() (all []statement) {
	l := r.link
	// DELTA-4, SOTW-8, SOTW-12, S-12: absence means nothing.
	if r.whole || !r.tellsAll() || r.nameless {
		return nil
	}
	// SOTW-9: what has another active server stays.
	for sub := range l.owned() {
		// SOTW-10: what is invalid or has an error is there.
		if sub.seen != r.serial && !sub.isCollection() {
			if kind := r.leftOut(sub); kind != statesNothing {
				all = append(all, statement{sub: sub, kind: kind})
			}
		}
	}
	slices.SortFunc(all, func(a, b statement) int { return strings.Compare(a.sub.name, b.sub.name) })
	return all
}

// leftOut is what follows for a subscription that a full state leaves out.
func (resp *response) leftOut(sub *subscription) statementKind {
	l := resp.link
	subscribed := l.hasLeft(sub)
	switch {
	case resp.omits(sub) && sub.foreign():
		return statesDoubt
	case resp.omits(sub):
		// ERR-7: an error stays. A watched name without a value ends only where the wildcard was told of it, or at a file.
		if sub.held() || !sub.wanted() || l.cache.star.wanted() || l.stream.FullState {
			// SOTW-7: what is missing is deleted.
			return statesAbsent
		}
	case l.stream.FullState && (sub.status == StatusRequested || sub.overshadowed()) && subscribed:
		return statesAbsent
	case sub.status == StatusDoesNotExist && subscribed && sub.foreign():
		return statesAgree
	}
	return statesNothing
}

// omits says whether a full state that lacks a known subscription ends it: a request for it, or for its collection, had
// left when the server sent the response.
func (resp *response) omits(sub *subscription) bool {
	l := resp.link
	switch {
	case !sub.known():
		return false
	case l.hasLeft(sub), l.stream.FullState:
		return true
	case sub.of.isGlob():
		return sub.of.self != nil && l.hasLeft(sub.of.self)
	}
	// Most servers do not count structured names to the wildcard. One that is watched and not yet requested is not
	// missing.
	return resp.form != wildNone && !(sub.wanted() && structured(sub.name))
}
