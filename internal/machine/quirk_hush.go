package machine

import (
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// hush is how long a name that was added to those of a stream in state of the world may stay
// unknown, and the server be quiet, until it is requested on a new stream. Servers that were
// written for Envoy may look at the version of a request alone, and wait for the next one
// whatever else is requested: Cilium's does. Envoy, with a stream for each subscription, never
// notices. A first request says no version while anything is lacking, so it is answered.
//
// On aggregated streams and in delta the same happens with names that were unsubscribed on the stream before: go-control-plane
// before v0.14 compares with what it has sent, and forgets an unsubscribed name only with its next response. A server that
// sends what nobody subscribed to may do the same.
const hush = 2 * time.Second

// hushes are the names of a stream's types that were added, and of which nothing is known yet.
type hushes struct {
	noQuirk
	of   byType[unheard]
	left nameHashes // names that are not subscribed to, and of which the server has sent a value, at any time

	// until is when the does-not-exist timer of each name that waits is over, on the stream's clock. It is noted when the stream
	// is begun anew for other names: with full timers on each stream, a program that always adds names would never be told of
	// an absence.
	until map[*subscription]time.Duration
}

// unheard are those of one type.
type unheard struct {
	quirk *hushes
	link  *link
	names []addedName   // in the order of their times; some maybe known since
	heard time.Duration // when the server last spoke of the type
	timer
}

type addedName struct {
	sub *subscription
	at  time.Duration // on the stream's clock, when it may stay unknown no longer
}

func (q *hushes) forget() {
	for _, u := range q.of {
		u.timer = 0
	}
	clear(q.of)
	clear(q.left)
}

// ended: the server has ended the stream, so all names have a full period on the next.
func (q *hushes) ended(*Machine, time.Time, *ending) { clear(q.until) }

func (q *hushes) passed(l *link, name []byte, _ *wire.Resource) {
	if l.form == wildNone && !l.stream.stateless() {
		q.left.add(l, name)
	}
}

// written waits for news of names that were added, where the server might not hear of them.
func (q *hushes) written(m *Machine, now time.Time, l *link, first bool, fresh []*subscription) {
	q.resume(m, now, l, fresh)
	if first || !l.mightMissNames() && len(q.left[l]) == 0 {
		return
	}
	u := q.of.on(l)
	u.quirk, u.link = q, l
	if len(u.names) > 64+2*l.watched { // most may be over; those at the front alone go by themselves
		u.names = slices.DeleteFunc(u.names, func(n addedName) bool { return !l.unknown(n.sub) })
	}
	at := l.stream.clock.at(now) + l.stream.hush()
	for _, sub := range fresh {
		if back := q.left.take(l, sub.onWire()); (back || l.mightMissNames()) && l.unknown(sub) {
			u.names = append(u.names, addedName{sub, at})
		}
	}
	u.wake(m, now)
}

// resume gives names that waited when the stream was begun anew the rest of their time, and a quarter of it at the least.
func (q *hushes) resume(m *Machine, now time.Time, l *link, fresh []*subscription) {
	s := l.stream
	for _, sub := range fresh {
		if at, waited := q.until[sub]; waited && sub.timer != 0 {
			m.setAlarm(now, s, sub, max(at-s.clock.at(now), s.timeout/4))
			delete(q.until, sub)
		}
	}
}

// received: the server spoke of the type.
func (q *hushes) received(m *Machine, now time.Time, l *link) {
	if u := q.of[l]; u != nil {
		u.heard = l.stream.clock.at(now)
		u.wake(m, now)
	}
}

// hush is how long a name may stay unknown: not so long that the does-not-exist timer decides.
func (s *stream) hush() time.Duration {
	if s.hasTimers() {
		return min(hush, (s.timeout+1)/2)
	}
	return hush
}

// mightMissNames says whether a server might ignore each name that is added: in state of the world, on a stream for one type.
// The request of a legacy wildcard has no names; polls ask anew by themselves, and files hold everything.
func (l *link) mightMissNames() bool {
	s := l.stream
	return !s.Delta && !s.stateless() && s.typ != nil && l.form != wildLegacy
}

// when is the time at which the first name is requested on a new stream: not while the server has just responded.
func (u *unheard) when() time.Duration {
	return max(u.names[0].at, u.heard+u.link.stream.hush())
}

// wake sets the alarm for the first name. It sets none while the server has not responded on the stream, except in delta, where
// the server may have nothing to answer.
func (u *unheard) wake(m *Machine, now time.Time) {
	if s := u.link.stream; (s.Delta || u.link.firstResponse != 0) && len(u.names) > 0 {
		m.setAlarm(now, s, u, u.when()-s.clock.at(now))
	}
}

// ring has the names requested on a new stream that the server did not answer in time. A name that nobody watches, and whose
// unsubscription the server was not told yet, may be watched again, so its time begins anew.
func (u *unheard) ring(m *Machine, now time.Time) {
	for len(u.names) > 0 && !u.link.unknown(u.names[0].sub) {
		u.names = u.names[1:]
	}
	s := u.link.stream
	if at := s.clock.at(now); len(u.names) > 0 && u.when() <= at {
		if u.names[0].sub.wanted() {
			u.quirk.restart(m, now, u)
			return
		}
		u.names[0].at = at + s.hush()
		u.names = append(u.names[1:], u.names[0])
	}
	u.wake(m, now)
}

// restart begins the stream anew, or waits until that may be. The waits grow to half of the does-not-exist timer, so that a
// name that is added right after such a stream has begun is requested on the next in time.
func (q *hushes) restart(m *Machine, now time.Time, u *unheard) {
	s := u.link.stream
	wait := s.restarts.until.Sub(now)
	if s.hasTimers() {
		wait -= max(0, s.restarts.wait-s.timeout/2)
	}
	if wait > 0 { // a program may add names, or end watches and begin them again, without end
		m.setAlarm(now, s, u, wait)
		return
	}
	for sub := range q.until {
		if !sub.wanted() || sub.held() {
			delete(q.until, sub)
		}
	}
	for w, at := range s.waiters() {
		if sub, of := w.(*subscription); of && !sub.held() && !sub.isCollection() {
			q.until[sub] = at
		}
	}
	m.restartPaced(now, s) // S-30: the names are requested on a new stream
}

// unknown says that no server has answered for a resource that is subscribed to.
func (l *link) unknown(sub *subscription) bool {
	return l.has(sub) && sub.subscribed && sub.unanswered() && !sub.isCollection()
}
