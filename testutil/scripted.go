package testutil

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/xdswatch/xdswatch/internal/handover"
)

// ErrServerClosed is the error of a server after Close.
var ErrServerClosed = errors.New("server is closed")

// Server is a management server that does what a test tells it to do: see the package's
// overview. It receives messages of any size, and allows pings of any frequency. Its methods are
// safe for concurrent use.
type Server struct {
	name       string
	onStream   []func(*Stream)
	onRequest  []func(*Stream, *Request)
	unrecorded bool
	handler    grpc.StreamHandler // in place of a test that plays the streams, with grpc's messages and keepalive policy
	grpcOpts   []grpc.ServerOption

	memory *handover.Listener // nil unless in memory
	lis    net.Listener
	target string

	streams  feed[*Stream]
	requests feed[*Request]

	ctx       context.Context         // done when the server is closed
	cancel    context.CancelCauseFunc // with ErrServerClosed
	accepting sync.WaitGroup          // the acceptor
	wg        sync.WaitGroup          // admissions, generations, readers

	mu       sync.Mutex
	opened   int  // streams so far
	refuse   bool // new connections are refused
	hold     bool // they hang
	conns    map[*serverConn]struct{}
	grpc     *grpc.Server       // of new connections
	incoming *handover.Listener // of grpc

	admitting change // of hold
}

// Option is an option of [NewServer] and [ListenServer].
type Option func(*Server)

// Named gives a server in memory another name than "scripted", which distinguishes several of
// them: see [InMemory].
func Named(name string) Option { return func(s *Server) { s.name = name } }

// OnStream adds a function that is called for each new stream before its first request is
// read, after those that were added before. Reading waits for its return. It may end the stream.
func OnStream(f func(*Stream)) Option {
	return func(s *Server) { s.onStream = append(s.onStream, f) }
}

// OnRequest adds a function that is called for each request, after it was recorded and after
// the functions that were added before, on the goroutine that reads the stream: calls for one
// stream come in order, and its next request waits for the return. It must not call
// [Server.Close], which waits for it.
func OnRequest(f func(*Stream, *Request)) Option {
	return func(s *Server) { s.onRequest = append(s.onRequest, f) }
}

// Unrecorded makes a server forget its streams and requests, for runs too long to keep
// them: only [OnStream] and [OnRequest] see them, [Server.Accept] and [Stream.Next] wait in
// vain, and the lists stay empty.
func Unrecorded() Option { return func(s *Server) { s.unrecorded = true } }

// GRPCOptions adds options of the grpc server, such as credentials, maximum ages or
// window sizes.
func GRPCOptions(opts ...grpc.ServerOption) Option {
	return func(s *Server) { s.grpcOpts = append(s.grpcOpts, opts...) }
}

// NewServer starts a server in memory, to be reached with [Server.Target] and
// [Server.DialOptions]. It must be closed; in a testing/synctest bubble, by the bubble.
func NewServer(opts ...Option) *Server {
	return startServer(handover.Memory(), "", opts)
}

// StartServer is [NewServer] for the length of a test, which closes it at its end. In a
// testing/synctest bubble the test is the bubble's own.
func StartServer(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	s := NewServer(opts...)
	tb.Cleanup(s.Close)
	return s
}

// ListenServer starts a server on a TCP address such as "127.0.0.1:0", or on the Unix
// socket of an address "unix:path". It must be closed.
func ListenServer(addr string, opts ...Option) (*Server, error) {
	network, address := "tcp", addr
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, address = "unix", strings.TrimPrefix(path, "//")
	}
	lis, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("scripted server: %w", err)
	}
	target := lis.Addr().String()
	if network == "unix" {
		target = "unix:" + address
	}
	return startServer(lis, target, opts), nil
}

func startServer(lis net.Listener, target string, opts []Option) *Server {
	s := &Server{name: "scripted", lis: lis, target: target, conns: make(map[*serverConn]struct{})}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	for _, o := range opts {
		o(s)
	}
	if memory, ok := lis.(*handover.Listener); ok {
		s.memory, s.target = memory, "passthrough:///"+s.name
	}
	s.newGeneration()
	s.accepting.Go(s.accept)
	return s
}

// Target is what a grpc client dials: "passthrough:///scripted" in memory (or the name
// given), else the address, with its port or as "unix:path".
func (s *Server) Target() string { return s.target }

// DialOptions are the options that a grpc client needs to reach the server: a dialer in
// memory, none otherwise. Credentials are the client's own affair.
func (s *Server) DialOptions() []grpc.DialOption {
	if s.memory == nil {
		return nil
	}
	return []grpc.DialOption{InMemory(s)}
}

// InMemory is the dialer of a client that talks to several servers in memory. They are
// told apart by the name in their target; the names must differ.
func InMemory(servers ...*Server) grpc.DialOption {
	servers = slices.Clone(servers)
	return grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		for _, s := range servers {
			if s.memory != nil && s.name == addr {
				return s.dial(ctx)
			}
		}
		return nil, fmt.Errorf("dial %q: no server in memory has this name", addr)
	})
}

// Accept waits for the next stream that was not taken yet. Its errors are those of ctx,
// and [ErrServerClosed].
func (s *Server) Accept(ctx context.Context) (*Stream, error) {
	st, err := s.streams.next(ctx, s.ctx)
	if err != nil {
		return nil, fmt.Errorf("accept a stream: %w", err)
	}
	return st, nil
}

// Streams are all streams so far, taken or not, over or not.
func (s *Server) Streams() []*Stream { return s.streams.all() }

// Requests are all requests of all streams so far, in the order of their arrival.
func (s *Server) Requests() []*Request { return s.requests.all() }

// Close cuts all connections and waits for everything that the server started, hooks
// included. It removes the socket of a Unix address. A second call does nothing.
func (s *Server) Close() {
	s.lis.Close()
	s.accepting.Wait()
	// Connections go before streams end, as with a process that is killed. A grpc server that stops waits
	// for those in their handshake too.
	s.DropConnections()
	s.mu.Lock() // not while GoAway begins a generation
	s.cancel(ErrServerClosed)
	s.mu.Unlock()
	s.wg.Wait()
}

// handle serves one stream; grpc calls it for every method.
func (s *Server) handle(_ any, gs grpc.ServerStream) error {
	st := s.newStream(gs)
	s.wg.Go(func() {
		for _, f := range s.onStream {
			f(st)
		}
		st.read()
	})
	<-st.Done()
	if err := st.Err(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// newGeneration starts a grpc server for new connections: one that says GOAWAY to its connections takes none.
func (s *Server) newGeneration() {
	handler := s.handler
	opts := []grpc.ServerOption{grpc.MaxRecvMsgSize(math.MaxInt), grpc.WaitForHandlers(true)}
	if handler == nil {
		handler = s.handle
		opts = append(opts, grpc.ForceServerCodecV2(rawCodec{}), grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: time.Nanosecond, PermitWithoutStream: true,
		}))
	}
	opts = append(opts, s.grpcOpts...)
	g, lis := grpc.NewServer(append(opts, grpc.UnknownServiceHandler(handler))...), handover.Listen(s.lis.Addr())
	s.grpc, s.incoming = g, lis
	s.wg.Go(func() {
		defer context.AfterFunc(s.ctx, g.Stop)()
		_ = g.Serve(lis) // until all connections have ended that were sent GOAWAY, or the server is closed
	})
}
