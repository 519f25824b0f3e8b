package httptransport

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// timed gives a request the timeout of its route, which begins when the request has been read to its end
// (RouteAction.timeout).
func timed(r *http.Request, timeout time.Duration) (out *http.Request, end func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	begin := sync.OnceValue(func() *time.Timer {
		return time.AfterFunc(timeout, func() { cancel(context.DeadlineExceeded) })
	})
	out = r.WithContext(timedContext{ctx})
	if r.Body == nil || r.Body == http.NoBody {
		begin()
	} else {
		out.Body = &timedBody{r.Body, begin}
		if r.GetBody != nil {
			out.GetBody = func() (io.ReadCloser, error) {
				b, err := r.GetBody()
				return &timedBody{b, begin}, err
			}
		}
	}
	return out, func() {
		begin().Stop()
		cancel(nil)
	}
}

// timedContext ends at the timeout with the error of one, as HTTP/2 does not look at the cause.
type timedContext struct{ context.Context }

func (c timedContext) Err() error {
	if context.Cause(c.Context) == context.DeadlineExceeded {
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}

type timedBody struct {
	io.ReadCloser
	begin func() *time.Timer
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.begin()
	}
	return n, err
}

func (b *timedBody) Close() error {
	b.begin()
	return b.ReadCloser.Close()
}
