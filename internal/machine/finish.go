package machine

import (
	"fmt"
	"time"
)

// finish applies what a response says beside values; then the client owes a reply, unless the response's stream is over.
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
	m.endCollectionFaults(resp)
	if resp.brokenFile() {
		resp.invalid = 1 // one for the file, though it has an error for each watch
	} else if !resp.nacked() {
		l.accepted = now
	}
	switch {
	case !resp.stands():
		l.resume = "" // what is held is not of the version any more that a new stream would claim
	// ACK-2, ACK-7: the version that the next request says is this one's, unless it is refused.
	case !resp.nacked() && !s.Delta:
		l.version = resp.Version
		l.noteResume(resp)
	}
	m.completeCollections(now, resp)
	if resp.stands() {
		if resp.tellsAll() {
			l.lastFullState = resp.serial
		}
		m.finishOnStream(now, resp) // after completeCollections, since NoticeSynced also says that trouble is over
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
		m.endCollectionFault(sub.of)
	case reason != 0:
		resp.took = true
		m.takeDeletion(now, sub, reason)
	case it.kind == statesTwice:
		fail(FaultRejected, errTwice, StatusNacked)
	case it.kind == statesError: // ERR-6
		fail(FaultData, &StatusError{it.err.Code, it.err.Message}, StatusReceivedError)
	case it.kind == statesUnconfirmed && resp.stands():
		m.unconfirmForeign(now, l, sub)
	}
}

// unconfirmForeign has the server confirm a value that another server gave and that this full state leaves out.
func (m *Machine) unconfirmForeign(now time.Time, l *link, sub *subscription) {
	switch {
	case l.stream.hasTimers():
		if sub.unconfirmed {
			return
		}
		if l.unconfirm(sub); sub.wanted() {
			m.startTimer(now, l.stream, sub)
		}
	// Members from the store are swept ([link.unconfirmStale]).
	case sub.wanted() || !sub.stale():
		// The next full state that lacks it ends it. Silence does not, so it is not in link.toSweep. A full state
		// before its request has left does not count.
		sub.unconfirmed = sub.wasSent() || sub.of.wasSent()
	}
}

// endCollectionFaults ends the errors of the wildcard, and of the collections that the response speaks of, unless it
// speaks of them by their own names.
func (m *Machine) endCollectionFaults(resp *response) {
	for _, c := range append(resp.collections, resp.link.cache.star) {
		if c.seen != resp.serial && resp.link.has(&c.subscription) {
			m.endCollectionFault(c)
		}
	}
}

// endCollectionFault ends what is wrong with a collection. What the client concluded from the server's silence stays until
// the collection has its first state.
func (m *Machine) endCollectionFault(c *collection) {
	switch {
	case c.fault() == nil:
	case c.complete:
		m.endFault(&c.subscription)
	case c.fault().Kind != FaultTimeout:
		c.become(StatusRequested, nil)
	}
}

// completeCollections marks those of which a response holds the first state.
func (m *Machine) completeCollections(now time.Time, resp *response) {
	for _, c := range resp.completes {
		switch f := c.fault(); {
		case !resp.link.has(&c.subscription), c.complete: // dropped, or another server's now; or complete meanwhile
		case f == nil, f.Kind == FaultTimeout, f.Kind == FaultRejected && c.seen != resp.serial:
			m.markComplete(now, c, resp.Version)
		}
	}
}

// finishOnStream does what follows from each response on its stream, accepted or refused: trouble with the server is over,
// timers begin, and the client owes a reply.
func (m *Machine) finishOnStream(now time.Time, resp *response) {
	l := resp.link
	// SOTW-2: what is held is not of the version that was accepted last, or something of that is refused now.
	if resp.nacked() && (resp.took || resp.Version == l.resume) {
		l.resume = ""
	}
	l.latest = resp.Version
	m.recovered(l.stream)
	m.afterFirst(now, resp)
	// ACK-1, S-23: each response is answered once.
	m.owe(now, resp)
}

// afterFirst does what follows from the first response of a stream. Timers begin: of values that the server has to confirm,
// and of names beside a legacy wildcard, unless responses hold everything, so that the wildcard's state answers for the
// names. In delta the response also confirms each value whose version the request listed and which it leaves out. So a
// refusal or an error of such a resource on an earlier stream is over, whichever server stated it.
func (m *Machine) afterFirst(now time.Time, resp *response) {
	l := resp.link
	if resp.serial != l.firstResponse {
		return
	}
	l.sweepTimer = 0 // the server has begun to confirm, and has a full period from now on
	beside := !l.stream.Delta && l.form == wildLegacy && !l.fullState()
	// WILD-2: the timers run from the first response.
	waits := func(sub *subscription) bool {
		return sub.wanted() && (sub.unconfirmed || beside && !sub.isCollection())
	}
	for _, sub := range l.ownedWhere(func(sub *subscription) bool { return sub.seen != resp.serial && (waits(sub) || l.endedByResume(sub)) }) {
		if waits(sub) {
			m.await(now, sub)
		} else {
			m.endFault(sub)
		}
	}
}

// endedByResume says whether a first response that leaves a resource out ends what is wrong with it.
func (l *link) endedByResume(sub *subscription) bool {
	// P-4: only where the request listed the version the server confirms what it leaves out.
	return l.stream.Delta && sub.fault() != nil && sub.listable() && !sub.unconfirmed
}

// endResponse ends the work on a response, whether it was accepted, refused, or came on a stream that is over.
func (m *Machine) endResponse(resp *response) {
	resp.link.busy = nil
	resp.noteRefusal()
	m.tellOf(resp.ref, NoticeEnd, resp.link.cache.typ.URL).Exchange = &Exchange{Valid: resp.valid, Invalid: resp.invalid}
}

// StatusError is an error that a server sent for a resource.
type StatusError struct {
	Code    int32 // of google.rpc.Status
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the server sent an error for the resource: code %d: %s", e.Code, e.Message)
}
