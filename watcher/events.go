package watcher

import (
	"context"
	"iter"
	"sync"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
)

// Events subscribes to one resource and yields its events. Leaving the loop ends the watch. A
// slow loop delays nobody: it gets the newest state of the resource, and the newest trouble that
// came after it. Each loop over the result subscribes anew. A loop inside a handler may wait for ever: its
// events may wait for that handler.
//
// The last pair, and only that, has an error: that of [client.Client.Watch], ctx's, or
// [client.ErrClosed]. The trouble of a resource is an event and not the error.
func Events[T any](ctx context.Context, c *client.Client, t *resource.Type[T], name string, opts ...client.WatchOption) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		newest := &newest[T]{ready: make(chan struct{}, 1)}
		w, err := Watch(ctx, c, t, name, newest.put, opts...)
		if err != nil {
			yield(Event[T]{}, err)
			return
		}
		defer w.Stop()
		for {
			select {
			case <-newest.ready:
				for _, ev := range newest.take() {
					if !yield(ev, nil) {
						return
					}
				}
			case <-w.Done():
				yield(Event[T]{}, w.Err())
				return
			}
		}
	}
}

// newest keeps the newest state of a resource and the newest trouble with it.
type newest[T any] struct {
	mu      sync.Mutex
	state   *Event[T]
	trouble *Event[T]
	ready   chan struct{}
}

func (n *newest[T]) put(ev Event[T]) {
	n.mu.Lock()
	if ev.Kind == client.EventAmbientError || ev.Kind == client.EventRecovered {
		n.trouble = &ev
	} else {
		n.state, n.trouble = &ev, nil
	}
	n.mu.Unlock()
	select {
	case n.ready <- struct{}{}:
	default: // it is known that there is something
	}
}

func (n *newest[T]) take() []Event[T] {
	n.mu.Lock()
	defer n.mu.Unlock()
	var evs []Event[T]
	if n.state != nil {
		evs = append(evs, *n.state)
	}
	if n.trouble != nil {
		evs = append(evs, *n.trouble)
	}
	n.state, n.trouble = nil, nil
	return evs
}
