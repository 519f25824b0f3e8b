package testutil

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// maxCollectionResponse is the default of [CollectionConfig.MaxResponse], half of what
// grpc receives by default.
const maxCollectionResponse = 2 << 20

// CollectionConfig configures a [CollectionServer]. Its zero value works.
type CollectionConfig struct {
	// Addr is the TCP address to listen on; "127.0.0.1:0" if empty.
	Addr string
	// TLS makes the server speak TLS. Nil is plain text.
	TLS *tls.Config
	// GRPC are more options of the grpc server.
	GRPC []grpc.ServerOption
	// MaxResponse bounds a response, in bytes; 2 MiB if 0 or less. The server sends what does
	// not fit in further responses. It sends a resource that is larger by itself alone, and
	// never splits the state-of-the-world responses of Listener and Cluster, because they hold
	// everything by definition.
	MaxResponse int
	// OnRequest, if set, is called for each request before the server acts on it, one at a
	// time for each stream. It must not stop the server.
	OnRequest func(*Request)
}

// CollectionServer is a management server that knows structured names: beside single
// resources it serves globs, list collections, redirects and aliases (xRFC TP1), over
// loopback TCP, aggregated or on the streams of single types, state of the world or delta.
// It holds one set of resources for all clients and all authorities, and tells each client
// of the changes in what it asked for. It is as good-natured as the protocol allows:
//
//   - A delta client that asks for a name is told at once that it does not exist, in
//     removed_resources, or is given it, also if the server thinks that it has it. One that
//     asks for a collection is always answered: with the members, with the glob's own URL
//     in removed_resources if there are none, with an empty response if it has them all.
//   - A glob covers the names with one more segment and exactly its context parameters. "*"
//     covers the old-style names of a type, and no structured one.
//   - initial_resource_versions are honoured: what is held is not sent again, and what is
//     gone is removed. A version_info at the beginning of a stream is not: everything is
//     sent.
//   - In state of the world a response of Listener or Cluster restates everything that is
//     asked for; one of another type has what changed or was newly asked for. Such a client
//     cannot be told that a member of a glob went. A resource is wrapped in
//     envoy.service.discovery.v3.Resource only if it needs it: for its TTL, its aliases,
//     its cache control, its metadata, or a name that does not stand in the message.
//   - A rejected resource is not sent again before it changes or is asked for anew.
//
// Names are compared by their parts, so that a client may spell them in any way; a resource
// is sent under the name with which it was set.
//
// Its methods are safe for concurrent use. A client that does not read delays nobody else.
type CollectionServer struct {
	config CollectionConfig
	addr   string

	running sync.Mutex     // held over starts and stops; taken before mu
	run     *collectionRun // nil while stopped

	mu       sync.Mutex
	shelves  map[string]*shelf // by type URL
	streams  map[*collectionStream]struct{}
	requests []*Request
	counts   Counters
	conns    int
	changed  chan struct{} // nil while nobody waits; closed at the next change
}

// collectionRun is what lives between a start and a stop.
type collectionRun struct {
	lis  *connListener
	grpc *grpc.Server
	wg   sync.WaitGroup // the server, readers and writers
}

// NewCollectionServer starts a server that holds nothing yet. It must be stopped.
func NewCollectionServer(cfg CollectionConfig) (*CollectionServer, error) {
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	if cfg.MaxResponse <= 0 {
		cfg.MaxResponse = maxCollectionResponse
	}
	lis, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("collection server: %w", err)
	}
	s := &CollectionServer{
		config:  cfg,
		addr:    lis.Addr().String(),
		shelves: make(map[string]*shelf),
		streams: make(map[*collectionStream]struct{}),
	}
	s.run = s.start(lis)
	return s, nil
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
	if s.run != nil {
		s.run.stop()
		s.run = nil
	}
}

// Restart starts a stopped server again on the same port, with the resources as they are
// by then. It waits up to ten seconds for the port to be free. The error is [ErrRunning] if
// the server was not stopped.
func (s *CollectionServer) Restart() error {
	s.running.Lock()
	defer s.running.Unlock()
	if s.run != nil {
		return ErrRunning
	}
	lis, err := listenAgain(s.addr)
	if err != nil {
		return fmt.Errorf("restart collection server: %w", err)
	}
	s.run = s.start(lis)
	return nil
}

// EndStreams ends all open streams as [Stream.End] does, and leaves the connections alone.
// It waits neither for the clients nor for responses that are still to be sent.
func (s *CollectionServer) EndStreams(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.streams {
		st.finish(err)
	}
}

func (s *CollectionServer) start(lis net.Listener) *collectionRun {
	r := &collectionRun{lis: newConnListener(lis)}
	r.grpc = s.newGRPC(r)
	r.wg.Go(func() {
		// The listener fails only by being closed.
		_ = r.grpc.Serve(r.lis)
	})
	return r
}

func (s *CollectionServer) newGRPC(r *collectionRun) *grpc.Server {
	methods := collectionMethods()
	opts := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(math.MaxInt),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime:             time.Nanosecond,
			PermitWithoutStream: true,
		}),
		grpc.StatsHandler(connStats{s}),
	}
	if s.config.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(s.config.TLS)))
	}
	opts = append(opts, s.config.GRPC...)
	return grpc.NewServer(append(opts,
		grpc.ForceServerCodecV2(rawCodec{}),
		grpc.UnknownServiceHandler(func(_ any, gs grpc.ServerStream) error {
			return s.handle(r, methods, gs)
		}),
		grpc.WaitForHandlers(true),
	)...)
}

func (r *collectionRun) stop() {
	r.lis.Close()
	r.grpc.Stop()
	r.wg.Wait()
}

// Await waits until ok, which is asked at first and then after each change in what the
// other methods tell: streams, connections, requests, responses, and what was set. ok may
// call the server's methods. The error is that of ctx.
func (s *CollectionServer) Await(ctx context.Context, ok func() bool) error {
	for {
		changed := s.nextChange()
		if ok() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("counters are %+v: %w", s.Counters(), ctx.Err())
		}
	}
}

func (s *CollectionServer) nextChange() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// noteChange wakes those who wait; the caller holds mu.
func (s *CollectionServer) noteChange() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}
