package machine

import (
	"slices"
	"time"
)

// answerUntimed starts timers of names beside a legacy wildcard, and of values that have to be confirmed, and
// starts them anew once the server has spoken. A value is held until then without one. Where responses hold
// everything, the wildcard's state answers instead, once it is complete on this stream.
func (m *Machine) answerUntimed(now time.Time, l *link) {
	if len(l.untimed) == 0 || !l.written {
		return
	}
	full := l.fullState()
	subs := slices.DeleteFunc(l.untimed, func(sub *subscription) bool { return !l.has(sub) })
	sortSubs(subs)
	subs = slices.Compact(subs)
	if l.untimed = subs; full && l.sawAll || !full && l.answered != 0 {
		l.untimed = nil
	}
	for _, sub := range subs {
		switch {
		case !sub.wanted():
		// P-1: the wildcard's state has no such name.
		case full && l.sawAll && !sub.known():
			m.remove(now, sub, ReasonAbsent)
		case sub.unconfirmed && l.untimed != nil: // held until the server has spoken at all
		case l.untimed == nil || sub.timer == 0:
			m.await(now, sub)
		}
	}
}
