package machine

import (
	"fmt"
	"time"
)

// finish applies what a response says beside values; then the answer is owed, unless the response's stream is over.
func (m *Machine) finish(now time.Time, resp *response) {
	l, s := resp.link, resp.link.stream
	stands := m.current(resp.ref) == s && s.state == up && s.types[l.cache.typ.URL] == l
	told := len(m.fx.Notify)
	for _, it := range resp.statements {
		m.applyStatement(now, resp, it, stands)
	}
	resp.changed = resp.changed || len(m.fx.Notify) > told
	m.endFaults(resp)
	if resp.brokenFile() {
		resp.invalid++
	} else if len(resp.lines) == 0 {
		l.accepted = now
	}
	// ACK-7: a refused version is not taken.
	if len(resp.lines) == 0 && !s.Delta && (stands || s.ResumeVersion && !resp.missed) {
		l.version, l.versionForm, l.versionOf = resp.Version, resp.form, resp.serial
		l.lapsed = l.lapsed && !resp.tellsAll()
	}
	if stands {
		m.recovered(s)
	}
	m.completeCollections(now, resp)
	if stands {
		m.noteLeftOut(now, resp)
		// ACK-1, S-23: each response is answered once.
		m.owe(now, resp)
	}
	m.endResponse(now, resp)
}

// applyStatement does what a statement says; stands says whether the response's stream still stands.
func (m *Machine) applyStatement(now time.Time, resp *response, it statement, stands bool) {
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
	case it.kind == statesAgree:
		sub.credit()
	case it.kind == statesDoubt && stands && m.confirmForeign(now, l, sub):
		m.remove(now, sub, ReasonAbsent)
	}
}

// confirmForeign starts the timer of another server's value that this full state leaves out. Without timers the second such
// state ends it, and the result is true.
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

// endFaults ends the errors of the wildcard, and of the collections that the response speaks of, unless it speaks of them
// by their own names.
func (m *Machine) endFaults(resp *response) {
	end := func(c *collection) {
		if c.self != nil && c.self.seen != resp.serial && resp.link.has(c.self) {
			m.endCollectionFault(c.self)
		}
	}
	for _, c := range resp.collections {
		end(c)
	}
	end(resp.link.cache.star)
}

// endCollectionFault ends what was wrong with a collection, but for the silence of a server that has not told its first
// state.
func (m *Machine) endCollectionFault(sub *subscription) {
	switch {
	case sub.fault() == nil:
	case sub.complete:
		m.endFault(sub)
	case sub.fault().Kind != FaultTimeout:
		sub.become(StatusRequested, nil)
	}
}

// completeCollections marks those of which a response holds the first state.
func (m *Machine) completeCollections(now time.Time, resp *response) {
	for _, c := range resp.completes {
		switch f := c.self.fault(); {
		case !resp.link.has(c.self), c.self.complete: // nobody watches it any more, or another server was faster
		case f == nil, f.Kind == FaultTimeout, f.Kind == FaultRejected && c.self.seen != resp.serial:
			m.markComplete(now, c.self, resp.Version)
		}
	}
}

// noteLeftOut notes what the server says by what a response leaves out; its stream still stands.
func (m *Machine) noteLeftOut(now time.Time, resp *response) {
	l := resp.link
	m.resumed(resp)
	if resp.tellsAll() && !resp.nameless {
		l.stated, l.sawAll = resp.serial, l.sawAll || l.form == wildLegacy
	}
	m.startUntimed(now, l)
	if resp.confirms || resp.serial == l.firstResponse {
		l.sweepTimer = 0 // the server goes on, and has a full period again
	}
}

// resumed: the first delta response of a stream confirms what it leaves out of the versions that the request listed,
// so refusals and errors of earlier streams are over, whoever stated them.
func (m *Machine) resumed(resp *response) {
	l := resp.link
	// P-4: only a resume confirms what it leaves out.
	if resp.serial != l.firstResponse || !l.stream.Delta {
		return
	}
	var subs []*subscription
	for sub := range l.owned() {
		if sub.fault() != nil && sub.listable() && !sub.unconfirmed && sub.seen != resp.serial {
			subs = append(subs, sub)
		}
	}
	sortSubs(subs)
	for _, sub := range subs {
		m.endFault(sub)
	}
}

// endResponse ends the work on a response, whatever became of it.
func (m *Machine) endResponse(now time.Time, resp *response) {
	l, s := resp.link, resp.link.stream
	l.busy = nil
	resp.noteRefusal()
	m.fx.Notify = append(m.fx.Notify, Notice{
		Kind: NoticeEnd, Server: s.server, TypeURL: l.cache.typ.URL, Version: resp.Version, Stream: resp.ref,
		Exchange: &Exchange{Valid: resp.valid, Invalid: resp.invalid},
	})
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
