package testutil

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// gate is waited at while it is closed. Its owner's mutex guards it; who waits does not hold that, and so
// lets fake time pass.
type gate struct {
	opened chan struct{} // nil while it is open; closed when it opens
}

// close closes the gate, and gives what is closed when it opens.
func (g *gate) close() <-chan struct{} {
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
	return g.opened
}

func (g *gate) open() {
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

var errFeedOver = errors.New("nothing more will come")

// feed is a list that only grows, and from which each item can be taken once, in order.
type feed[T any] struct {
	mu    sync.Mutex
	items []T
	taken int
	empty gate // closed while somebody waits for an item
}

func (f *feed[T]) add(item T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items = append(f.items, item)
	f.empty.open()
}

func (f *feed[T]) all() []T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.items)
}

// take gives the next item, or else a channel that is closed when there is one.
func (f *feed[T]) take() (item T, ok bool, grown <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.taken < len(f.items) {
		item = f.items[f.taken]
		f.taken++
		return item, true, nil
	}
	return item, false, f.empty.close()
}

// next waits for an item. What came before over was closed is still given.
func (f *feed[T]) next(ctx context.Context, over <-chan struct{}) (T, error) {
	for {
		item, ok, grown := f.take()
		if ok {
			return item, nil
		}
		select {
		case <-grown:
		case <-over:
			if item, ok, _ = f.take(); ok {
				return item, nil
			}
			return item, errFeedOver
		case <-ctx.Done():
			return item, ctx.Err()
		}
	}
}
