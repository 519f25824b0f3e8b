package testutil

import (
	"context"
	"errors"
	"slices"
	"sync"
)

var errFeedOver = errors.New("nothing more will come")

// feed is a list that only grows, and from which each item can be taken once, in order.
// It waits on channels, never on the mutex, so that a waiter lets fake time pass.
type feed[T any] struct {
	mu    sync.Mutex
	items []T
	taken int
	grown chan struct{} // nil while nobody waits; closed when an item comes
}

func (f *feed[T]) add(item T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items = append(f.items, item)
	if f.grown != nil {
		close(f.grown)
		f.grown = nil
	}
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
	if f.grown == nil {
		f.grown = make(chan struct{})
	}
	return item, false, f.grown
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
