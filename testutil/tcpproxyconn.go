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

// errReset is the cause of the end of a connection that ends as that of a crashed peer does.
var errReset = errors.New("connection is reset")

// proxyConn is one client's connection through a [TCPProxy].
type proxyConn struct {
	client net.Conn
	silent atomic.Bool             // what is read is dropped, from now on
	delay  *atomic.Int64           // of the proxy
	ctx    context.Context         // done when the connection is to end
	end    context.CancelCauseFunc // with errReset for an RST
	over   chan struct{}           // closed when both sides are
}

// run forwards in both directions until both sides have ended, one has failed, or the
// connection is to end, and closes both. One that was silent from its start goes nowhere.
func (c *proxyConn) run(target string) {
	var forwarding, closing sync.WaitGroup
	sides := []net.Conn{c.client}
	if c.silent.Load() {
		forwarding.Go(func() { c.forward(nil, c.client) })
	} else if server, err := new(net.Dialer).DialContext(c.ctx, "tcp", target); err != nil {
		c.end(errReset) // as near as a proxy comes to a refused connection
	} else {
		sides = append(sides, server)
		forwarding.Go(func() { c.forward(server, c.client) })
		forwarding.Go(func() { c.forward(c.client, server) })
	}
	closing.Go(func() {
		<-c.ctx.Done()
		for _, side := range sides {
			if context.Cause(c.ctx) == errReset {
				resetAtClose(side)
			}
			side.Close()
		}
	})
	forwarding.Wait()
	c.end(nil)
	closing.Wait()
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
		switch silent := c.silent.Load(); {
		case silent && err == nil:
			continue
		case silent:
			<-c.ctx.Done() // the end is not passed on either
			return
		case err != nil && !errors.Is(err, io.EOF): // a reset, which does not wait for its turn
			c.end(errReset)
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
				c.end(nil)
			}
		}
	}
}
