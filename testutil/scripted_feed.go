package testutil

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// change lets goroutines wait for a change of something that others guard. Who waits holds no mutex, and so
// lets fake time pass.
type change struct {
	mu   sync.Mutex
	next chan struct{} // closed by the next change; nil while nobody waits
}

// happened wakes those who wait.
func (c *change) happened() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}

// coming is closed by the next change.
func (c *change) coming() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

// errOver is the error of a wait for what comes no more.
var errOver = errors.New("nothing more will come")

// await waits until ok, which it calls at first, after each change, and once more when over is closed.
func (c *change) await(ctx context.Context, over <-chan struct{}, ok func() bool) error {
	for {
		next := c.coming()
		if ok() {
			return nil
		}
		select {
		case <-next:
		case <-over:
			if ok() {
				return nil
			}
			return errOver
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// feed is a list that only grows, and from which each item can be taken once, in order.
type feed[T any] struct {
	mu    sync.Mutex
	items []T
	taken int
	grown change
}

func (f *feed[T]) add(item T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items = append(f.items, item)
	f.grown.happened()
}

func (f *feed[T]) all() []T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.items)
}

// next waits for an item. What came before over was closed is still given.
func (f *feed[T]) next(ctx context.Context, over <-chan struct{}) (item T, err error) {
	err = f.grown.await(ctx, over, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.taken == len(f.items) {
			return false
		}
		item = f.items[f.taken]
		f.taken++
		return true
	})
	return item, err
}
