package testutil

import (
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// CollectionServer is a [Store] behind a [Server] on loopback TCP, which can be stopped and started
// again on the same port. Its methods are safe for concurrent use.
type CollectionServer struct {
	*Store
	addr string
	opts []Option // of the server

	running sync.Mutex // held over starts and stops
	server  *Server    // nil while stopped

	recording sync.Mutex
	requests  []*Request
}

// NewCollectionServer starts a server that holds nothing yet, on a free port. It must be stopped.
// The functions of [OnStream] and [OnRequest] are called before the store acts; they must not stop
// the server.
func NewCollectionServer(opts ...Option) (*CollectionServer, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("collection server: %w", err)
	}
	s := &CollectionServer{Store: NewStore(), addr: lis.Addr().String()}
	s.opts = append(slices.Clone(opts), Unrecorded(), OnRequest(s.record), s.Serve())
	s.start(lis)
	return s, nil
}

// start serves the store on a listener; the caller holds running, or is the only one.
func (s *CollectionServer) start(lis net.Listener) {
	s.server = newServer(lis, s.opts)
	s.server.start()
}

func (s *CollectionServer) record(_ *Stream, r *Request) {
	s.recording.Lock()
	defer s.recording.Unlock()
	s.requests = append(s.requests, r)
}

// Addr is the address of the server, "127.0.0.1:port". It outlives a restart.
func (s *CollectionServer) Addr() string { return s.addr }

// Bootstrap is the bootstrap of a client of this server alone, in plain text: for old-style
// names, and for structured names of the given authorities, of which "" is one. Delta
// chooses the variant. The caller may change it.
func (s *CollectionServer) Bootstrap(delta bool, authorities ...string) *bootstrap.Config {
	server := bootstrap.ManagementServer{URI: s.addr, ChannelCreds: bootstrap.Insecure(), Delta: delta}
	c := &bootstrap.Config{
		Servers:     []bootstrap.ManagementServer{server},
		Authorities: make(map[string]bootstrap.Authority, len(authorities)),
	}
	for _, a := range authorities {
		c.Authorities[a] = bootstrap.Authority{}
	}
	return c.WithDefaults()
}

// Stop closes the listener and cuts all connections, as a process that is killed, and
// waits for the streams to end. The resources stay for a restart. Stopping twice is
// nothing.
func (s *CollectionServer) Stop() {
	s.running.Lock()
	defer s.running.Unlock()
	if s.server != nil {
		s.server.Close()
		s.server = nil
	}
}

// Restart starts a stopped server again on the same port, with the resources as they are
// by then. It waits up to ten seconds for the port to be free. The error is [ErrRunning] if
// the server was not stopped.
func (s *CollectionServer) Restart() error {
	s.running.Lock()
	defer s.running.Unlock()
	if s.server != nil {
		return ErrRunning
	}
	lis, err := listenAgain(s.addr)
	if err != nil {
		return fmt.Errorf("restart collection server: %w", err)
	}
	s.start(lis)
	return nil
}

// Requests are all requests so far, in the order of their arrival, over all restarts. Streams
// are numbered from 1 after each.
func (s *CollectionServer) Requests() []*Request {
	s.recording.Lock()
	defer s.recording.Unlock()
	return slices.Clone(s.requests)
}
