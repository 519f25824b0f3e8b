package engine

import (
	"sync"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// lane is a dispatcher: it tells the watches of one authority what happened, in order.
// What waits in it is bounded by the machine, since a response is not read before the last
// one was delivered.
type lane struct {
	trace func(*machine.Notice)
	mu    sync.Mutex
	wake  *sync.Cond
	queue []item
	ended bool

	dirty []Sink // that were told something since the last flush; the dispatcher's own
}

// item is a notice, a stream's notice for the trace, or a flush.
type item struct {
	notice *machine.Notice
	lane   *lane // whose watches of the notice are meant
	trace  *machine.Notice
	flush  bool
	last   bool
	marker *marker
}

// marker is reached when all lanes that hold it have come to it.
type marker struct {
	mu   sync.Mutex
	left int
	done func()
}

func (m *marker) reached() {
	m.mu.Lock()
	m.left--
	last := m.left == 0
	m.mu.Unlock()
	if last {
		m.done()
	}
}

// laneOf finds or starts the dispatcher with a number.
func (e *Engine) laneOf(number int) *lane {
	for len(e.lane) <= number {
		l := &lane{trace: e.config.Trace}
		l.wake = sync.NewCond(&l.mu)
		e.lane = append(e.lane, l)
		e.lanes.Go(func() {
			id := goroutineID()
			e.dispatchers.Store(id, true)
			defer e.dispatchers.Delete(id)
			l.run(number)
		})
	}
	return e.lane[number]
}

func (l *lane) put(it item) {
	l.mu.Lock()
	l.queue = append(l.queue, it)
	l.mu.Unlock()
	l.wake.Signal()
}

func (l *lane) close() {
	l.mu.Lock()
	l.ended, l.queue = true, nil
	l.mu.Unlock()
	l.wake.Signal()
}

func (l *lane) isEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// next blocks for what there is to do.
func (l *lane) next() (items []item, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && !l.ended {
		l.wake.Wait()
	}
	items, l.queue = l.queue, nil
	return items, !l.ended
}

func (l *lane) run(number int) {
	for {
		items, ok := l.next()
		if !ok {
			return
		}
		for i := range items {
			if l.isEnded() {
				return
			}
			l.do(&items[i], number)
			items[i] = item{} // its value may be large
		}
	}
}

func (l *lane) do(it *item, number int) {
	switch {
	case it.trace != nil:
		l.trace(it.trace)
	case it.notice != nil:
		l.tell(it.notice, it.notice.To, number)
		l.tell(it.notice, it.notice.All, number)
	case it.flush:
		for i, s := range l.dirty {
			s.Flush(it.last)
			l.dirty[i] = nil
		}
		l.dirty = l.dirty[:0]
		if it.marker != nil {
			it.marker.reached()
		}
	}
}

func (l *lane) tell(n *machine.Notice, to []*machine.Watch, number int) {
	for _, w := range to {
		if w.Lane != number {
			return
		}
		s := w.Owner.(Sink)
		s.Tell(n)
		l.dirty = append(l.dirty, s)
	}
}
