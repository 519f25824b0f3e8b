package kit

import (
	"strconv"
	"sync/atomic"
	"time"
)

// A stamp is in every resource: 19 digits of nanoseconds, when it was sent, and 6 digits of
// sequence number, 0 for what is sent at first.
const (
	StampLen  = 25
	ZeroStamp = "0000000000000000000000000"

	clockLen = 19
)

// Client is what a driver implements.
type Client interface {
	// Subscribe asks for all the names (nil: everything), one watcher each, and returns
	// without waiting.
	Subscribe(names []string) error
	// Watch adds one watcher with the given number for one name, without waiting.
	Watch(name string, watcher int) error
	// Cancel ends the watcher of a name, without waiting.
	Cancel(name string) error
	Close()
}

// Env is what a driver gets: the configuration, and where its callbacks report. Its
// methods are safe for concurrent use.
type Env struct {
	Config

	callbacks atomic.Int64
	seen      []atomic.Int64 // by resource, by watcher in a fanout: last sequence number + 1

	target   int64 // of loaded
	loaded   atomic.Int64
	loadedCh chan struct{}
	incrCh   chan struct{} // a first value (incr)

	lat        []int64        // by sequence number - 1, nanoseconds
	told       []atomic.Int64 // by sequence number - 1: watchers (fanout)
	finished   atomic.Int64   // values (update) or watchers (fanout) that are done
	finishedAt atomic.Int64
	doneCh     chan struct{}
}

// prepare makes room for what the workload counts.
func (e *Env) prepare() {
	e.target = int64(e.N)
	e.seen = make([]atomic.Int64, max(e.N, e.Watchers))
	e.loadedCh, e.doneCh, e.incrCh = make(chan struct{}), make(chan struct{}), make(chan struct{}, 1024)
	switch e.Work {
	case Update:
		e.lat = make([]int64, e.Updates)
	case Fanout:
		e.target = int64(e.Watchers)
		e.lat = make([]int64, e.Updates)
		e.told = make([]atomic.Int64, e.Updates)
	case Reconnect, Cancel, Heartbeat, Keep:
		e.lat = make([]int64, 1)
	case Incr:
		e.lat = make([]int64, e.N)
	}
}

// Deliver is for a watcher's callback, once per version of a resource. The stamp is
// Cluster.alt_stat_name, or the hostname of the first endpoint. It may be called again for
// versions seen already.
func (e *Env) Deliver(name string, watcher int, stamp string) {
	if len(stamp) != StampLen {
		panic("bad stamp " + strconv.Quote(stamp))
	}
	e.callbacks.Add(1)
	seq := digits(stamp[clockLen:])
	key := watcher
	if e.Work != Fanout {
		key = Index(name)
	}
	switch old := e.seen[key].Swap(seq + 1); {
	case old > seq:
		return
	case old == 0 && e.Work == Incr:
		e.incrCh <- struct{}{}
		return
	case old == 0:
		e.countLoaded(1)
	}
	if seq > 0 {
		e.update(stamp, seq)
	}
}

// DeliverFrame is for drivers that never look inside resources: a response with count of
// them arrived, carrying the stamp.
func (e *Env) DeliverFrame(count int, stamp string) {
	e.callbacks.Add(int64(count))
	seq := digits(stamp[clockLen:])
	switch {
	case e.Work == Incr:
		e.incrCh <- struct{}{}
		return
	case seq == 0 || e.loaded.Load() < e.target:
		if e.Work == Fanout {
			count = e.Watchers
		}
		e.countLoaded(int64(count))
		return
	case e.Work == Fanout:
		e.told[seq-1].Store(int64(e.Watchers - 1))
		if int(seq) == len(e.lat) {
			e.finished.Store(int64(e.Watchers - 1))
		}
	}
	e.update(stamp, seq)
}

func (e *Env) countLoaded(n int64) {
	if e.loaded.Add(n) == e.target {
		close(e.loadedCh)
	}
}

// update notes a changed version.
func (e *Env) update(stamp string, seq int64) {
	switch e.Work {
	case Update, Reconnect:
		now := time.Now().UnixNano()
		e.lat[seq-1] = now - digits(stamp[:clockLen])
		e.finish(int64(len(e.lat)), now)
	case Fanout:
		// Only the last watcher's clock is read, so that a callback stays cheap.
		if e.told[seq-1].Add(1) == int64(e.Watchers) {
			e.lat[seq-1] = time.Now().UnixNano() - digits(stamp[:clockLen])
		}
		if int(seq) == len(e.lat) {
			e.finish(int64(e.Watchers), 0)
		}
	}
}

// finish counts to the end of the measured phase.
func (e *Env) finish(most, now int64) {
	if e.finished.Add(1) < most {
		return
	}
	if now == 0 {
		now = time.Now().UnixNano()
	}
	e.finishedAt.Store(now)
	close(e.doneCh)
}
