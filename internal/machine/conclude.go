package machine

import "slices"

// conclude works out three things, and changes nothing but the response: what the end of a collection means for its
// members, what follows for names that the response leaves out, and which collections are complete with it.
func (r *reader) conclude() {
	slices.SortStableFunc(r.statements, func(a, b statement) int { return int(a.kind) - int(b.kind) })
	all := make([]statement, 0, len(r.statements))
	for _, it := range r.statements {
		if it.sub.isCollection() {
			all = append(all, r.membersGone(it)...)
		}
		all = append(all, it)
	}
	r.response.statements = append(all, r.absences()...)
	r.findCompleted()
}

// membersGone is what the removal of a collection means for its members (xRFC TP1): none exists but those that the response
// speaks of.
func (resp *response) membersGone(end statement) (all []statement) {
	kind := statesNotFound
	switch {
	case end.reason() == 0 && !end.drops(resp.link):
		return nil
	case end.kind == statesRemoved:
		kind = statesRemoved
	}
	// GLOB-3: the glob is empty.
	for _, member := range end.sub.of.inOrder() {
		if !member.exists() || member.seen == resp.serial {
			continue
		}
		all = append(all, statement{sub: member, kind: kind})
		if n := resp.link.cache.aliases.targets[member.name]; n != nil { // ALIAS-2
			for _, key := range n.subs {
				if key.seen != resp.serial {
					all = append(all, statement{sub: key, kind: kind})
				}
			}
		}
	}
	return all
}

// absences is what a full state states by leaving names out.
func (r *reader) absences() (all []statement) {
	if !r.tellsAll() || len(r.Errors) == 0 && r.mentioned == r.link.cache.subs.len() { // it lacks none
		return nil
	}
	// SOTW-9: only names of which this server's word counts.
	for sub := range r.link.owned() {
		// SOTW-10: an entry that is invalid, or an error, shows that the resource exists.
		if sub.seen == r.serial || sub.isCollection() {
			continue
		}
		if kind := r.leftOut(sub); kind != statesNothing {
			all = append(all, statement{sub: sub, kind: kind})
		}
	}
	slices.SortFunc(all, func(a, b statement) int { return byName(a.sub, b.sub) })
	return all
}

// leftOut is what follows for a subscription that a full state leaves out. For a name that was never received mostly nothing
// follows, since the server may have sent the state before it read the request. Three other functions conclude from a full
// state too: for the version that a new stream claims [link.versionToClaim], for silence about a value [Machine.timedOut],
// and for names that are watched beside a wildcard later [Machine.sent].
func (resp *response) leftOut(sub *subscription) statementKind {
	l := resp.link
	// Its watches wait for an answer: none has come, or its timer runs.
	waits := sub.wasSent() && (sub.status != StatusDoesNotExist || sub.timer != 0)
	switch {
	// A timer decides about another server's value; where there are no timers, the second full state that lacks it.
	case resp.endsByAbsence(sub) && sub.foreign() && (l.stream.hasTimers() || !sub.unconfirmed):
		return statesUnconfirmed
	case resp.endsByAbsence(sub):
		// ERR-7: the error of a watched name without a value stays, unless watches of the wildcard were told of it, or the
		// server is a file.
		if sub.held() || !sub.wanted() || l.cache.star.wanted() || l.stream.AlwaysFull {
			// SOTW-7: what is missing is deleted.
			return statesAbsent
		}
	// WILD-2, P-1: a file answers all names that wait, and the state of a legacy wildcard those that are watched beside it.
	case waits && (l.stream.AlwaysFull || l.form == wildLegacy):
		return statesAbsent
	case sub.status == StatusDoesNotExist && sub.foreign() && sub.wasSent(): // this server does not have it either
		return statesAbsent
	}
	return statesNothing
}

// endsByAbsence says whether a full state that lacks a resource ends it: a request for it, or for its collection, had
// left before the response came. The client cannot tell whether the server had read the request when it sent the response.
func (resp *response) endsByAbsence(sub *subscription) bool {
	l := resp.link
	switch {
	case !sub.exists(): // what never came is not deleted
		return false
	case sub.wasSent(), l.stream.AlwaysFull:
		return true
	case sub.foreign() && l.named(sub): // the response may be older than the request: leftOut only has it confirmed then
		return true
	case sub.of.isGlob():
		return sub.of.wasSent()
	}
	// Most servers do not count structured names to the wildcard. One that is watched and not yet requested is not
	// missing.
	return (l.form != wildNone || l.message.hadWild) && !(sub.wanted() && structured(sub.name))
}

// findCompleted lists the collections of which a response holds the first state: those that were requested from the
// server and have none yet, of the globs only those that it speaks of, or of a member, unless it speaks of
// everything or of nothing at all. Whatever is wrong with the response, it is the first state.
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
		if c.isGlob() && resp.isFirstStateOf(c) {
			resp.completes = append(resp.completes, c)
		}
	}
	// WILD-5, DELTA-14: any response makes the wildcard ready, an empty one too.
	if star := l.cache.star; resp.isFirstStateOf(star) {
		resp.completes = append(resp.completes, star)
	}
	sortCollections(resp.completes)
}

// isFirstStateOf says that a collection was requested from the server and has no first state yet.
func (resp *response) isFirstStateOf(c *collection) bool {
	return c.ownedBy(resp.link.stream) && c.wasSent() && !c.complete
}

// reason says why there is no such resource; 0 if the statement is another one.
func (it statement) reason() Reason {
	switch {
	// DELTA-15: a listed removal counts for each type.
	case it.kind == statesRemoved:
		return ReasonRemoved
	case it.kind == statesAbsent:
		return ReasonAbsent
	// DELTA-11: an entry without a body.
	// ERR-6, ERR-7: NOT_FOUND is a removal.
	case it.kind == statesNotFound, it.kind == statesError && it.err.Code == codeNotFound:
		return ReasonNotFound
	}
	return 0
}

// drops says whether an error or a refusal drops the held value, as the bootstrap may configure (gRFC A88).
func (it statement) drops(l *link) bool {
	return it.kind == statesTwice && l.dropsRefused(it.sub) ||
		it.kind == statesError && it.err.Code == codePermissionDenied && l.stream.FailOnDataErrors
}

// dropsRefused says whether the refusal of a resource drops the held value.
func (l *link) dropsRefused(sub *subscription) bool {
	// ERR-3: with fail_on_data_errors a data error drops the value.
	return l.stream.FailOnDataErrors && !sub.isCollection()
}

// takesAway says whether the held value goes because of a statement: it is a deletion that is not ignored (gRFC A53), or an
// error that drops it.
func (it statement) takesAway(l *link) bool {
	return it.reason() != 0 && !l.keepsForGood() || it.drops(l)
}
