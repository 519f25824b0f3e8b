package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/xdswatch/xdswatch/internal/redact"
	"github.com/xdswatch/xdswatch/transport"
)

// conn is the connection to a server, which its streams share. The first of them makes it:
// that runs code of the program's, for which the loop does not wait.
type conn struct {
	server  *server
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

// join has a stream use the connection to a server, which it makes if it is the first.
func (s *server) join() *conn {
	if s.conn == nil {
		s.conn = &conn{server: s, turn: make(chan struct{}, 1)}
	}
	s.conn.streams++
	return s.conn
}

// leave is the end of a stream that has used a connection.
func (e *Engine) leave(c *conn) {
	if c.streams--; c.streams == 0 {
		e.unused = append(e.unused, c.server)
	}
}

// hangUp closes the connections whose last stream ended in this step, unless another began.
func (e *Engine) hangUp() {
	for _, s := range e.unused {
		if s.conn != nil && s.conn.streams == 0 {
			e.disconnect(s) // the next stream dials anew
		}
	}
	e.unused = nil
}

// disconnect closes a server's connection without waiting: gRPC waits up to seconds for a peer that
// does not read.
func (e *Engine) disconnect(s *server) {
	c := s.conn
	s.conn = nil
	e.work.Go(func() { e.letGo(s, c.close) })
}

// letGo has the transport close what it made for a server. If it panics that is logged, and ends nothing else.
func (e *Engine) letGo(server *server, close func()) {
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
