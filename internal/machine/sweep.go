package machine

import (
	"cmp"
	"slices"
	"time"
)

// settling waits for the end of the first state of a stream that was not told of all
// members: until none of them has been spoken of for as long as a resource may take.
func (m *Machine) settling(now time.Time, resp *response) {
	l := resp.link
	l.withholdStale()
	if (len(l.unlisted) > 0 || l.unsettled) && (l.sweepTimer == 0 || resp.resumes) {
		m.awaitUnlisted(now, l)
	}
}

// sweepAlone is how long is waited for members that a server was not told of where there
// are no does-not-exist timers: they have to end all the same.
const sweepAlone = 15 * time.Second

// unlisted is a type some of whose members the server was not told of.
type unlisted link

// awaitUnlisted gives the server a full period to speak of them.
func (m *Machine) awaitUnlisted(now time.Time, l *link) {
	m.setAlarm(now, l.stream, (*unlisted)(l), cmp.Or(max(m.timeout(l.stream), 0), sweepAlone))
}

func (u *unlisted) alarm() *uint32 { return &u.sweepTimer }

func (u *unlisted) order() (alarmKind, string, string) { return alarmAnswer, u.typ.URL, "" }

func (u *unlisted) ring(m *Machine, now time.Time, _ *stream) { m.sweep(now, (*link)(u)) }

// sweep removes the members that the server was not told of and did not speak of, if a guard
// does not mind.
func (m *Machine) sweep(now time.Time, l *link) {
	unlisted := slices.DeleteFunc(l.unlisted, l.accountedFor)
	l.unlisted, l.sweepTimer = nil, 0
	m.settleStored(l)
	sortSubs(unlisted)
	if !l.typ.Guarded || len(unlisted) == 0 || l.keepsDeleted() {
		m.removeUnlisted(now, unlisted)
		return
	}
	going := map[*subscription]bool{}
	for _, sub := range unlisted {
		going[sub] = true
	}
	m.propound(l, Proposal{ref: l.stream.ref(), unlisted: unlisted}, going)
}

// sweepGuarded takes the judgement of a guard. What is kept is told of again with the next
// stream.
func (m *Machine) sweepGuarded(now time.Time, ev Guarded) {
	p := ev.Proposal
	l := m.current(p.ref).types[p.TypeURL]
	unlisted := slices.DeleteFunc(p.unlisted, l.accountedFor)
	switch {
	case len(unlisted) == 0: // the server has spoken of all of it meanwhile
	case l.busy != nil: // another proposal is being judged, which knows nothing of this
		l.unlisted = append(l.unlisted, unlisted...)
		m.awaitUnlisted(now, l)
	case ev.Err != nil:
		m.fx.Log = append(m.fx.Log, Log{Warn: true, Server: p.Server, TypeURL: p.TypeURL, Text: "a guard keeps what the server does not speak of"})
	default:
		m.removeUnlisted(now, unlisted)
	}
}

// accountedFor says that the server has spoken of what it was not told of, or that this is of no
// interest here any more.
func (l *link) accountedFor(sub *subscription) bool {
	return !sub.withheld || sub.wanted() || !l.has(sub)
}

func (m *Machine) removeUnlisted(now time.Time, subs []*subscription) {
	for _, sub := range subs {
		sub.withheld = false
		m.remove(now, sub, ReasonAbsent)
	}
}
