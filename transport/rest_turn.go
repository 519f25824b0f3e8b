package transport

import (
	"context"
	"time"
)

// turn is the leave of a poll to have a large body in memory. The polls of a connection have it one
// after another: a server that is polled for many types would otherwise have as many large bodies
// read and converted at once.
type turn struct {
	large   chan struct{} // of the connection: full while a poll has the turn
	timer   *time.Timer   // of the poll, which stands still while it waits
	timeout time.Duration
	had     bool
}

// take waits for the turn, unless the poll has it.
func (t *turn) take(ctx context.Context) error {
	if t.had {
		return nil
	}
	t.timer.Stop()
	select {
	case t.large <- struct{}{}:
		t.had = true
		t.timer.Reset(t.timeout)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release gives the turn to the next, if the poll has it.
func (t *turn) release() {
	if t.had {
		<-t.large
		t.had = false
	}
}
