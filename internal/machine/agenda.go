package machine

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// agenda says which streams a step has to look at: those that something happened to, and
// those whose time has come. The others cost nothing.
type agenda struct {
	touched []*stream // each once
	taken   []*stream // that were touched before, and are looked at; its array is used again
	queue   agendaQueue
}

// agendaQueue is the streams that want to be looked at though nothing happens.
type agendaQueue []*stream

func (q agendaQueue) Len() int           { return len(q) }
func (q agendaQueue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q agendaQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i+1, j+1
}

func (q *agendaQueue) Push(x any) {
	s := x.(*stream)
	*q = append(*q, s)
	s.place = len(*q)
}

func (q *agendaQueue) Pop() any {
	n := len(*q) - 1
	s := (*q)[n]
	(*q)[n] = nil
	*q = (*q)[:n]
	s.place = 0
	return s
}

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
	for len(a.queue) > 0 && !now.Before(a.queue[0].due) {
		a.touch(heap.Pop(&a.queue).(*stream))
	}
	return a.takeTouched()
}

// takeTouched takes the streams that were touched, in order of their making. The list is good until
// the next call.
func (a *agenda) takeTouched() []*stream {
	a.touched, a.taken = a.taken[:0], a.touched
	slices.SortFunc(a.taken, func(x, y *stream) int { return cmp.Compare(x.index, y.index) })
	return a.taken
}

// put notes when a stream that was looked at wants to be again; zero for never.
func (a *agenda) put(s *stream, due time.Time) {
	s.touched, s.due = false, due
	switch {
	case due.IsZero() && s.place > 0:
		heap.Remove(&a.queue, s.place-1)
	case due.IsZero():
	case s.place > 0:
		heap.Fix(&a.queue, s.place-1)
	default:
		heap.Push(&a.queue, s)
	}
}

// next is when the first stream wants to be looked at; zero for never.
func (a *agenda) next() time.Time {
	if len(a.queue) == 0 {
		return time.Time{}
	}
	return a.queue[0].due
}

// deadline is when a stream wants to be looked at though nothing happens; zero for never.
func (s *stream) deadline() time.Time {
	at := sooner(sooner(s.lingerUntil, s.nextAlarm()), s.takeBy())
	if s.state == up && s.writing == nil {
		at = sooner(at, s.again)
	}
	return at
}

// sooner is the earlier of two times, of which zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
