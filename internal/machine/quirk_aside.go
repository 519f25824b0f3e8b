package machine

import (
	"slices"
	"time"
)

// A server that stands by may have nothing of what is watched, and say nothing on its new stream. While
// the active server cannot be reached, no other could say so, and the silence is the answer.
type aside struct {
	noQuirk
	stream *stream
	asked  []*unsaid // by the requests of this incarnation
}

// unsaid is what a request named, of which the server said nothing yet.
type unsaid struct {
	stream *stream
	subs   []*subscription
	timer
}

func (q *aside) forget() {
	for _, u := range q.asked {
		u.timer = 0
	}
	q.asked = nil
}

func (q *aside) written(m *Machine, now time.Time, _ *link, _ bool, fresh []*subscription) {
	u := &unsaid{stream: q.stream}
	for _, sub := range fresh {
		if !sub.gone && sub.standsBy(q.stream) {
			u.subs = append(u.subs, sub)
		}
	}
	if len(u.subs) > 0 {
		q.asked = append(slices.DeleteFunc(q.asked, func(u *unsaid) bool { return u.timer == 0 }), u)
		m.startTimer(now, q.stream, u)
	}
}

// standsBy says that the subscription's source uses a server after this one.
func (sub *subscription) standsBy(s *stream) bool {
	return sub.of.source != nil && sub.of.source.standsBy(s)
}

// ring ends the waiting while the active server cannot be reached, which may happen later, and again.
func (u *unsaid) ring(m *Machine, now time.Time) {
	u.subs = slices.DeleteFunc(u.subs, func(sub *subscription) bool {
		return sub.gone || !sub.standsBy(u.stream) || !sub.wanted() || sub.usable() || sub.known()
	})
	for _, sub := range u.subs {
		// DNE-7: no server is left that could say so.
		if sub.stream().unreachable() {
			m.answerTimeout(now, sub)
		}
	}
	if len(u.subs) > 0 {
		m.startTimer(now, u.stream, u)
	}
}
