// Package ondemand keeps what callers ask for by a key, such as a subscription by its name, until
// it was idle for a while. Callers for one key share it, and only so many things are kept.
package ondemand

import (
	"container/list"
	"errors"
	"sync"
	"time"
)

// ErrTooMany says that there is no room for one more, since each thing that is kept is used or has to
// stay.
var ErrTooMany = errors.New("xds: too many names are being looked up")

// errNotMade is told to who waits for a thing whose making panics or ends its goroutine.
var errNotMade = errors.New("xds: the lookup could not begin: it panicked, or ended its goroutine (runtime.Goexit)")

// minLook is how long at least a thing that has to stay is kept before it is looked at again.
const minLook = time.Second

// Config says how long things are kept. Its functions may be nil, but for Release.
type Config[V any] struct {
	Idle time.Duration // how long a thing is kept after its last use; 0 or less not at all
	Miss time.Duration // how long a miss is kept, however often it is used; see [Pool.Leave]
	Most int           // how many things are kept; 0 or less for no bound
	// Release ends a thing. It is called without the pool's lock.
	Release func(V)
	// Stays is called once for each pass over idle things. The function that it returns says whether one has to
	// stay. Both are called with the pool's lock held.
	Stays func() func(V) bool
}

// Pool is what is kept. Its methods are safe for concurrent use.
type Pool[K comparable, V any] struct {
	config Config[V]

	mu     sync.Mutex
	items  map[K]*Item[K, V]
	unused list.List // of *Item that nobody uses, the longest idle first
	closed bool
}

// Item is a thing, in use.
type Item[K comparable, V any] struct {
	Value V

	key  K
	made chan struct{} // closed once there is a value, or err
	err  error

	// Guarded by the pool's lock.
	users  int
	used   time.Time
	missed time.Time     // when it was first known to be a miss; zero if it is none
	unused *list.Element // nil while somebody uses it
	timer  *time.Timer   // of the next look; nil before the first
	next   time.Time     // when it rings; zero if it does not
}

// New makes a pool.
func New[K comparable, V any](c Config[V]) *Pool[K, V] {
	if c.Stays == nil {
		c.Stays = func() func(V) bool { return func(V) bool { return false } }
	}
	return &Pool[K, V]{config: c, items: map[K]*Item[K, V]{}}
}

// Touch returns the thing of a key, if there is one, and counts as a use that is over.
func (p *Pool[K, V]) Touch(key K) (v V, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	it := p.items[key]
	if it == nil {
		return v, false
	}
	select {
	case <-it.made:
	default:
		return v, false
	}
	it.used = time.Now()
	if it.unused != nil {
		p.unused.MoveToBack(it.unused)
	}
	return it.Value, true
}

// Enter begins a use of a key's thing, until [Pool.Leave]. If there is none it is made, once for all
// who wait for that; the longest idle thing is released if there is no room otherwise. The error is
// [ErrTooMany], or that of making it.
func (p *Pool[K, V]) Enter(key K, create func() (V, error)) (*Item[K, V], error) {
	it, first, evicted, err := p.enter(key)
	if evicted != nil {
		p.config.Release(evicted.Value)
	}
	switch {
	case err != nil:
		return nil, err
	case first:
		p.make(it, create)
	default:
		<-it.made
	}
	if it.err != nil {
		return nil, it.err
	}
	return it, nil
}

// make makes a thing, for all who wait for it.
func (p *Pool[K, V]) make(it *Item[K, V], create func() (V, error)) {
	it.err = errNotMade // unless create returns
	defer func() {
		if it.err != nil {
			p.mu.Lock()
			delete(p.items, it.key)
			p.mu.Unlock()
		}
		close(it.made)
	}()
	// ONDEMAND-2: other names do not wait meanwhile.
	it.Value, it.err = create()
}

func (p *Pool[K, V]) enter(key K) (it *Item[K, V], first bool, evicted *Item[K, V], err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	it = p.items[key]
	if first = it == nil; first {
		// U-6: the number of names is bounded.
		if p.config.Most > 0 && len(p.items) >= p.config.Most {
			if evicted = p.idle(); evicted == nil {
				return nil, false, nil, ErrTooMany
			}
			p.drop(evicted)
		}
		it = &Item[K, V]{key: key, made: make(chan struct{})}
		p.items[key] = it
	}
	it.users++
	p.busy(it)
	return it, first, evicted, nil
}

// idle is the longest idle thing that may go; nil if none may.
func (p *Pool[K, V]) idle() *Item[K, V] {
	stays := p.config.Stays()
	for e := p.unused.Front(); e != nil; e = e.Next() {
		if it := e.Value.(*Item[K, V]); !stays(it.Value) {
			return it
		}
	}
	return nil
}

// Leave ends a use. A miss is a thing that is of no use, but need not be asked for again at once: it
// goes Config.Miss after the first Leave that says so, unless one says otherwise.
func (p *Pool[K, V]) Leave(it *Item[K, V], miss bool) {
	p.mu.Lock()
	it.used = time.Now()
	switch {
	case !miss:
		it.missed = time.Time{}
	case it.missed.IsZero():
		it.missed = it.used
	}
	gone := false
	if it.users--; it.users == 0 {
		it.unused = p.unused.PushBack(it)
		gone = p.look(it)
	}
	p.mu.Unlock()
	if gone {
		p.config.Release(it.Value)
	}
}

// ring runs when the timer of a thing fires, which may have been idle for long enough.
func (p *Pool[K, V]) ring(it *Item[K, V]) {
	p.mu.Lock()
	it.next = time.Time{}
	gone := it.unused != nil && p.look(it)
	p.mu.Unlock()
	if gone {
		p.config.Release(it.Value)
	}
}

// look lets a thing go that nobody uses, or looks again when that may be due.
func (p *Pool[K, V]) look(it *Item[K, V]) (gone bool) {
	if p.closed {
		return false
	}
	now := time.Now()
	due := it.used.Add(p.config.Idle)
	if missed := it.missed.Add(p.config.Miss); !it.missed.IsZero() && missed.Before(due) {
		due = missed
	}
	// U-6: it is kept while its server cannot give it again.
	if !now.Before(due) && p.config.Stays()(it.Value) {
		due = now.Add(max(p.config.Idle, minLook))
	}
	switch {
	case !now.Before(due):
		// ONDEMAND-4: idle names are let go.
		p.drop(it)
		return true
	case it.timer == nil:
		it.timer = time.AfterFunc(due.Sub(now), func() { p.ring(it) })
	case it.next.IsZero() || due.Before(it.next):
		it.timer.Reset(due.Sub(now))
	default:
		return false // it rings before, and looks again then
	}
	it.next = due
	return false
}

// busy takes a thing off those that nobody uses.
func (p *Pool[K, V]) busy(it *Item[K, V]) {
	if it.unused != nil {
		p.unused.Remove(it.unused)
		it.unused = nil
	}
}

// drop takes a thing off the books; its release follows.
func (p *Pool[K, V]) drop(it *Item[K, V]) {
	p.busy(it)
	delete(p.items, it.key)
	if it.timer != nil {
		it.timer.Stop()
	}
}

// Close ends all looks: what is there is kept, and not released.
func (p *Pool[K, V]) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, it := range p.items {
		if it.timer != nil {
			it.timer.Stop()
		}
	}
}
