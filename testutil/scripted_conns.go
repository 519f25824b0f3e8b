package testutil

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
)

var errRefused = errors.New("connection refused by the script")

// serverConn is a connection of a server, which knows it until it is closed.
type serverConn struct {
	net.Conn
	server *Server
}

func (c *serverConn) Close() error {
	c.server.mu.Lock()
	delete(c.server.conns, c)
	c.server.mu.Unlock()
	return c.Conn.Close()
}

// resetAtClose makes the close of a connection over TCP a reset, without sending what is queued.
func resetAtClose(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a connection that is already gone needs no reset
	}
}

// SetRefuse makes the server refuse new connections, or take them again. In memory the
// dial fails; elsewhere the connection is closed at once. Connections that stand are left
// alone.
func (s *Server) SetRefuse(refuse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

// SetHoldDial makes new connections hang until they are released by SetHoldDial(false) or
// Close. In memory the dial blocks; elsewhere the connection stands, and is silent. What
// is released is refused if SetRefuse says so by then.
func (s *Server) SetHoldDial(hold bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = hold
	s.admitting.happened()
}

// DropConnections cuts all connections without a word: with a reset over TCP, with an end
// of file in memory. New ones are taken as before.
func (s *Server) DropConnections() {
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		resetAtClose(c.Conn)
		c.Close()
	}
}

// GoAway tells the clients of all connections to open no new stream there, as a server
// does at the end of a connection's maximum age. Streams that are open go on; a connection
// ends with its last stream, and a new stream of the client needs a new connection, which
// the server takes. GoAway does not wait for the clients.
func (s *Server) GoAway() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	s.wg.Go(s.grpc.GracefulStop)
	s.newGeneration()
}

// dial makes a connection in memory.
func (s *Server) dial(ctx context.Context) (net.Conn, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	return s.memory.Dial(ctx)
}

// accept takes connections until the listener is closed.
func (s *Server) accept() {
	for conn, err := s.lis.Accept(); err == nil; conn, err = s.lis.Accept() {
		c := &serverConn{conn, s}
		s.mu.Lock()
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		s.wg.Go(func() { s.admit(c) })
	}
}

// admit gives a connection to the newest grpc server, or closes it.
func (s *Server) admit(conn net.Conn) {
	for err := s.enter(s.ctx); err == nil; err = s.ctx.Err() {
		s.mu.Lock()
		incoming := s.incoming
		s.mu.Unlock()
		if incoming.Give(s.ctx, conn) == nil {
			return
		}
	}
	conn.Close()
}

// enter waits while connections are on hold and says whether one may come in.
func (s *Server) enter(ctx context.Context) error {
	refused := false
	err := s.admitting.await(ctx, s.ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		refused = s.refuse
		return refused || !s.hold
	})
	if err == nil && refused {
		return errRefused
	}
	return err
}
