package machine

import (
	"fmt"
	"slices"
	"time"
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
		if c.isGlob() && resp.isFirstStateOf(c) {
			resp.completes = append(resp.completes, c)
		}
	}
	// WILD-5, DELTA-14: any response makes the wildcard ready, an empty one too.
	if star := l.cache.star; resp.isFirstStateOf(star) {
		resp.completes = append(resp.completes, star)
	}
	slices.SortFunc(resp.completes, byName)
}

// isFirstStateOf says that a collection was requested from the server and has no first state yet.
func (resp *response) isFirstStateOf(c *collection) bool {
	return c.ownedBy(resp.link.stream) && c.self.wasSent() && !c.complete
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

// absent is what a full state means for names that it lacks. A name that was never received may have been
// subscribed to too late for it, so nothing follows, except at a file.
func (r *reader) absent() (all []statement) {
	if !r.tellsAll() || len(r.Errors) == 0 && r.mentioned == r.link.cache.subs.len() { // it lacks none
		return nil
	}
	// SOTW-9: what has another active server stays.
	// SOTW-10: what is invalid or has an error is there.
	for _, sub := range r.link.ownedWhere(func(sub *subscription) bool {
		return sub.seen != r.serial && !sub.isCollection() && r.leftOut(sub) != statesNothing
	}) {
		all = append(all, statement{sub: sub, kind: r.leftOut(sub)})
	}
	return all
}

// leftOut is what follows for a subscription that a full state leaves out. Others conclude from such a state too: the
// version that a new stream claims ([link.versionToClaim]), the silence about a value ([Machine.unconfirmedTimeout]), and
// names that are watched beside a wildcard later ([Machine.sent]).
func (resp *response) leftOut(sub *subscription) statementKind {
	l := resp.link
	switch {
	case resp.omits(sub) && sub.foreign():
		return statesDoubt
	case resp.omits(sub):
		// ERR-7: an error stays. A watched name without a value ends only where the wildcard was told of it, or at a file.
		if sub.held() || !sub.wanted() || l.cache.star.wanted() || l.stream.FullState {
			// SOTW-7: what is missing is deleted.
			return statesAbsent
		}
	// WILD-2, P-1: a file answers all names that wait, and the state of a legacy wildcard those that are watched beside it.
	case (l.stream.FullState || l.form == wildLegacy) && sub.wasSent() && (sub.status != StatusDoesNotExist || sub.timer != 0 || sub.overshadowed()):
		return statesAbsent
	case sub.status == StatusDoesNotExist && sub.foreign() && sub.wasSent(): // this server does not have it either
		return statesAbsent
	}
	return statesNothing
}

// omits says whether a full state that lacks a resource ends it: a request for it, or for its collection, had
// left when the server sent the response.
func (resp *response) omits(sub *subscription) bool {
	l := resp.link
	switch {
	case !sub.exists():
		return false
	case sub.wasSent(), l.stream.FullState:
		return true
	case sub.foreign() && l.named(sub): // maybe sent before the request: what another server said is only doubted
		return true
	case sub.of.isGlob():
		return sub.of.self.wasSent()
	}
	// Most servers do not count structured names to the wildcard. One that is watched and not yet requested is not
	// missing.
	return (l.form != wildNone || l.message.endsWild) && !(sub.wanted() && structured(sub.name))
}

// finish applies what a response says beside values; then the answer is owed, unless the response's stream is over.
func (m *Machine) finish(now time.Time, resp *response) {
	l, s := resp.link, resp.link.stream
	told := len(m.fx.Notify)
	for _, it := range resp.statements {
		if it.kind == statesError { // METRIC-1
			resp.invalid++
		}
		m.applyStatement(now, resp, it)
	}
	resp.changed = resp.changed || len(m.fx.Notify) > told
	m.endFaults(resp)
	if resp.brokenFile() {
		resp.invalid = 1 // however many watches it is told
	} else if !resp.nacked() {
		l.accepted = now
	}
	switch {
	case !resp.stands():
		l.resume = "" // what is held is not of that version any more
	// ACK-2, ACK-7: the version that the next request says is this one's, unless it is refused.
	case !resp.nacked() && !s.Delta:
		l.version = resp.Version
		l.mayResume(resp)
	}
	m.completeCollections(now, resp)
	if resp.stands() {
		if resp.tellsAll() {
			l.stated = resp.serial
		}
		m.answer(now, resp) // what was told to be synced need not be told that all is well
	}
	m.endResponse(resp)
}

// applyStatement does what a statement says.
func (m *Machine) applyStatement(now time.Time, resp *response, it statement) {
	l, sub := resp.link, it.sub
	fail := func(kind FaultKind, err error, status Status) {
		m.noteFault(sub, &Fault{Kind: kind, Err: err, At: now, Version: resp.Version}, status, it.drops(l))
	}
	switch reason := it.reason(); {
	case !l.has(sub):
	case reason != 0 && sub.isCollection():
		m.endCollectionFault(sub)
	case reason != 0:
		m.remove(now, sub, reason)
	case it.kind == statesTwice:
		fail(FaultRejected, errTwice, StatusNacked)
	case it.kind == statesError: // ERR-6
		fail(FaultData, &StatusError{it.err.Code, it.err.Message}, StatusReceivedError)
	case it.kind == statesDoubt && resp.stands() && m.confirmForeign(now, l, sub):
		m.remove(now, sub, ReasonAbsent)
	}
}

// confirmForeign starts the timer of another server's value that this full state leaves out. Without timers the second such
// state ends it, and the result is true.
func (m *Machine) confirmForeign(now time.Time, l *link, sub *subscription) (gone bool) {
	switch {
	case l.stream.timeout <= 0 && !sub.wasSent(): // the server may not have been asked yet
	case l.stream.timeout <= 0:
		gone, sub.unconfirmed = sub.unconfirmed, !sub.unconfirmed // it is on no list: no silence ends it
	case !sub.unconfirmed:
		if l.unconfirm(sub); sub.wanted() {
			m.startTimer(now, l.stream, sub)
		}
	}
	return gone
}

// endFaults ends the errors of the wildcard, and of the collections that the response speaks of, unless it speaks of them
// by their own names.
func (m *Machine) endFaults(resp *response) {
	for _, c := range append(resp.collections, resp.link.cache.star) {
		if c.self.seen != resp.serial && resp.link.has(c.self) {
			m.endCollectionFault(c.self)
		}
	}
}

// endCollectionFault ends what was wrong with a collection, but for the silence of a server that has not told its first
// state.
func (m *Machine) endCollectionFault(sub *subscription) {
	switch {
	case sub.fault() == nil:
	case sub.of.complete:
		m.endFault(sub)
	case sub.fault().Kind != FaultTimeout:
		sub.become(StatusRequested, nil)
	}
}

// completeCollections marks those of which a response holds the first state.
func (m *Machine) completeCollections(now time.Time, resp *response) {
	for _, c := range resp.completes {
		switch f := c.self.fault(); {
		case !resp.link.has(c.self), c.complete: // nobody watches it any more, or another server was faster
		case f == nil, f.Kind == FaultTimeout, f.Kind == FaultRejected && c.self.seen != resp.serial:
			m.markComplete(now, c.self, resp.Version)
		}
	}
}

// answer: the server has spoken, whatever became of the response, and is owed an answer.
func (m *Machine) answer(now time.Time, resp *response) {
	if l := resp.link; resp.nacked() && resp.Version == l.resume {
		l.resume = "" // SOTW-2: something of that version was refused, though it was accepted before
	}
	m.recovered(resp.link.stream)
	m.afterFirst(now, resp)
	// ACK-1, S-23: each response is answered once.
	m.owe(now, resp)
}

// afterFirst does what follows from the first response of a stream. It begins timers: of values to be confirmed, and
// anew of names beside a legacy wildcard, unless responses hold everything, so that its state answers for them. In delta
// it confirms what it leaves out of the versions that the request listed, so refusals and errors of earlier streams are
// over, whoever stated them.
func (m *Machine) afterFirst(now time.Time, resp *response) {
	l := resp.link
	if resp.serial != l.firstResponse {
		return
	}
	l.sweepTimer = 0 // the server goes on, and has a full period again
	beside := !l.stream.Delta && l.form == wildLegacy && !l.fullState()
	if !l.stream.Delta && !beside {
		return
	}
	// WILD-2: the timers run from the first response.
	waits := func(sub *subscription) bool {
		return sub.wanted() && (sub.unconfirmed || beside && !sub.isCollection())
	}
	for _, sub := range l.ownedWhere(func(sub *subscription) bool { return sub.seen != resp.serial && (waits(sub) || l.resumes(sub)) }) {
		if waits(sub) {
			m.await(now, sub)
		} else {
			m.endFault(sub)
		}
	}
}

// resumes says that what is wrong with a value is over by a first response that leaves it out.
func (l *link) resumes(sub *subscription) bool {
	// P-4: only a resume confirms what it leaves out.
	return l.stream.Delta && sub.fault() != nil && sub.listable() && !sub.unconfirmed
}

// endResponse ends the work on a response, whatever became of it.
func (m *Machine) endResponse(resp *response) {
	resp.link.busy = nil
	resp.noteRefusal()
	n := m.tellOf(resp.ref, NoticeEnd, resp.link.cache.typ.URL)
	n.Version, n.Exchange = resp.Version, &Exchange{Valid: resp.valid, Invalid: resp.invalid}
	m.fx.Consumed = append(m.fx.Consumed, resp.ref)
}

// StatusError is an error that a server sent for a resource.
type StatusError struct {
	Code    int32 // of google.rpc.Status
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the server sent an error for the resource: code %d: %s", e.Code, e.Message)
}
