package testutil

import (
	"context"
	"errors"
	"net"
	"slices"

	"google.golang.org/grpc"

	"github.com/xdswatch/xdswatch/internal/handover"
)

var errRefused = errors.New("connection refused by the script")

// generation is one grpc server. A server that says GOAWAY to its connections takes no
// new ones, so that each GOAWAY begins a new generation.
type generation struct {
	grpc *grpc.Server
	lis  *handover.Listener
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
	switch {
	case hold && s.hold == nil:
		s.hold = make(chan struct{})
	case !hold && s.hold != nil:
		close(s.hold)
		s.hold = nil
	}
}

// DropConnections cuts all connections without a word: with a reset over TCP, with an end
// of file in memory. New ones are taken as before.
func (s *Server) DropConnections() { s.lis.drop() }

// GoAway tells the clients of all connections to open no new stream there, as a server
// does at the end of a connection's maximum age. Streams that are open go on; a connection
// ends with its last stream, and a new stream of the client needs a new connection, which
// the server takes. GoAway does not wait for the clients.
func (s *Server) GoAway() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return
	default:
	}
	g := s.current
	s.old = append(s.old, g)
	s.current = s.newGeneration()
	s.wg.Go(func() {
		g.grpc.GracefulStop()
		s.forget(g)
	})
}

// forget drops a generation whose connections have ended.
func (s *Server) forget(g *generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old = slices.DeleteFunc(s.old, func(o *generation) bool { return o == g })
}

func (s *Server) newGeneration() *generation {
	g := &generation{grpc: s.newGRPC(), lis: handover.Listen(s.lis.Addr())}
	s.wg.Go(func() {
		// The listener fails only by being closed.
		_ = g.grpc.Serve(g.lis)
	})
	return g
}

func (s *Server) generations() []*generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(slices.Clone(s.old), s.current)
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
	for {
		conn, err := s.lis.Accept()
		if err != nil {
			return
		}
		s.wg.Go(func() { s.admit(conn) })
	}
}

// admit hands a connection to the current generation, or closes it.
func (s *Server) admit(conn net.Conn) {
	if s.enter(context.Background()) != nil {
		conn.Close()
		return
	}
	for {
		s.mu.Lock()
		g := s.current
		s.mu.Unlock()
		if g.lis.Give(context.Background(), conn) == nil {
			return
		}
		select {
		case <-s.closed:
			conn.Close()
			return
		default:
		}
	}
}

// enter waits while connections are on hold and says whether one may come in.
func (s *Server) enter(ctx context.Context) error {
	for {
		s.mu.Lock()
		hold, refuse := s.hold, s.refuse
		s.mu.Unlock()
		switch {
		case refuse:
			return errRefused
		case hold == nil:
			return nil
		}
		select {
		case <-hold:
		case <-s.closed:
			return ErrServerClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
