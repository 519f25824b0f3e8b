package testutil

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"
)

// NodeKey is the key of the one snapshot of a [ManagementServer] in its cache: every
// node, whatever its id, is given that snapshot.
const NodeKey = "any"

// bindPatience is how long a restart waits for its port to be free again.
const bindPatience = 10 * time.Second

// ErrRunning is the error of a restart without a stop.
var ErrRunning = errors.New("management server is running")

// ManagementConfig configures a [ManagementServer]. Its zero value works.
type ManagementConfig struct {
	// Addr is the TCP address to listen on; "127.0.0.1:0" if empty.
	Addr string
	// ADS puts the snapshot cache in its ADS mode, in which a state-of-the-world request
	// with names is answered only if it names every resource of its type in the snapshot.
	ADS bool
	// Ordered makes aggregated state-of-the-world streams answer in the order of types of
	// go-control-plane (its WithOrderedADS).
	Ordered bool
	// TLS makes the server speak TLS. Nil is plain text.
	TLS *tls.Config
	// GRPC are more options of the grpc server, such as keepalive and maximum ages.
	GRPC []grpc.ServerOption
	// OnRequest, if set, is called for each request as it came from the wire, before the
	// server sees it, one at a time for each stream. It must not stop the server.
	OnRequest func(*Request)
}

// ManagementServer is a real management server: the server and the snapshot cache of
// go-control-plane on loopback TCP, with the aggregated service and those of single
// types. Its methods are safe for concurrent use.
type ManagementServer struct {
	config ManagementConfig
	addr   string
	counts counter

	setting  sync.Mutex // taken before mu; held over the cache's work, which Stop can end
	mu       sync.Mutex
	snapshot *cache.Snapshot // nil until set
	run      *managementRun  // nil while stopped
}

// managementRun is what lives between a start and a stop.
type managementRun struct {
	ctx    context.Context
	cancel context.CancelFunc
	cache  cache.SnapshotCache
	lis    *connListener
	grpc   *grpc.Server
	served chan struct{} // closed when the listener is no longer served
}

type anyNode struct{}

func (anyNode) ID(*corev3.Node) string { return NodeKey }

// NewManagementServer starts a server without a snapshot; until there is one, requests
// stay unanswered. It must be stopped.
func NewManagementServer(cfg ManagementConfig) (*ManagementServer, error) {
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	lis, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("management server: %w", err)
	}
	m := &ManagementServer{config: cfg, addr: lis.Addr().String()}
	m.run = m.start(lis, nil)
	return m, nil
}

// Addr is the address of the server, "127.0.0.1:port". It outlives a restart.
func (m *ManagementServer) Addr() string { return m.addr }

// Set replaces the snapshot, and clients are told of it. The resources may be of the
// types Listener, RouteConfiguration, ScopedRouteConfiguration, VirtualHost, Cluster,
// ClusterLoadAssignment, Secret, Runtime and TypedExtensionConfig. The version counts for
// every type, those without resources too, as state-of-the-world version; delta versions
// are hashes of the content. A version that was in use already changes nothing for
// state-of-the-world clients that have it. The resources must not be changed afterwards.
// A server that is stopped keeps the snapshot for its restart.
func (m *ManagementServer) Set(version string, resources ...proto.Message) error {
	snapshot, err := newSnapshot(version, resources)
	if err != nil {
		return fmt.Errorf("snapshot %q: %w", version, err)
	}
	m.setting.Lock()
	defer m.setting.Unlock()
	m.mu.Lock()
	m.snapshot = snapshot
	run := m.run
	m.mu.Unlock()
	if run == nil {
		return nil
	}
	if err := run.set(snapshot); err != nil {
		return fmt.Errorf("snapshot %q: %w", version, err)
	}
	return nil
}

// Cache is the snapshot cache of the running server, for what Set cannot do: the snapshot
// stands under [NodeKey]. A restart makes a new cache. It is nil while the server is
// stopped.
func (m *ManagementServer) Cache() cache.SnapshotCache {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run == nil {
		return nil
	}
	return m.run.cache
}

// Stop closes the listener and cuts all connections, as a process that is killed, and
// waits for the streams to end. A second call does nothing.
func (m *ManagementServer) Stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run != nil {
		m.run.stop()
		m.run = nil
	}
}

// Restart starts a stopped server again on the same port, with its last snapshot or with
// none. It waits up to ten seconds for the port to be free. The error is [ErrRunning] if
// the server was not stopped.
func (m *ManagementServer) Restart(keepSnapshot bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run != nil {
		return ErrRunning
	}
	lis, err := listenAgain(m.addr)
	if err != nil {
		return fmt.Errorf("restart management server: %w", err)
	}
	if !keepSnapshot {
		m.snapshot = nil
	}
	m.run = m.start(lis, m.snapshot)
	return nil
}

// listenAgain listens on a port that was in use until now.
func listenAgain(addr string) (net.Listener, error) {
	deadline := time.Now().Add(bindPatience)
	for {
		lis, err := net.Listen("tcp", addr)
		if err == nil || time.Now().After(deadline) {
			return lis, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (m *ManagementServer) start(lis net.Listener, snapshot *cache.Snapshot) *managementRun {
	r := &managementRun{
		cache:  cache.NewSnapshotCache(m.config.ADS, anyNode{}, nil),
		lis:    newConnListener(lis),
		served: make(chan struct{}),
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.grpc = m.newGRPC(serveCache(r.ctx, r.cache, m.config.Ordered))
	if snapshot != nil {
		// A cache without watches has nobody to tell, and so no error.
		_ = r.set(snapshot)
	}
	go func() {
		defer close(r.served)
		// The listener fails only by being closed.
		_ = r.grpc.Serve(r.lis)
	}()
	return r
}

func (m *ManagementServer) newGRPC(serve grpc.StreamHandler) *grpc.Server {
	opts := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(math.MaxInt),
		grpc.WaitForHandlers(true),
		grpc.UnknownServiceHandler(serve),
		grpc.ChainStreamInterceptor(m.intercept),
	}
	if m.config.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(m.config.TLS)))
	}
	return grpc.NewServer(append(opts, m.config.GRPC...)...)
}

func (r *managementRun) set(snapshot *cache.Snapshot) error {
	return r.cache.SetSnapshot(r.ctx, NodeKey, snapshot)
}

func (r *managementRun) stop() {
	r.lis.Close()
	r.cancel()
	r.grpc.Stop()
	<-r.served
}
