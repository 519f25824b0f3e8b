package machine

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// await starts the does-not-exist timer of a resource or a collection, a full period, if the server owes an answer
// (gRFC A57). Each start of such a timer goes through here, but for a value that a full state leaves out
// ([Machine.unconfirmForeign]), and for names at a server that is not the active one ([aside]). Those of names that waited
// on the stream before are shortened ([hushes]).
func (m *Machine) await(now time.Time, sub *subscription) {
	l := sub.link()
	if !l.owesAnswer(sub) {
		return
	}
	if sub.isCollection() {
		m.setAlarm(now, l.stream, sub, l.stream.silencePeriod()) // WILD-5: it is complete by silence also where there are no timers
		return
	}
	m.startTimer(now, l.stream, sub)
}

// owesAnswer says whether the server has to answer for a resource or a collection.
func (l *link) owesAnswer(sub *subscription) bool {
	switch {
	// DNE-2, WILD-5: the request has left; no request names what is only a member.
	case !sub.subscribed, l.message.names(sub), sub.isCollection() && (sub.of.complete || !sub.wanted()):
		return false
	case sub.unconfirmed:
		// P-1: a server that has said nothing at all on a stream lacks nothing.
		return l.firstResponse != 0
	// DNE-3, LKG-9: a held resource has no timer, but a stale one has, and one that the server has to confirm.
	case sub.held() && !sub.stale():
		return false
	}
	otherwise := sub.status == StatusNacked || sub.status == StatusReceivedError || sub.absent() && sub.reason != ReasonTimeout
	// DNE-5, DNE-6: a refused value, an error or an absence on this stream is an answer, which may be faster than the news
	// that the request has left. On an earlier stream it was none for this one.
	return !(otherwise && l.spokeOf(sub))
}

// spokeOf says that the server has spoken of a resource, on this stream and not on an earlier one.
func (l *link) spokeOf(sub *subscription) bool {
	return l.firstResponse != 0 && !sub.seen.before(l.firstResponse)
}

// silence is how long a server may say nothing, where there are no does-not-exist timers, until that confirms what
// it was told of a collection.
const silence = 15 * time.Second

// silencePeriod is how long a server may say nothing of what a collection has.
func (s *stream) silencePeriod() time.Duration { return cmp.Or(max(s.timeout, 0), silence) }

// startTimer starts the does-not-exist timer of w, if the server has such timers.
func (m *Machine) startTimer(now time.Time, s *stream, w waiter) {
	// DNE-1: one timer for each resource, if there are any.
	if s.hasTimers() {
		m.setAlarm(now, s, w, s.timeout)
	}
}

// ring: the server did not answer in time.
func (sub *subscription) ring(m *Machine, now time.Time) {
	switch l := sub.link(); {
	// WILD-5: the server sent names and has nothing to add.
	case sub.isCollection() && sub.of.needsNoMore():
		m.markComplete(now, sub.of, l.version)
	case !l.stream.hasTimers(): // a collection has a timer also here, only for the case before
	default:
		m.timedOut(now, sub)
	}
}

// timedOut decides what follows when the server did not answer for a name, or did not confirm what is held: mostly that there
// is no such resource.
func (m *Machine) timedOut(now time.Time, sub *subscription) {
	l, known := sub.link(), sub.usable()
	// A full state, or the complete one of a collection, lacks it.
	lacked := sub.unconfirmed || sub.seen.before(l.lastFullState) || sub.of.complete
	sub.unconfirmed = false
	if sub.isStar() && l.form == wildExplicit && !known {
		m.warnStar(l)
	}
	if patient(sub.watches()) && !(known && lacked) {
		return // E-3: the watches wait without end
	}
	switch {
	// WILD-7: nobody watches its name any more, so it goes as other members do that the server does not confirm.
	case !sub.lives():
		m.takeDeletion(now, sub, ReasonTimeout)
	// DNE-8: silence is an error. A stale value stays, unless a state lacks it.
	case l.stream.TransientTimeout > 0, sub.stale() && !lacked:
		m.setStatus(sub, StatusTimeout, ReasonTimeout, &Fault{Kind: FaultTimeout, Err: ErrNoAnswer, At: now}, sub.informed())
	// LKG-5: what a state lacks goes from the store too, if the store has not answered yet.
	case known, lacked && !sub.loaded():
		m.takeDeletion(now, sub, ReasonTimeout)
	default:
		// DNE-7, S-9: there is no such resource; the subscription stays.
		m.setStatus(sub, StatusDoesNotExist, ReasonTimeout, nil, sub.informed())
	}
}

// ErrNoAnswer is the error of a [FaultTimeout] of a resource or a collection.
var ErrNoAnswer = errors.New("the server did not answer in time")

// fetch is the alarm of a watch that is to be told when it has no answer within its FetchTimeout
// (envoy.config.core.v3.ConfigSource.initial_fetch_timeout). The time begins with the watch, and goes on when the stream ends.
type fetch Watch

// ring tells the watch that it has no answer yet. The subscription stays. The active server may have another stream by now,
// which the client does not read while handlers still have a response of it.
func (f *fetch) ring(m *Machine, now time.Time) {
	w := (*Watch)(f)
	if !w.sub.unanswered() || w.sub.usable() {
		return
	}
	if s := w.sub.stream(); s.clock.stopped() {
		m.setAlarm(now, s, f, min(w.FetchTimeout, s.clock.still(now))) // FC-1: for as long as the server was not read
		return
	}
	n := m.noticeTo(w.sub, NoticeFailed, []*Watch{w}, nil)
	n.Fault, n.Instead = &Fault{Kind: FaultTimeout, Err: &FetchTimeoutError{w.FetchTimeout}, At: now}, w.sub.link().instead
}

// FetchTimeoutError is that a watch had no answer in time.
type FetchTimeoutError struct{ After time.Duration }

func (e *FetchTimeoutError) Error() string {
	return fmt.Sprintf("no answer within the initial fetch timeout of %v", e.After)
}
