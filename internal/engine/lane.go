package engine

import (
	"slices"
	"sync"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// lane is a dispatcher: it tells the watches of one authority what happened, in order.
// What waits in it is bounded by the machine: a response is not read before the last one was
// delivered, and trouble of a server is not told before the last was heard.
type lane struct {
	mu    sync.Mutex
	wake  *sync.Cond
	queue []item
	ended bool

	told []told // what is not flushed to its end; the dispatcher's own
}

// told is a sink that was told something, and the response that it was of, nil if none.
type told struct {
	sink Sink
	part *part
}

// item is notices, a hook of the program, a flush, or the end of a response.
type item struct {
	notices []machine.Notice // the lane's own
	part    *part            // that the notices are of, or that ends with the marker; nil if none
	hook    func()
	flush   bool
	marker  *marker
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
	for len(e.lanes) <= number {
		e.lanes = append(e.lanes, nil)
	}
	if l := e.lanes[number]; l != nil {
		return l
	}
	l := &lane{}
	l.wake = sync.NewCond(&l.mu)
	e.lanes[number] = l
	e.dispatching.Go(func() {
		id := goroutineID()
		e.dispatcherIDs.Store(id, true)
		defer e.dispatcherIDs.Delete(id)
		l.run(number)
	})
	return l
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
			items[i] = item{}
		}
	}
}

func (l *lane) do(it *item, number int) {
	switch {
	case it.hook != nil:
		it.hook()
	case it.notices != nil:
		for i := range it.notices {
			if i > 0 && l.isEnded() {
				return
			}
			n := &it.notices[i]
			l.tell(n, n.To, it.part, number)
			l.tell(n, n.All, it.part, number)
			*n = machine.Notice{} // its value may be large
		}
	case it.flush:
		l.flush()
	default:
		l.end(it.part)
		it.marker.reached()
	}
}

func (l *lane) tell(n *machine.Notice, to []*machine.Watch, p *part, number int) {
	for _, w := range to {
		if int(w.Lane) != number {
			continue
		}
		s := w.Owner.(Sink)
		if s.Tell(n) {
			l.told = append(l.told, told{s, p})
		}
	}
}

// flush hands over what was told in a step. What is of a response that goes on stays on
// the list until its end.
func (l *lane) flush() {
	l.told = slices.DeleteFunc(l.told, func(t told) bool {
		t.sink.Flush(t.part == nil)
		return t.part == nil
	})
}

// end hands over what is left of a response.
func (l *lane) end(p *part) {
	l.told = slices.DeleteFunc(l.told, func(t told) bool {
		if t.part != p {
			return false
		}
		t.sink.Flush(true)
		return true
	})
}
