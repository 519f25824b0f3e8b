package testutil

import (
	"context"
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

// await waits until ok, which it calls at first, after each change, and once more when life is done, after
// which there are no changes. Its errors are those of ctx, and the cause of the end of life.
func (c *change) await(ctx, life context.Context, ok func() bool) error {
	for {
		c.mu.Lock()
		if c.next == nil {
			c.next = make(chan struct{})
		}
		next := c.next
		c.mu.Unlock()
		if ok() {
			return nil
		}
		select {
		case <-next:
		case <-life.Done():
			if ok() {
				return nil
			}
			return context.Cause(life)
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

// next waits for an item. What came before life was done is still given.
func (f *feed[T]) next(ctx, life context.Context) (item T, err error) {
	err = f.grown.await(ctx, life, func() bool {
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
