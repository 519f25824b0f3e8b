package engine

import (
	"sync"
	"sync/atomic"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// lane is what waits to be told to the watches of one source, in order, and its dispatcher, the goroutine that
// tells it. That is there while there is something to tell and for a while after, since a client may come to know many
// sources.
// What waits in it is bounded: a response is not read before the last one was delivered, trouble of a
// server is not told before the last was heard, and only so many requests are traced.
type lane struct {
	number   int
	dispatch func(*lane)                           // starts the dispatcher
	decode   func(*machine.Notice, *machine.Watch) // what is held, for a watch that came late

	mu     sync.Mutex
	wake   *sync.Cond
	queue  []item
	spare  [8]item  // where the queue stands again when it was empty
	queued uint64   // notices that were ever put into it
	after  []func() // to be run when the call that is made is over
	vain   bool     // that call was waited for in vain
	ended  bool
	works  bool // there is a dispatcher
	rests  bool // it waits for work
	leaves bool // it ends if there is none

	// The loop's own.
	observed bool // it is in watchdog.observed, as while there is a dispatcher
	seen     sight

	// What others may look at while the dispatcher is at work.
	telling atomic.Pointer[machine.Watch] // whose sink is called, or the first of its group; hooked in a hook; nil between two items
	begun   atomic.Uint64                 // how many notices were begun
	awaited atomic.Bool                   // move is to look at after

	place
}

// place is where a dispatcher is in its work, which it notes before a sink or a hook is called. If that ends the
// goroutine, another one goes on behind it. It is the dispatcher's own.
type place struct {
	doing   item         // the one that is being done
	notice  int          // of doing
	held    machine.News // of doing: what was decoded last for a watch that came late
	list    int          // of notice: 0 To, 1 All
	target  int          // of list: the next watch
	told    []told       // what is not flushed to its end
	flushed int          // of told, in a flush
	kept    int          // of those, what stays
}

// groupSize is how many watches of one resource a [Crowd] tells until the dispatcher notes again what it is at: to
// note it for each of many watches costs more than most handlers.
const groupSize = 16

// told is a watch whose sink was told something, and the response that it was of, nil if
// none.
type told struct {
	watch *machine.Watch
	of    *delivery
}

// item is notices, a hook of the program, a flush, or the end of a response. Its marker is reached when it is done.
type item struct {
	notices []machine.Notice // the lane's own
	of      *delivery        // that the notices are of, or that ends with the marker; nil if none
	hook    func()
	flush   bool
	marker  *marker
}

// marker is reached when all lanes that hold it have come to it.
type marker struct {
	left atomic.Int32
	done func()
}

func newMarker(lanes int, done func()) *marker {
	m := &marker{done: done}
	m.left.Store(int32(lanes))
	return m
}

func (m *marker) reached() {
	if m.left.Add(-1) == 0 {
		m.done()
	}
}

func (e *Engine) dispatchApart(l *lane) { e.dispatching.Go(func() { e.dispatch(l) }) }

// dispatch is the goroutine of a lane. If code of the program's ends it, by runtime.Goexit,
// another takes its place. InHandler knows handlers by this function, so nothing else calls it.
func (e *Engine) dispatch(l *lane) {
	over := false
	defer func() {
		if !over {
			e.dispatchApart(l)
		}
	}()
	for l.next() {
		l.do()
	}
	over = true
}

// put adds an item, and says whether the lane had nothing to do.
func (l *lane) put(it item) (rested bool) {
	l.mu.Lock()
	rested = !l.works || l.rests && len(l.queue) == 0
	l.queue = append(l.queue, it)
	l.queued += uint64(len(it.notices))
	starts := !l.works
	l.works, l.leaves = true, false
	l.mu.Unlock()
	if starts {
		l.dispatch(l)
	} else {
		l.wake.Signal()
	}
	return rested
}

// leave ends the dispatcher, unless there is something to tell.
func (l *lane) leave() {
	l.mu.Lock()
	l.leaves = true
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

// next makes doing the next item, and blocks until there is one. An item that is half done stays: another
// goroutine goes on with it. It says no at the end of the lane, and when the dispatcher is to leave.
func (l *lane) next() bool {
	l.move(nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.doing.empty() && !l.ended {
		switch {
		case len(l.queue) > 0:
			l.doing, l.queue[0] = l.queue[0], item{}
			if l.queue = l.queue[1:]; len(l.queue) == 0 {
				l.queue = l.spare[:0]
			}
		case l.leaves:
			l.works, l.leaves = false, false
			return false
		default:
			l.rests = true
			l.wake.Wait()
			l.rests = false
		}
	}
	return !l.ended
}

func (it *item) empty() bool {
	return it.notices == nil && it.hook == nil && !it.flush && it.marker == nil
}

// do does an item, or the rest of it.
func (l *lane) do() {
	it := &l.doing
	switch {
	case it.hook != nil:
		hook := it.hook
		*it = item{}
		l.move(hooked)
		hook()
		return
	case it.notices != nil:
		if !l.tellAll(it) {
			return
		}
	case it.flush || it.of != nil:
		l.flush(it)
	}
	m := it.marker
	*it = item{}
	if m != nil {
		m.reached()
	}
}

// tellAll tells the notices of an item. It returns false if the lane ended before all were told.
func (l *lane) tellAll(it *item) bool {
	for ; l.notice < len(it.notices); l.notice++ {
		if l.notice > 0 && l.isEnded() {
			return false
		}
		n := &it.notices[l.notice]
		if n.Held {
			l.decodeHeld(n)
		}
		if l.list == 0 && l.target == 0 {
			l.begun.Add(1)
		}
		l.tell(n, it.of)
		*n = machine.Notice{} // its value may be large
		l.list, l.target = 0, 0
	}
	l.notice, l.held = 0, machine.News{}
	return true
}

// decodeHeld decodes what a notice holds, once for watches of one resource that came late together.
func (l *lane) decodeHeld(n *machine.Notice) {
	to := n.To
	if len(to) == 0 {
		to = n.All
	}
	l.move(to[0]) // whose decoder may block, as its handler may
	if last := &l.held; last.Value != nil && len(n.Raw) > 0 && len(n.Raw) == len(last.Raw) && &n.Raw[0] == &last.Raw[0] {
		n.Held, n.Value = false, last.Value
		return
	}
	l.decode(n, to[0])
	l.held = n.News
}

// tell hands a notice to the sinks of its watches, in groups.
func (l *lane) tell(n *machine.Notice, of *delivery) {
	for ; l.list < 2; l.list, l.target = l.list+1, 0 {
		to := n.To
		if l.list == 1 {
			to = n.All
		}
		for l.target < len(to) {
			end := l.group(to)
			if end == l.target {
				l.target++ // it is another lane's
				continue
			}
			l.move(to[l.target])
			if tellSome(n, to[:end], &l.target) {
				l.told = append(l.told, told{to[l.target-1], of})
			}
		}
	}
}

// group is the end of the group that begins with the next watch: those of this lane.
func (l *lane) group(to []*machine.Watch) (end int) {
	for end = l.target; end < min(len(to), l.target+groupSize) && int(to[end].Lane) == l.number; end++ {
	}
	return end
}

// tellSome tells at least the next watch.
func tellSome(n *machine.Notice, to []*machine.Watch, next *int) (wantsFlush bool) {
	sink := to[*next].Owner.(Sink)
	if crowd, ok := sink.(Crowd); ok && *next+1 < len(to) {
		return crowd.TellAll(n, to, next)
	}
	*next++
	return sink.Tell(n)
}

// flush flushes the sinks that were told something: for the last time those of the item's response, and with
// it.flush the others too, which stay on the list until their response ends.
func (l *lane) flush(it *item) {
	for l.flushed < len(l.told) {
		t := l.told[l.flushed]
		l.flushed++
		ends := t.of == it.of
		if !ends {
			l.told[l.kept] = t
			l.kept++
		}
		if ends || it.flush {
			l.move(t.watch)
			t.watch.Owner.(Sink).Flush(ends)
		}
	}
	clear(l.told[l.kept:])
	l.told = l.told[:l.kept]
	l.flushed, l.kept = 0, 0
}
