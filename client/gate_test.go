package client_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/transport"
)

// gate is a place that is passed at once while it is open, as the zero gate is. Who waits
// there lets fake time pass.
type gate struct {
	mu   sync.Mutex
	wait chan struct{} // nil while open
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wait == nil {
		g.wait = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wait != nil {
		close(g.wait)
		g.wait = nil
	}
}

// pass waits while the gate is shut, or until over is closed.
func (g *gate) pass(over <-chan struct{}) {
	g.mu.Lock()
	wait := g.wait
	g.mu.Unlock()
	if wait == nil {
		return
	}
	select {
	case <-wait:
	case <-over:
	}
}

// loopGate is a log handler that holds the client's loop, which calls it.
type loopGate struct{ gate *gate }

func (loopGate) Enabled(context.Context, slog.Level) bool { return true }

func (l loopGate) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "backoff is reset" {
		l.gate.pass(nil)
	}
	return nil
}

func (l loopGate) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l loopGate) WithGroup(string) slog.Handler      { return l }

// scriptKind is a type of a script with streams of its own, whose decoder can be held.
type scriptKind struct {
	resource.AnyType
	workers *gate
}

func (k *scriptKind) Methods() (sotw, delta string) {
	return "/test.Service/StreamThings", "/test.Service/DeltaThings"
}

func (k *scriptKind) Decode(src resource.Source, b []byte) (any, error) {
	k.workers.pass(nil)
	return k.AnyType.Decode(src, b)
}

// gatedBuilder makes gRPC connections whose opening and writing can be held.
type gatedBuilder struct {
	d *driver
	transport.Builder
}

func (b gatedBuilder) Build(s bootstrap.ManagementServer) (transport.Conn, error) {
	uri := s.URI
	s.URI = b.d.srv.Target()
	conn, err := b.Builder.Build(s)
	if err != nil {
		return nil, err
	}
	return gatedConn{b.d, uri, conn}, nil
}

type gatedConn struct {
	d   *driver
	uri string
	transport.Conn
}

func (c gatedConn) Open(ctx context.Context, method string) (transport.Stream, error) {
	c.d.opening.pass(ctx.Done())
	c.d.mu.Lock()
	fail := c.d.fail
	if c.d.dead[c.uri] {
		fail = errDead
	}
	c.d.mu.Unlock()
	if fail != nil {
		return nil, &transport.ConnectError{Server: c.uri, Err: fail}
	}
	s, err := c.Conn.Open(ctx, method)
	if err != nil {
		return nil, err
	}
	return gatedStream{s, c.d.writing, ctx}, nil
}

type gatedStream struct {
	transport.Stream
	writing *gate
	ctx     context.Context
}

var errDead = errors.New("dead")

func (s gatedStream) Send(msg ...[]byte) error {
	s.writing.pass(s.ctx.Done())
	if err := s.ctx.Err(); err != nil {
		return err // it was closed while the writer was held
	}
	return s.Stream.Send(msg...)
}
