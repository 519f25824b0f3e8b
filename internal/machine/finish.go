package machine

import (
	"fmt"
	"time"
)

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
	m.endCollectionFaults(resp)
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
		l.noteResume(resp)
	}
	m.completeCollections(now, resp)
	if resp.stands() {
		if resp.tellsAll() {
			l.lastFullState = resp.serial
		}
		m.spoken(now, resp) // after completeCollections: a Synced notice also says that trouble is over
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
		m.remove(now, sub, reason)
	case it.kind == statesTwice:
		fail(FaultRejected, errTwice, StatusNacked)
	case it.kind == statesError: // ERR-6
		fail(FaultData, &StatusError{it.err.Code, it.err.Message}, StatusReceivedError)
	case it.kind == statesUnconfirmed && resp.stands():
		m.unconfirmForeign(now, l, sub)
	}
}

// unconfirmForeign has the server confirm a value of another one that this full state leaves out.
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
		// The next full state that lacks it ends it, and no silence, so it is on no list. Before its request has left such a
		// state means nothing.
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

// endCollectionFault ends what was wrong with a collection, but for the silence of a server that has not told its first
// state.
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
		case !resp.link.has(&c.subscription), c.complete: // nobody watches it any more, or another server was faster
		case f == nil, f.Kind == FaultTimeout, f.Kind == FaultRejected && c.seen != resp.serial:
			m.markComplete(now, c, resp.Version)
		}
	}
}

// spoken: the server has spoken, whatever became of the response, and is owed an answer.
func (m *Machine) spoken(now time.Time, resp *response) {
	l := resp.link
	if resp.nacked() && resp.Version == l.resume {
		l.resume = "" // SOTW-2: something of that version was refused, though it was accepted before
	}
	l.latest = resp.Version
	m.recovered(l.stream)
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

// endedByResume says that what is wrong with a value is over by a first response that leaves it out.
func (l *link) endedByResume(sub *subscription) bool {
	// P-4: only a resume confirms what it leaves out.
	return l.stream.Delta && sub.fault() != nil && sub.listable() && !sub.unconfirmed
}

// endResponse ends the work on a response, whatever became of it.
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
