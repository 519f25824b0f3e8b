package machine

import (
	"cmp"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// fit chooses what a first delta message of so many bytes may list, under the budget:
// members of the wildcard, whose removal would not be heard of otherwise, before names.
// The other names are left for later messages, without their versions.
func (l *link) fit(size int, wanted, members []*subscription) (names, later, listed []*subscription) {
	budget := l.stream.limit()
	if budget == 0 {
		return wanted, nil, members
	}
	globs, wanted := globsFirst(wanted)
	for _, sub := range wanted[:globs] {
		size += l.sizeOfName(sub)
	}
	n := 0
	for n < len(members) && size+members[n].sizeOfVersion() <= budget {
		size += members[n].sizeOfVersion()
		n++
	}
	for _, sub := range members[n:] {
		l.withhold(sub)
	}
	k := globs
	if l.form == wildNone && k == 0 {
		k = 1 // no names at all would ask for everything
		size += l.sizeOfName(wanted[0]) + wanted[0].sizeOfVersion()
	}
	for k < len(wanted) {
		size += l.sizeOfName(wanted[k]) + wanted[k].sizeOfVersion()
		if size > budget {
			break
		}
		k++
	}
	for _, sub := range wanted[k:] {
		sub.withheld = sub.withheld || l.lists(sub)
	}
	return wanted[:k], wanted[k:], members[:n]
}

// globsFirst puts globs before other names: versions of their members mean nothing without
// them.
func globsFirst(subs []*subscription) (globs int, ordered []*subscription) {
	var rest []*subscription
	for _, sub := range subs {
		if sub.isCollection() {
			ordered = append(ordered, sub)
		} else {
			rest = append(rest, sub)
		}
	}
	return len(ordered), append(ordered, rest...)
}

// withhold notes a member that the server is not told of: it has to speak of it, or there
// is none.
func (l *link) withhold(sub *subscription) {
	sub.withheld = true
	l.unlisted = append(l.unlisted, sub)
}

// withholdForeign withholds the members that another server spoke of.
func (l *link) withholdForeign() {
	for sub := range l.owned() {
		if sub.foreign() && !sub.wanted() && !sub.recalled() {
			l.withhold(sub)
		}
	}
}

// sizeOfVersion is what an initial version takes; 0 if nothing is held.
func (sub *subscription) sizeOfVersion() int {
	if !sub.listed() {
		return 0
	}
	return wire.SizeInitialVersion(sub.name, sub.version)
}

// fitNames chooses the names of a later delta message, at least one.
func (l *link) fitNames(added []*subscription) []*subscription {
	budget, size := l.stream.limit(), 0
	if budget == 0 {
		return added
	}
	for i, sub := range added {
		if size += l.sizeOfName(sub); size > budget && i > 0 {
			l.postpone(added[i:])
			return added[:i]
		}
	}
	return added
}

// postpone leaves names for the next message, though the set of those that the server knows of has them.
func (l *link) postpone(subs []*subscription) {
	if len(subs) == 0 {
		return
	}
	for _, sub := range subs {
		l.names.set(l.spelled.onWire(sub), nil, false)
	}
	l.names.settle()
	for _, sub := range subs {
		sub.noted = l.owns(sub)
		l.names.set(l.spelled.onWire(sub), l.params(sub.of), true)
	}
}

// resumed: a delta response that answers the first request of a stream, and leaves out what that
// listed, has said that the version held is the server's own. What was refused since is taken back.
func (m *Machine) resumed(resp *response) {
	l := resp.link
	// P-4: only a resume confirms what it leaves out.
	if !resp.first || !l.stream.Delta {
		return
	}
	var subs []*subscription
	for sub := range l.owned() {
		if sub.status == StatusNacked && sub.listed() && !sub.withheld && sub.seen != resp.serial {
			subs = append(subs, sub)
		}
	}
	sortSubs(subs)
	for _, sub := range subs {
		m.absolve(sub)
	}
}

// silence: the server did not answer for a held resource whose version was withheld, so
// there is none.
func (m *Machine) silence(now time.Time, sub *subscription) {
	lacked := sub.withheld
	sub.withheld = false
	// LKG-5: silence keeps a stale value, unless a full state lacks it.
	if sub.stale() && !lacked {
		if !patient(sub.watches) {
			m.spoil(sub, &Fault{Kind: FaultTimeout, Err: ErrNoAnswer, At: now}, StatusTimeout, false)
		}
		return
	}
	if sub.stream().TransientTimeout > 0 {
		m.spoil(sub, &Fault{Kind: FaultTimeout, Err: ErrNoAnswer, At: now}, StatusTimeout, false)
		return
	}
	m.remove(now, sub, ReasonTimeout)
}

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
