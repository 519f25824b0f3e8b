package watcher

import (
	"context"
	"iter"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
)

// Batches subscribes to a collection, as [WatchAll] does, and yields every batch. Leaving the
// loop ends the watch. A slow loop holds up its authority, as a handler does; a [Store] does
// not. Each loop over the result subscribes anew. A loop inside a handler may wait for ever: its events may
// wait for that handler.
//
// The last pair, and only that, has an error: that of [client.Client.WatchAll], ctx's, or
// [client.ErrClosed].
func Batches[T any](ctx context.Context, c *client.Client, t *resource.Type[T], collection string, opts ...client.WatchOption) iter.Seq2[Batch[T], error] {
	return func(yield func(Batch[T], error) bool) {
		batches, left := make(chan Batch[T]), make(chan struct{})
		w, err := WatchAll(ctx, c, t, collection, func(b Batch[T]) {
			select {
			case batches <- b:
			case <-left:
			}
		}, opts...)
		if err != nil {
			yield(Batch[T]{}, err)
			return
		}
		defer w.Stop()
		defer close(left) // first: Stop waits for the handler
		for {
			select {
			case b := <-batches:
				if !yield(b, nil) {
					return
				}
			case <-w.Done():
				yield(Batch[T]{}, w.Err())
				return
			}
		}
	}
}
