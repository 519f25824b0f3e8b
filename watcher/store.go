package watcher

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
)

// Store has the newest values of a collection, for a program that serves from them. It is safe
// for concurrent use; reads take no lock and do not block. It ends with its context, with
// [Store.Stop] and with its client, and keeps its values afterwards.
type Store[T any] struct {
	watch  *client.Watch
	asked  string
	values sync.Map // T by name
	size   atomic.Int64

	synced  chan struct{}
	once    sync.Once
	trouble atomic.Pointer[error] // with the collection as a whole; nil if there is none
	changed atomic.Pointer[chan struct{}]
}

// NewStore subscribes to a collection, as [WatchAll] does, with the same errors. It does not wait for values.
func NewStore[T any](ctx context.Context, c *client.Client, t *resource.Type[T], collection string, opts ...client.WatchOption) (*Store[T], error) {
	s := &Store[T]{asked: collection, synced: make(chan struct{})}
	ch := make(chan struct{})
	s.changed.Store(&ch)
	w, err := WatchAll(ctx, c, t, collection, s.take, opts...)
	if err != nil {
		return nil, err
	}
	s.watch = w
	return s, nil
}

func (s *Store[T]) take(b Batch[T]) {
	for _, ev := range b.Events {
		if ev.Asked == s.asked {
			s.whole(ev)
			continue
		}
		switch ev.Kind {
		case client.EventUpdated:
			if _, had := s.values.Swap(ev.Name, ev.Value); !had {
				s.size.Add(1)
			}
		case client.EventDoesNotExist, client.EventFailed:
			if _, had := s.values.LoadAndDelete(ev.Name); had {
				s.size.Add(-1)
			}
		case client.EventAmbientError, client.EventRecovered, client.EventSynced:
		}
	}
	if len(b.Events) > 0 {
		next := make(chan struct{})
		close(*s.changed.Swap(&next))
	}
	if b.Synced() { // last: who waited for it finds all of the batch, and waits for the next change
		s.once.Do(func() { close(s.synced) })
	}
}

// whole takes what is told of the collection itself.
func (s *Store[T]) whole(ev Event[T]) {
	var trouble *error
	switch ev.Kind {
	case client.EventDoesNotExist:
		err := fmt.Errorf("%w: %s %q of server %q (%v)", client.ErrDoesNotExist, ev.Type, ev.Name, ev.Server, ev.Reason)
		trouble = &err
	case client.EventFailed, client.EventAmbientError:
		trouble = &ev.Err
	case client.EventSynced, client.EventRecovered, client.EventUpdated:
	}
	s.trouble.Store(trouble)
}

// Get returns the value of a resource by its canonical name; ok says whether there is one.
func (s *Store[T]) Get(name string) (value T, ok bool) {
	v, ok := s.values.Load(name)
	value, _ = v.(T) // a nil of an interface is none
	return value, ok
}

// Len is how many values there are.
func (s *Store[T]) Len() int { return int(s.size.Load()) }

// All yields the values by name, in no order. A value that changes meanwhile is yielded as it
// was before or after the change.
func (s *Store[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		s.values.Range(func(name, v any) bool {
			value, _ := v.(T)
			return yield(name.(string), value)
		})
	}
}

// Synced blocks until the first state of the collection is complete; if it has been, the result is nil, also after the end
// of the store. For errors see [client.Watch.ReadyWithValues].
func (s *Store[T]) Synced(ctx context.Context) error {
	if ctx == nil {
		return client.ErrNilContext
	}
	select {
	case <-s.synced: // whatever ended since
		return nil
	default:
		return s.watch.ReadyWithValues(ctx)
	}
}

// Changed is closed at the next event of the collection or of one of its members: call it first,
// then read the values, then wait for it.
func (s *Store[T]) Changed() <-chan struct{} { return *s.changed.Load() }

// Changes yields when the first state of the collection is complete, and from then on after each event, until ctx or the
// store ends; [Store.Err] then says why the store has ended. Trouble is an event too, so the values need not differ. Events
// that come while the body of the loop runs are one. Several loops may run at once. With a nil context, and in a handler
// whose collection is not complete, it yields nothing.
func (s *Store[T]) Changes(ctx context.Context) func(yield func() bool) {
	return func(yield func() bool) {
		for err := s.Synced(ctx); err == nil && ctx.Err() == nil; {
			changed := s.Changed()
			if !yield() {
				return
			}
			select {
			case <-changed:
			case <-s.Done():
				return
			case <-ctx.Done():
			}
		}
	}
}

// Err is the trouble with the collection as a whole, or nil; after the end of the store it says
// why it ended.
func (s *Store[T]) Err() error {
	if err := s.watch.Err(); err != nil {
		return err
	}
	if err := s.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// Stop ends the store, as [client.Watch.Stop] does its watch.
func (s *Store[T]) Stop() { s.watch.Stop() }

// Done is closed when the store has ended.
func (s *Store[T]) Done() <-chan struct{} { return s.watch.Done() }
