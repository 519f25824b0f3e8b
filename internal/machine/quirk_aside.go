package machine

import (
	"slices"
	"time"
)

// A server that stands by may have nothing of what is watched, and be silent on its new stream. While the active server
// cannot be reached, no other server can say that the resource does not exist, so this silence is the answer.
type aside struct {
	noQuirk
	stream *stream
	named  map[*subscription]*unsaid // by a request on this incarnation
}

// unsaid is a name in a request, of which the server has said nothing yet.
type unsaid struct {
	quirk *aside
	sub   *subscription
	timer
}

func (q *aside) forget() {
	for _, u := range q.named {
		u.timer = 0
	}
	clear(q.named)
}

func (q *aside) written(m *Machine, now time.Time, _ *link, _ bool, fresh []*subscription) {
	if !q.stream.hasTimers() {
		return // silence is no answer
	}
	for _, sub := range fresh {
		if !q.waitsFor(sub) {
			continue
		}
		if q.named[sub] == nil {
			q.named[sub] = &unsaid{quirk: q, sub: sub}
		}
		m.startTimer(now, q.stream, q.named[sub]) // from the last request that names it
	}
}

// waitsFor says whether nothing is known of a subscription, and its source uses a server after this one.
func (q *aside) waitsFor(sub *subscription) bool {
	src := sub.of.source
	return src.standsBy(q.stream) && sub.wanted() && !sub.usable() && !sub.exists()
}

// alone says that the active server of a source cannot be reached, and that no other one that stands by has a stream
// which is so young that it may still say something. While the active server has a stream, its own silence counts.
func (q *aside) alone(now time.Time, src *source) bool {
	active := src.stream()
	return active.unreachable() && active.state != up && !slices.ContainsFunc(src.streams[:src.active], func(s *stream) bool {
		return s.state == up && s.clock.at(now)-s.opened < s.timeout
	})
}

// ring has the silence count for a name if no other server can answer for it. It looks again after each period, since that
// may change.
func (u *unsaid) ring(m *Machine, now time.Time) {
	q := u.quirk
	if !q.waitsFor(u.sub) {
		delete(q.named, u.sub)
		return
	}
	// DNE-7: no server is left that could say so.
	if q.alone(now, u.sub.of.source) {
		u.sub.ring(m, now)
	}
	m.startTimer(now, q.stream, u)
}
