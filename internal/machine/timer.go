package machine

import "time"

// await starts the does-not-exist timer of a resource or a collection, a full period, if a request for it has left and
// the server owes the answer (gRFC A57).
func (m *Machine) await(now time.Time, sub *subscription) {
	l := sub.link()
	switch {
	// DNE-2: the request has not left.
	case !l.hasLeft(sub):
	case sub.isCollection() && (sub.complete || !sub.wanted()):
	// DNE-3, LKG-9: a held resource has no timer, but a stale one has.
	case sub.held() && !sub.stale() && !sub.unconfirmed:
	// DNE-5, DNE-6: a refused value or an error on this stream is an answer. On an earlier stream it was none for this
	// one, nor is an absence.
	case l.faulted(sub) && !sub.unconfirmed:
	case sub.isCollection() && m.timeout(l.stream) <= 0:
		m.setAlarm(now, l.stream, sub, silence) // WILD-5: it is complete by silence all the same
	default:
		m.startTimer(now, l.stream, sub)
	}
}

// silence is how long a server may say nothing, where there are no does-not-exist timers, until that confirms what
// it was told of a collection.
const silence = 15 * time.Second

// startTimer starts the timer of who waits for an answer of the server, if there are timers.
func (m *Machine) startTimer(now time.Time, s *stream, w waiter) {
	// DNE-1: one timer for each resource, if there are any.
	if period := m.timeout(s); period > 0 {
		m.setAlarm(now, s, w, period)
	}
}

func (sub *subscription) ring(m *Machine, now time.Time) { m.answerTimeout(now, sub) }

// faulted says that the server has answered for a resource, by a value that was refused or by an error, so that
// its silence from now on means nothing. An answer on an earlier stream, or of another server, does not count.
func (l *link) faulted(sub *subscription) bool {
	return l.firstResponse != 0 && !sub.seen.before(l.firstResponse) && (sub.status == StatusNacked || sub.status == StatusReceivedError)
}

// awaitSubscribed starts the timer of a name that may have been requested already.
func (m *Machine) awaitSubscribed(now time.Time, sub *subscription) {
	l := sub.link()
	m.await(now, sub)
	if l.hasLeft(sub) && !l.stream.Delta && l.form == wildLegacy {
		l.untimed = append(l.untimed, sub)
	}
}
