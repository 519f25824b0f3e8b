package machine

import (
	"cmp"
	"container/heap"
	"errors"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// ttls are the held resources of a stream that the server gave a time to live (xDS
// protocol, "TTL"). Each receipt sets it anew, and one without ends it. It runs while the
// stream is down too, but not while handlers hold up reading: the silence is theirs then.
//
// A heartbeat for each of a hundred thousand resources has to be cheap, so the queue is put
// right only when its first comes due.
type ttls struct {
	of    map[*entry]ttl
	queue ttlQueue
	clock *clock // of all incarnations of the stream
}

type ttl struct {
	period time.Duration
	at     time.Duration // on the clock
}

// ttlItem may be stale: its entry's time may be later by now, or over.
type ttlItem struct {
	at    time.Duration
	entry *entry
}

type ttlQueue []ttlItem

func (q ttlQueue) Len() int           { return len(q) }
func (q ttlQueue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q ttlQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *ttlQueue) Push(x any)        { *q = append(*q, x.(ttlItem)) }
func (q *ttlQueue) Pop() any {
	n := len(*q) - 1
	it := (*q)[n]
	(*q)[n] = ttlItem{}
	*q = (*q)[:n]
	return it
}

var errTTL = errors.New("the time to live is not positive")

// received takes the time to live that an entry of a response has, or has not.
func (t *ttls) received(now time.Time, e *entry, r *wire.Resource) {
	if r.HasTTL {
		t.set(now, e, r.TTL)
	} else {
		t.clear(e)
	}
}

func (t *ttls) set(now time.Time, e *entry, period time.Duration) {
	if t.of == nil {
		t.of = map[*entry]ttl{}
	}
	if t.clock.start.IsZero() {
		t.clock.start = now
	}
	at := t.clock.at(now) + period
	before, queued := t.of[e]
	t.of[e] = ttl{period, at}
	if !queued || at < before.at {
		heap.Push(&t.queue, ttlItem{at, e})
	}
	if len(t.queue) > 64+2*len(t.of) {
		t.rebuild()
	}
}

// rebuild drops what is stale from the queue.
func (t *ttls) rebuild() {
	t.queue = t.queue[:0]
	for e, l := range t.of {
		t.queue = append(t.queue, ttlItem{l.at, e})
	}
	heap.Init(&t.queue)
}

func (t *ttls) clear(e *entry) { delete(t.of, e) }

// move takes what is left of an entry's time to another stream.
func (t *ttls) move(now time.Time, e *entry, to *ttls) {
	if l, ok := t.of[e]; ok {
		t.clear(e)
		to.set(now, e, l.at-t.clock.at(now))
	}
}

// next is when the queue has to be looked at: no later than when the first time runs out;
// zero for never.
func (t *ttls) next() time.Time {
	if len(t.queue) == 0 || !t.clock.since.IsZero() {
		return time.Time{}
	}
	return t.clock.when(t.queue[0].at)
}

// over takes the entries whose time has run out, by name where it is one moment.
func (t *ttls) over(now time.Time) (es []*entry) {
	var items []ttlItem
	for at := t.next(); !at.IsZero() && !now.Before(at); at = t.next() {
		first := &t.queue[0]
		l, ok := t.of[first.entry]
		switch {
		case ok && l.at > first.at:
			first.at = l.at
			heap.Fix(&t.queue, 0)
			continue
		case ok:
			t.clear(first.entry)
			items = append(items, *first)
		}
		heap.Pop(&t.queue)
	}
	slices.SortFunc(items, func(a, b ttlItem) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.entry.name, b.entry.name))
	})
	for _, it := range items {
		es = append(es, it.entry)
	}
	return es
}

// restart gives what ran out while the program did not run its time again: heartbeats may
// wait to be read.
func (t *ttls) restart(now time.Time) {
	at := t.clock.at(now)
	for e, l := range t.of {
		if l.at <= at {
			t.of[e] = ttl{l.period, at + l.period}
		}
	}
}
