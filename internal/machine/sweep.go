package machine

import (
	"slices"
	"time"
)

// sweepLater sets the alarm of the sweep, unless it is set: the server has a full period to confirm members. The same alarm has
// the store forget what complete collections do not have. It runs at the end of each step, for the streams that the step
// touched, so that a response and silence lead to the same sweep.
func (m *Machine) sweepLater(now time.Time, l *link) {
	if l.sweepTimer != 0 || !l.written {
		return
	}
	waits := l.passesOver()
	if !waits && l.silenceTells() {
		l.unconfirmStale()
		waits = l.firstResponse != 0 && len(l.toSweep) > 0 || l.unsettles()
	}
	if waits {
		l.sweepCount = len(l.toSweep)
		m.setAlarm(now, l.stream, (*sweep)(l), l.stream.silencePeriod())
	}
}

// silenceTells says that something follows from the server's silence: it has responded; or the first request listed versions,
// and its silence confirms them.
func (l *link) silenceTells() bool { return l.firstResponse != 0 || l.claimsHeld }

// passesOver says that a server responds for other types, and not for one whose values it gave before, and of which the first
// request listed no version, as after a fallback. Nothing follows from its silence: it may have removed the values.
func (l *link) passesOver() bool {
	// STREAM-6: a stream that lingers is not begun anew.
	return l.stream.watches > 0 && l.untold && l.firstResponse == 0 && l.stream.responded &&
		slices.ContainsFunc(l.toSweep, func(sub *subscription) bool {
			// A first request for a legacy wildcard never lists versions of names beside it, so a new stream is of no use for them.
			return sub.unconfirmed && l.has(sub) && sub.listable() && !l.besideWildcard(sub)
		})
}

// sweep is the alarm of a type some of whose members the server has to confirm.
type sweep link

func (w *sweep) alarm() *timer { return &w.sweepTimer }

// ring has the store forget what complete collections do not have, and removes the members that the server did not
// confirm. Where the type is guarded, the guard judges that first.
func (w *sweep) ring(m *Machine, now time.Time) {
	l := (*link)(w)
	// DELTA-1, S-13: a new stream lists what it gave.
	if l.passesOver() {
		m.restartPaced(now, l.stream)
		return
	}
	if !l.silenceTells() {
		return // the names of passesOver are not watched any more
	}
	m.forgetUnseenStored(l)
	if l.firstResponse == 0 || l.wantsStar() && l.outdated() {
		return // nothing is missing while the server has not responded, or while the wildcard waits for a new stream
	}
	newer := map[*subscription]bool{} // that have a period of their own
	for _, sub := range l.toSweep[l.sweepCount:] {
		newer[sub] = true
	}
	unconfirmed := slices.DeleteFunc(slices.Clone(l.toSweep[:l.sweepCount]), func(sub *subscription) bool { return l.decidedFor(sub) || newer[sub] })
	l.toSweep = slices.Clone(l.toSweep[l.sweepCount:])
	slices.SortFunc(unconfirmed, byName)
	unconfirmed = slices.Compact(unconfirmed)
	if !l.cache.typ.Guarded || len(unconfirmed) == 0 || l.keepsForGood() {
		m.removeUnconfirmed(now, unconfirmed)
		return
	}
	will := map[*subscription]bool{}
	for _, sub := range unconfirmed {
		will[sub] = false
	}
	m.askGuard(l, Proposal{ref: l.stream.ref, unconfirmed: unconfirmed}, will)
}

// sweepGuarded takes the judgement of a guard. Members that the guard keeps have to be confirmed again on the next
// stream.
func (m *Machine) sweepGuarded(now time.Time, l *link, ev Guarded) {
	unconfirmed := slices.DeleteFunc(ev.Proposal.unconfirmed, l.decidedFor)
	switch {
	case len(unconfirmed) == 0: // the server has spoken of all of it meanwhile
	case l.busy != nil: // another proposal is being judged, which knows nothing of this
		l.toSweep = append(l.toSweep, unconfirmed...)
	case ev.Err != nil:
		m.logType(l, warning, "a guard keeps what the server does not speak of")
	default:
		m.removeUnconfirmed(now, unconfirmed)
	}
}

// decidedFor says that the server has confirmed a member, that a timer of its own decides since its name is watched, or
// that it is gone or another server's.
func (l *link) decidedFor(sub *subscription) bool {
	return !sub.unconfirmed || sub.wanted() || !l.has(sub)
}

// removeUnconfirmed removes members that the server did not confirm.
func (m *Machine) removeUnconfirmed(now time.Time, subs []*subscription) {
	for _, sub := range subs {
		sub.unconfirmed = false
		// DELTA-4: it was not listed, so the server did not have to say that it is gone.
		m.takeDeletion(now, sub, ReasonAbsent)
	}
}
