package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// conclude works out what a response means for names that are invalid, have an error, or do not exist, and
// for collections. Nothing is changed here.
func (r *reader) conclude(now time.Time) {
	slices.SortStableFunc(r.statements, func(a, b statement) int { return int(a.kind) - int(b.kind) })
	resp := r.response
	var cs []conclusion
	drops := resp.link.stream.FailOnDataErrors
	for _, it := range r.statements {
		switch {
		case it.kind == statesTwice:
			f := &Fault{Kind: FaultRejected, Err: errTwice, At: now, Version: resp.Version}
			cs = append(cs, conclusion{sub: it.sub, kind: fails, fault: f, status: StatusNacked, drop: drops && !it.sub.isCollection()})
		// DELTA-15: of any type.
		case it.kind == statesRemoved:
			cs = resp.concludeRemoved(cs, it.sub, ReasonRemoved)
		// DELTA-11: an entry without a body.
		// ERR-6, ERR-7: NOT_FOUND is a removal.
		case it.kind == statesBare, it.err.Code == codeNotFound:
			cs = resp.concludeRemoved(cs, it.sub, ReasonNotFound)
		default:
			drop := drops && it.err.Code == codePermissionDenied
			if drop && it.sub.isCollection() {
				cs = resp.concludeRemoved(cs, it.sub, ReasonNotFound)
			}
			f := &Fault{Kind: FaultData, Err: &StatusError{it.err.Code, it.err.Message}, At: now, Version: resp.Version}
			cs = append(cs, conclusion{sub: it.sub, kind: fails, fault: f, status: StatusReceivedError, drop: drop})
		}
	}
	if !r.whole {
		cs = append(cs, resp.concludeAbsent()...)
	}
	resp.conclusions = cs
	resp.findCompleted()
}

// findCompleted lists the collections of which a response holds the first state.
func (resp *response) findCompleted() {
	// WILD-5: any response makes it ready.
	if c := resp.link.cache.star; resp.awaited(c) {
		resp.completes = append(resp.completes, c)
	}
	for _, c := range resp.globsAnswered() {
		if c.isGlob() && resp.awaited(c) {
			resp.completes = append(resp.completes, c)
		}
	}
}

// awaited says that a collection was requested from the server and has no first state yet.
func (resp *response) awaited(c *collection) bool {
	return c.ownedBy(resp.link.stream) && c.self != nil && resp.link.sent(c.self) && !c.self.complete
}

// globsAnswered lists the globs of which a response holds the first state: it speaks of them or
// of a member, or else of everything, or of nothing at all.
func (resp *response) globsAnswered() []*collection {
	cs := resp.collections
	// DELTA-14: an empty response makes all complete.
	if resp.link.fullState() || len(resp.Resources)+len(resp.Removed)+len(resp.RemovedNames)+len(resp.Errors) == 0 {
		cs = nil
		for _, c := range resp.link.cache.globs {
			cs = append(cs, c)
		}
	}
	slices.SortFunc(cs, byName)
	return cs
}

// concludeRemoved adds that there is no such resource; of a glob, that it has no members but those that the
// response holds (xRFC TP1).
func (resp *response) concludeRemoved(cs []conclusion, sub *subscription, reason Reason) []conclusion {
	if !sub.isCollection() {
		return append(cs, conclusion{sub: sub, reason: reason})
	}
	// GLOB-3: the glob is empty.
	for _, member := range sub.of.inOrder() {
		if member.known() && member.seen != resp.serial {
			cs = append(cs, conclusion{sub: member, reason: reason})
			for _, key := range resp.link.aliasesOf(member.name) { // ALIAS-2
				if key.seen != resp.serial {
					cs = append(cs, conclusion{sub: key, reason: reason})
				}
			}
		}
	}
	return cs
}

// concludeAbsent is what a response that holds everything means for what is missing in it. What was never
// received may have been subscribed to too late to be there, except at a server that is a file.
func (resp *response) concludeAbsent() (cs []conclusion) {
	l := resp.link
	// SOTW-8, SOTW-12: absence means nothing.
	if !resp.tellsAll() || resp.nameless {
		return nil
	}
	for sub := range l.owned() {
		subscribed := l.sent(sub)
		switch {
		// SOTW-10: what is invalid or has an error is there.
		case sub.seen == resp.serial || sub.isCollection():
		case resp.omits(sub) && sub.foreign():
			cs = append(cs, conclusion{sub: sub, kind: doubts})
		case resp.omits(sub):
			// Of a member the server had spoken, which the wildcard was told, and a file speaks of all.
			if sub.held() || !sub.wanted() || l.cache.star.wanted() || l.stream.FullState {
				// SOTW-7: what is missing is deleted.
				cs = append(cs, conclusion{sub: sub, reason: ReasonAbsent})
			}
		case l.stream.FullState && (sub.status == StatusRequested || sub.overshadowed()) && subscribed:
			cs = append(cs, conclusion{sub: sub, reason: ReasonAbsent})
		case sub.status == StatusDoesNotExist && subscribed && sub.foreign():
			cs = append(cs, conclusion{sub: sub, kind: agrees})
		}
	}
	slices.SortFunc(cs, func(a, b conclusion) int { return strings.Compare(a.sub.name, b.sub.name) })
	return cs
}

// applyConclusion does what a conclusion says; live says that the response's stream still stands.
func (m *Machine) applyConclusion(now time.Time, resp *response, c conclusion, live bool) {
	switch {
	case !resp.link.has(c.sub):
	case c.kind == removes:
		m.remove(now, c.sub, c.reason)
	case c.kind == fails:
		m.noteFault(c.sub, c.fault, c.status, c.drop)
	case c.kind == agrees:
		c.sub.credit()
	case live && m.confirmForeign(now, resp.link, c.sub):
		m.remove(now, c.sub, ReasonAbsent)
	}
}

// omits says whether a response that holds everything else ends what is known of a subscription: it, or what
// covers it, was requested when the response was sent.
func (resp *response) omits(sub *subscription) bool {
	l := resp.link
	switch {
	case !sub.known():
		return false
	case l.sent(sub), l.stream.FullState:
		return true
	case sub.of.isGlob():
		return sub.of.self != nil && l.sent(sub.of.self)
	}
	// A structured name is none of the wildcard's to most servers, and who watches it has not asked yet.
	return resp.form != wildNone && !(sub.wanted() && structured(sub.name))
}

// confirmForeign has the server confirm another server's value, that a full state lacks. Where there are no timers
// it goes with the second such state: it says whether this is one.
func (m *Machine) confirmForeign(now time.Time, l *link, sub *subscription) (gone bool) {
	switch {
	case m.timeout(l.stream) <= 0:
		gone, sub.unconfirmed = sub.unconfirmed, !sub.unconfirmed
	case !sub.unconfirmed:
		if l.unconfirm(sub); sub.wanted() {
			m.startTimer(now, l.stream, sub)
		}
	}
	return gone
}

// StatusError is an error that a server sent for a resource.
type StatusError struct {
	Code    int32 // of google.rpc.Status
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the server sent an error for the resource: code %d: %s", e.Code, e.Message)
}
