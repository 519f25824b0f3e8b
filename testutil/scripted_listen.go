package testutil

import (
	"net"
	"sync"
)

// connListener knows the connections that it accepted and that are still open.
type connListener struct {
	net.Listener
	mu     sync.Mutex
	closed bool
	conns  map[*listedConn]struct{}
}

func newConnListener(lis net.Listener) *connListener {
	return &connListener{Listener: lis, conns: make(map[*listedConn]struct{})}
}

// Accept accepts a connection that drop will cut.
func (l *connListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &listedConn{Conn: conn, lis: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	l.conns[c] = struct{}{}
	return c, nil
}

// Close lets no more connections in and cuts those that stand. A grpc server that stops
// waits for connections in their handshake, so they are cut before it does.
func (l *connListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	err := l.Listener.Close()
	l.drop()
	return err
}

// drop cuts all connections.
func (l *connListener) drop() {
	l.mu.Lock()
	conns := l.conns
	l.conns = make(map[*listedConn]struct{})
	l.mu.Unlock()
	for c := range conns {
		c.cut()
	}
}

type listedConn struct {
	net.Conn
	lis *connListener
}

func (c *listedConn) Close() error {
	c.lis.mu.Lock()
	delete(c.lis.conns, c)
	c.lis.mu.Unlock()
	return c.Conn.Close()
}

// cut closes the connection; over TCP with a reset, and without sending what is queued.
func (c *listedConn) cut() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		// A connection that is already gone needs no reset.
		_ = tcp.SetLinger(0)
	}
	c.Conn.Close()
}
