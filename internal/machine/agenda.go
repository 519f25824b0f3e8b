package machine

import (
	"cmp"
	"slices"
	"time"
)

// agenda says which streams a step has to look at: those that something happened to, and
// those whose time has come. The others cost nothing.
type agenda struct {
	touched []*stream // each once
	taken   []*stream // that were touched before, and are looked at; its array is used again
	queue   queue[visit]
}

// visit is when a stream wants to be looked at though nothing happens.
type visit struct {
	at     time.Time
	stream *stream
}

func (v visit) before(w visit) bool { return v.at.Before(w.at) }

func (v visit) void() bool { return !v.stream.due.Equal(v.at) }

// touch has streams looked at when the events of the step are handled: what is owed there,
// or when, may have changed.
func (a *agenda) touch(ss ...*stream) {
	for _, s := range ss {
		if !s.touched {
			s.touched = true
			a.touched = append(a.touched, s)
		}
	}
}

// due takes the streams that are to be looked at now, in order of their making.
func (a *agenda) due(now time.Time) []*stream {
	for v, ok := a.queue.first(); ok && !now.Before(v.at); v, ok = a.queue.first() {
		v.stream.due = time.Time{}
		a.touch(v.stream)
	}
	return a.takeTouched()
}

// takeTouched takes the streams that were touched, in order of their making. The list is good until
// the next call.
func (a *agenda) takeTouched() []*stream {
	a.touched, a.taken = a.taken[:0], a.touched
	slices.SortFunc(a.taken, func(x, y *stream) int { return cmp.Compare(x.ref.Stream, y.ref.Stream) })
	return a.taken
}

// put notes when a stream that was looked at wants to be again; zero for never.
func (a *agenda) put(s *stream, due time.Time) {
	s.touched = false
	if due.Equal(s.due) {
		return
	}
	if s.due = due; !due.IsZero() {
		a.queue.put(visit{due, s})
	}
}

// next is when the first stream wants to be looked at; zero for never.
func (a *agenda) next() time.Time {
	v, _ := a.queue.first()
	return v.at
}

// deadline is when a stream wants to be looked at though nothing happens and it owes nothing; zero for never.
func (s *stream) deadline() time.Time {
	return sooner(sooner(s.lingerUntil, s.nextAlarm()), s.takeBy())
}

// sooner is the earlier of two times, of which zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
