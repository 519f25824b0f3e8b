package machine

import (
	"slices"
	"time"
)

// startUntimed starts timers that had to wait until the server spoke: of names beside a legacy wildcard, and of
// values to be confirmed. Where responses hold everything, the wildcard's first state on this stream answers instead.
func (m *Machine) startUntimed(now time.Time, l *link) {
	if len(l.untimed) == 0 || !l.written {
		return
	}
	full := l.fullState()
	subs := slices.DeleteFunc(l.untimed, func(sub *subscription) bool { return !l.has(sub) })
	sortSubs(subs)
	subs = slices.Compact(subs)
	if l.untimed = subs; full && l.sawAll || !full && l.firstResponse != 0 {
		l.untimed = nil
	}
	for _, sub := range subs {
		switch {
		case !sub.wanted():
		// WILD-2, P-1: the wildcard's state has no such name.
		case full && l.sawAll && !sub.known():
			m.remove(now, sub, ReasonAbsent)
		case sub.unconfirmed && l.untimed != nil: // held until the server has spoken at all
		case l.untimed == nil || sub.timer == 0:
			m.await(now, sub)
		}
	}
}
