package transport

import (
	"context"
	"io"
	"time"
)

// turn is the leave of a poll to have a large body in memory.
type turn struct {
	holder  *holder
	timer   *time.Timer // of the poll, which stands still while it waits
	timeout time.Duration
	slow    func() // ends the poll
	share   *share // nil unless the body is large
}

// take waits for the share of a body of so many bytes. What it is converted to takes as many.
func (t *turn) take(ctx context.Context, size int) error {
	if t.share != nil {
		return nil
	}
	t.timer.Stop()
	t.share = large.ask(t.holder, 2*size, t.slow)
	if err := t.share.wait(ctx); err != nil {
		return err
	}
	t.timer.Reset(t.timeout)
	return nil
}

// paced notes how much of a large body comes.
type paced struct {
	io.Reader
	share *share
}

func (p paced) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.share.progress(n)
	return n, err
}
