package client

import (
	"slices"
	"sync"
)

// books are the watches and sets that have not ended. Safe for concurrent use.
type books struct {
	mu     sync.Mutex
	all    []*core // in no order
	closed bool
}

// enter puts a watch on the books. It says no after close.
func (b *books) enter(w *core) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.all = append(b.all, w)
	w.place = int32(len(b.all))
	return true
}

// living lists the watches on the books.
func (b *books) living() []*core {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.all)
}

// close lists them for the last time.
func (b *books) close() []*core {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return slices.Clone(b.all)
}

// remove takes a watch off the books, if it is there.
func (b *books) remove(w *core) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.place == 0 {
		return
	}
	n := len(b.all) - 1
	last := b.all[n]
	b.all[w.place-1], last.place = last, w.place
	b.all[n], w.place = nil, 0
	if b.all = b.all[:n]; n < cap(b.all)/4 {
		b.all = slices.Clone(b.all)
	}
}
