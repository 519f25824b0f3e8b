package machine

import (
	"slices"
	"time"
)

// answerBeside answers names that stand beside a legacy wildcard. Where responses hold everything the
// wildcard's state does, once it is complete on this stream; where not, their timers, which begin anew
// with the first response. In delta that is so of what is held and has to be confirmed, in other forms too.
func (m *Machine) answerBeside(now time.Time, l *link) {
	if len(l.beside) == 0 || !l.written {
		return
	}
	full := l.fullState()
	subs := slices.DeleteFunc(l.beside, func(sub *subscription) bool { return !l.has(sub) })
	sortSubs(subs)
	subs = slices.Compact(subs)
	if l.beside = subs; full && l.sawAll || !full && l.answered != 0 {
		l.beside = nil
	}
	for _, sub := range subs {
		switch {
		case !sub.wanted():
		// P-1: the wildcard's state has no such name.
		case full && l.sawAll && !sub.known():
			m.remove(now, sub, ReasonAbsent)
		case sub.unconfirmed && l.beside != nil: // held until the server has spoken at all
		case l.beside == nil || sub.timer == 0:
			m.await(now, sub)
		}
	}
}
