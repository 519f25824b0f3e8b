package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/xdswatch/xdswatch/internal/redact"
	"github.com/xdswatch/xdswatch/transport"
)

// conn is the connection to a server, which its streams share. The first of them makes it:
// that runs code of the program's, for which the loop does not wait.
type conn struct {
	server  *Server
	streams int // that use it, and uses; owned by the loop

	turn chan struct{}  // of one: whoever looks at made. Who closes it takes it for good
	made transport.Conn // nil until then
}

var errTransportExited = errors.New("the transport ended its goroutine (runtime.Goexit)")

// transportFault is the error of a transport that did not return, with what was recovered: nil after a Goexit.
func transportFault(p any) error {
	if p == nil {
		return errTransportExited
	}
	return fmt.Errorf("the transport panicked: %s", redact.Panic(p))
}

// conns are the connections that are kept; owned by the loop.
type conns struct {
	work   *sync.WaitGroup
	letGo  func(*Server, func()) // [Engine.letGo]
	to     map[*Server]*conn
	unused []*conn // whose last stream ended in this step
}

// join has a stream use the connection to a server, which it makes if it is the first.
func (cs *conns) join(server *Server) *conn {
	c := cs.to[server]
	if c == nil {
		c = &conn{server: server, turn: make(chan struct{}, 1)}
		cs.to[server] = c
	}
	c.streams++
	return c
}

// leave is the end of a stream that has used a connection.
func (cs *conns) leave(c *conn) {
	if c.streams--; c.streams == 0 {
		cs.unused = append(cs.unused, c)
	}
}

// hangUp closes the connections whose last stream ended in this step, unless another began.
func (cs *conns) hangUp() {
	for _, c := range cs.unused {
		if c.streams == 0 && cs.to[c.server] == c {
			delete(cs.to, c.server) // the next stream dials anew
			cs.close(c)
		}
	}
	cs.unused = nil
}

// close closes a connection without waiting: gRPC waits up to seconds for a peer that
// does not read.
func (cs *conns) close(c *conn) {
	cs.work.Go(func() { cs.letGo(c.server, c.close) })
}

// letGo has the transport close what it made for a server. If it panics that is logged, and ends nothing else.
func (e *Engine) letGo(server *Server, close func()) {
	defer func() {
		if p := recover(); p != nil {
			// H-12: what goes wrong in the program's code ends nothing else.
			e.Complain("the transport panicked while it closed a stream or a connection", server.URI, "", redact.Panic(p))
		}
	}()
	close()
}

// get makes the connection if there is none yet. Who comes after one that failed tries again.
func (c *conn) get(ctx context.Context) (transport.Conn, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.turn }()
	if c.made == nil {
		made, err := c.server.Connect()
		if err != nil {
			return nil, err
		}
		c.made = made
	}
	return c.made, nil
}

// openApart opens a stream by code of the program's. Whatever that does is the failure of the attempt.
func openApart(open func() (transport.Stream, error)) (ts transport.Stream, err error) {
	Apart(func() { ts, err = open() }, func(p any) {
		ts, err = nil, transportFault(p)
	})
	return ts, err
}

// close closes the connection once nobody makes it. The streams have ended before.
func (c *conn) close() {
	c.turn <- struct{}{}
	if c.made != nil {
		_ = c.made.Close() // nobody is left to hear of it
	}
}
