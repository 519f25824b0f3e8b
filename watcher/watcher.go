// Package watcher is what a program calls to follow xDS resources: typed watches, sets,
// collections, iterators and lookups, over a [client.Client].
package watcher

import (
	"context"
	"iter"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
)

// Event is something that happened to a resource of type T, or to a collection as a whole:
// then its name is the collection's, "*" or a canonical URL.
type Event[T any] struct {
	Kind      client.EventKind
	Name      string // canonical
	Authority string // of an xdstp name
	Version   string // of the value: the resource's own in delta, else the response's
	Server    string // URI of the management server
	Locator   string // that serves, if it is not the name itself; see [client.Event]
	Reason    client.Reason
	Err       error  // of failed and ambient events: a [*client.ResourceError]
	Value     T      // of updated events; shared between watches, read only
	Raw       []byte // its bytes as received; shared, read only
	// Attributes of updated events are what stands beside the value; nil if nothing does.
	Attributes *client.Attributes
}

// Batch is events that belong together, in the order of the wire: at most
// [client.MaxBatch].
type Batch[T any] struct {
	Events []Event[T]
	// Last says that a response ends here, or what was held when the watch began, or what
	// became known at one moment without a response: of trouble, timers and times to live.
	// Such a batch may hold no events.
	Last bool
}

// Changed lists the members that have a new value.
func (b Batch[T]) Changed() iter.Seq[Event[T]] { return b.of(client.EventUpdated) }

// Removed lists the members that are no more.
func (b Batch[T]) Removed() iter.Seq[Event[T]] { return b.of(client.EventDoesNotExist) }

// Failed lists the members that cannot be used.
func (b Batch[T]) Failed() iter.Seq[Event[T]] { return b.of(client.EventFailed) }

// Synced says whether the first state of the collection is complete with this batch.
func (b Batch[T]) Synced() bool {
	for range b.of(client.EventSynced) {
		return true
	}
	return false
}

func (b Batch[T]) of(k client.EventKind) iter.Seq[Event[T]] {
	return func(yield func(Event[T]) bool) {
		for _, ev := range b.Events {
			if ev.Kind == k && !yield(ev) {
				return
			}
		}
	}
}

// Watch subscribes to one resource; see [client.Client.Watch] for how handlers are called,
// what ends a watch, and errors.
func Watch[T any](ctx context.Context, c *client.Client, t *resource.Type[T], name string, handler func(Event[T]), opts ...client.WatchOption) (*client.Watch, error) {
	if t == nil {
		return nil, client.ErrNilType
	}
	if handler == nil {
		return nil, client.ErrNilHandler
	}
	return c.Watch(ctx, t, name, func(ev client.Event) { handler(typed[T](&ev)) }, opts...)
}

// WatchAll subscribes to a collection: "*" is every resource of the type, a glob
// ("xdstp://authority/type/path/*") what it covers, and the URL of a list collection what that
// lists; see [client.Client.WatchAll].
func WatchAll[T any](ctx context.Context, c *client.Client, t *resource.Type[T], collection string, handler func(Batch[T]), opts ...client.WatchOption) (*client.Watch, error) {
	if t == nil {
		return nil, client.ErrNilType
	}
	if handler == nil {
		return nil, client.ErrNilHandler
	}
	return c.WatchAll(ctx, t, collection, batched(handler), opts...)
}

// NewSet makes one handler for many resources that come and go; see [client.Set].
func NewSet[T any](ctx context.Context, c *client.Client, t *resource.Type[T], handler func(Batch[T]), opts ...client.WatchOption) (*client.Set, error) {
	if t == nil {
		return nil, client.ErrNilType
	}
	if handler == nil {
		return nil, client.ErrNilHandler
	}
	return c.NewSet(ctx, t, batched(handler), opts...)
}

// Get returns a resource: at once if it is held, else when the server has answered; see
// [client.Client.Get].
func Get[T any](ctx context.Context, c *client.Client, t *resource.Type[T], name string, opts ...client.WatchOption) (T, error) {
	var zero T
	if t == nil {
		return zero, client.ErrNilType
	}
	ev, err := c.Get(ctx, t, name, opts...)
	if err != nil {
		return zero, err
	}
	return typed[T](&ev).Value, nil
}

func batched[T any](handler func(Batch[T])) client.BatchHandler {
	return func(b client.Batch) {
		tb := Batch[T]{Events: make([]Event[T], len(b.Events)), Last: b.Last}
		for i := range b.Events {
			tb.Events[i] = typed[T](&b.Events[i])
		}
		handler(tb)
	}
}

func typed[T any](ev *client.Event) Event[T] {
	value, _ := ev.Value.(T) // nil of what brings none
	return Event[T]{
		Kind: ev.Kind, Name: ev.Name, Authority: ev.Authority, Version: ev.Version, Server: ev.Server,
		Locator: ev.Locator, Reason: ev.Reason, Err: ev.Err, Value: value, Raw: ev.Raw,
		Attributes: ev.Attributes,
	}
}
