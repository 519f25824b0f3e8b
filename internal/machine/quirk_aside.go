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
	asked  []*unsaid // by the requests of this incarnation, until the server responds
}

// unsaid is what a request named, of which the server said nothing yet.
type unsaid struct {
	subs  []*subscription
	timer uint32
}

func (q *aside) forget() {
	for _, u := range q.asked {
		u.timer = 0
	}
	q.asked = nil
}

// received: what the response says and does not say is the active server's word.
func (q *aside) received(*Machine, time.Time, *link) { q.forget() }

func (q *aside) written(m *Machine, now time.Time, l *link, first bool, fresh []*subscription) {
	if !q.stream.standsBy() || q.stream.responded {
		return
	}
	u := &unsaid{subs: slices.Clone(fresh)}
	if first && l.form != wildNone {
		u.subs = append(u.subs, l.cache.star.self)
	}
	if len(u.subs) > 0 {
		q.asked = append(slices.DeleteFunc(q.asked, func(u *unsaid) bool { return u.timer == 0 }), u)
		m.startTimer(now, q.stream, u)
	}
}

func (u *unsaid) alarm() *uint32 { return &u.timer }

func (u *unsaid) order() (alarmKind, string, string) {
	return alarmAnswer, u.subs[0].of.cache.typ.URL, u.subs[0].name
}

// ring ends the waiting, if the active server cannot be reached; else that may happen later.
func (u *unsaid) ring(m *Machine, now time.Time, s *stream) {
	u.subs = slices.DeleteFunc(u.subs, func(sub *subscription) bool {
		src := sub.of.source
		if sub.gone || src == nil || !src.standsBy(s) || !sub.wanted() || sub.usable() || sub.known() {
			return true
		}
		// DNE-7: no server is left that could say so.
		if src.stream().unreachable() {
			m.answerTimeout(now, s, sub)
		}
		return src.stream().unreachable()
	})
	if len(u.subs) > 0 {
		m.startTimer(now, s, u)
	}
}
