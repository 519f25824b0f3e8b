package testutil

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// proxyConn is one client's connection through a [TCPProxy] and, unless the network was
// silent from its start, the proxy's own to the target.
type proxyConn struct {
	client net.Conn
	silent atomic.Bool     // what is read is dropped, from now on
	delay  *atomic.Int64   // of the proxy
	ctx    context.Context // done when the connection is to end
	cancel context.CancelFunc

	mu     sync.Mutex
	server net.Conn // nil before it is dialled
}

func newProxyConn(client net.Conn, delay *atomic.Int64) *proxyConn {
	ctx, cancel := context.WithCancel(context.Background())
	return &proxyConn{client: client, delay: delay, ctx: ctx, cancel: cancel}
}

func (c *proxyConn) silence() { c.silent.Store(true) }

// run forwards in both directions until both sides have ended, one has failed, or the
// connection is closed.
func (c *proxyConn) run(target string) {
	defer c.close(false)
	if c.silent.Load() {
		c.drain(c.client)
		return
	}
	server, err := new(net.Dialer).DialContext(c.ctx, "tcp", target)
	if err != nil || !c.join(server) {
		c.close(true) // as near as a proxy comes to a refused connection
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { c.forward(server, c.client) })
	wg.Go(func() { c.forward(c.client, server) })
	wg.Wait()
}

// join takes the connection to the target, unless the connection has ended.
func (c *proxyConn) join(server net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		server.Close()
		return false
	}
	c.server = server
	return true
}

// piece is some of what one side said, or without bytes its end.
type piece struct {
	bytes []byte
	due   time.Time
}

// forward passes on what src says until its end, each piece when it is due, so that a delay holds back the arrival
// and not the reading.
func (c *proxyConn) forward(dst, src net.Conn) {
	const readAhead = 1024 // pieces on their way
	var wg sync.WaitGroup
	defer wg.Wait()
	pieces := make(chan piece, readAhead)
	defer close(pieces)
	wg.Go(func() { c.pass(dst, pieces) })
	for buf := make([]byte, 32<<10); ; {
		n, err := src.Read(buf)
		switch {
		case c.silent.Load():
			c.drain(src)
			return
		case err != nil && !errors.Is(err, io.EOF): // a reset, which does not wait for its turn
			c.close(true)
			return
		}
		pieces <- piece{bytes.Clone(buf[:n]), time.Now().Add(time.Duration(c.delay.Load()))}
		if err != nil {
			return
		}
	}
}

// pass writes what the other side said. Where dst takes no more, it ends the connection.
func (c *proxyConn) pass(dst net.Conn, pieces <-chan piece) {
	for p := range pieces {
		select {
		case <-time.After(time.Until(p.due)):
		case <-c.ctx.Done():
		}
		switch {
		case c.ctx.Err() != nil, c.silent.Load():
		case len(p.bytes) == 0:
			dst.(interface{ CloseWrite() error }).CloseWrite()
		default:
			if _, err := dst.Write(p.bytes); err != nil {
				c.close(false)
			}
		}
	}
}

// drain drops what src says, and its end, until the connection is closed.
func (c *proxyConn) drain(src net.Conn) {
	for buf := make([]byte, 32<<10); ; {
		if _, err := src.Read(buf); err != nil {
			<-c.ctx.Done()
			return
		}
	}
}

// close ends both sides; reset makes that an RST. Later calls do nothing. Safe for concurrent use.
func (c *proxyConn) close(reset bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel()
	for _, side := range []net.Conn{c.client, c.server} {
		if side == nil {
			continue
		}
		if tcp, ok := side.(*net.TCPConn); ok && reset {
			tcp.SetLinger(0)
		}
		side.Close()
	}
}
