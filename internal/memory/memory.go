// Package memory has connections without a network, for tests in fake time.
package memory

import (
	"context"
	"net"
	"sync"
)

// Listener accepts connections that are pipes. The listener of gRPC's bufconn does not serve
// HTTP/1: a deadline that was taken back may still fire there, and ends the next request.
type Listener struct {
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once
}

// Listen makes a listener. Close ends it.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), ended: make(chan struct{})}
}

// Dial waits until the listener accepts. The errors are those of ctx, and [net.ErrClosed].
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	mine, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return mine, nil
	case <-l.ended:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept waits for the next connection. The error is [net.ErrClosed].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// Close ends the listener, and not the connections that it accepted.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.ended) })
	return nil
}

// Addr is the same for all.
func (l *Listener) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "memory" }

func (addr) String() string { return "memory" }
