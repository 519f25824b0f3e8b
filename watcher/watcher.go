// Package watcher is what a program calls to follow xDS resources: watches, sets, collections,
// iterators and lookups of typed values, over a [client.Client].
package watcher

import (
	"context"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
)

// Event is something that happened to a resource of type T; see [client.Event].
type Event[T any] = client.Event[T]

// Batch is events that belong together; see [client.Batch].
type Batch[T any] = client.Batch[T]

// Watch subscribes to one resource; see [client.Client.Watch] for how handlers are called,
// what ends a watch, and errors.
func Watch[T any](ctx context.Context, c *client.Client, t *resource.Type[T], name string, handler client.Handler[T], opts ...client.WatchOption) (*client.Watch, error) {
	return client.WatchTyped(ctx, c, t, name, handler, opts...)
}

// WatchAll subscribes to a collection: "*" is every resource of the type, a glob
// ("xdstp://authority/type/path/*") the resources that match it, and the URL of a list
// collection the resources that it lists; see [client.Client.WatchAll], also for errors.
func WatchAll[T any](ctx context.Context, c *client.Client, t *resource.Type[T], collection string, handler client.BatchHandler[T], opts ...client.WatchOption) (*client.Watch, error) {
	return c.WatchAll(ctx, t, collection, batched(handler), opts...)
}

// NewSet makes one handler for many resources, which the program adds and removes; see
// [client.Set], and [client.Client.NewSet] for errors.
func NewSet[T any](ctx context.Context, c *client.Client, t *resource.Type[T], handler client.BatchHandler[T], opts ...client.WatchOption) (*client.Set, error) {
	return c.NewSet(ctx, t, batched(handler), opts...)
}

// Get returns a resource: at once if the client holds it, else when the server has answered; see
// [client.Client.Get], also for errors.
func Get[T any](ctx context.Context, c *client.Client, t *resource.Type[T], name string, opts ...client.WatchOption) (T, error) {
	ev, err := c.Get(ctx, t, name, opts...)
	return client.Typed[T](ev).Value, err // that of an error has no value
}

// batched is nil for nil.
func batched[T any](handler client.BatchHandler[T]) client.BatchHandler[any] {
	if handler == nil {
		return nil
	}
	return func(b client.Batch[any]) {
		tb := Batch[T]{Events: make([]Event[T], len(b.Events)), Last: b.Last}
		for i := range b.Events {
			tb.Events[i] = client.Typed[T](b.Events[i])
		}
		handler(tb)
	}
}
