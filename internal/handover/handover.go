// Package handover has a listener whose connections are given to it.
package handover

import (
	"context"
	"net"
	"sync"
)

// Listener accepts what it is given.
type Listener struct {
	addr  net.Addr
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once
}

// Listen makes a listener that says it has an address. Close ends it.
func Listen(addr net.Addr) *Listener {
	return &Listener{addr: addr, conns: make(chan net.Conn), ended: make(chan struct{})}
}

// Memory makes a listener for connections in memory, without an address that others could reach.
func Memory() *Listener {
	return Listen(&net.UnixAddr{Name: "memory", Net: "unix"})
}

// Give waits until the connection is accepted. The errors are those of ctx, and
// [net.ErrClosed]; the connection stays the caller's then.
func (l *Listener) Give(ctx context.Context, conn net.Conn) error {
	select {
	case l.conns <- conn:
		return nil
	case <-l.ended:
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Dial gives one end of a pipe and returns the other: a connection without a network, for tests
// in fake time. gRPC's bufconn does not serve there: a deadline that was taken back may still
// fire and end the next request of HTTP/1, and its timers of no time crash Go 1.26 in a synctest
// bubble with the race detector.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	mine, theirs := net.Pipe()
	if err := l.Give(ctx, theirs); err != nil {
		return nil, err
	}
	return mine, nil
}

// Accept waits for a connection to be given. The error is [net.ErrClosed].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// Close lets no more connections in. Those that were accepted stay.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.ended) })
	return nil
}

// Addr is the address that was given.
func (l *Listener) Addr() net.Addr { return l.addr }
