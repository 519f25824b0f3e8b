package engine

import (
	"context"
	"sync"
	"time"

	"github.com/xdswatch/xdswatch/transport"
)

// Use keeps the connection to a server for streams that are not the machine's. Its methods are
// safe for concurrent use.
type Use struct {
	engine  *Engine
	conn    *conn
	release sync.Once

	mu     sync.Mutex // guards the fields below
	retry  retry
	opened time.Time // the last stream
}

// Use begins the use of a server's connection, which need not stand; nil after Close.
func (e *Engine) Use(server int) (u *Use) {
	e.ask(func() {
		s := e.server(server)
		u = &Use{engine: e, conn: s.join()}
		u.retry = retry{make: s.Backoff, complain: func(text string, attrs ...any) {
			e.Complain(text, s.URI, "", "", attrs...)
		}}
	})
	return u
}

// Open opens a stream; see [transport.Conn]. It ends with the engine at the latest.
func (u *Use) Open(ctx context.Context, method string) (transport.Stream, error) {
	return openApart(func() (transport.Stream, error) {
		made, err := u.connect(ctx)
		if err != nil {
			return nil, err
		}
		u.mu.Lock()
		u.opened = time.Now()
		u.mu.Unlock()
		return made.Open(ctx, method)
	})
}

// connect makes the connection, or takes that of other streams.
func (u *Use) connect(ctx context.Context) (transport.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(u.engine.ctx, cancel)()
	return u.conn.get(ctx)
}

// Pause is the wait before the next stream, as for one of the machine's.
func (u *Use) Pause(served bool) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !served {
		return u.retry.grow()
	}
	u.retry.lived(time.Since(u.opened))
	return u.retry.pause()
}

// Release ends the use. A connection without streams and uses is closed.
func (u *Use) Release() {
	u.release.Do(func() {
		u.engine.post(func() {
			u.engine.leave(u.conn)
			u.engine.hangUp()
		})
	})
}
