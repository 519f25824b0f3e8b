package testutil

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"
)

// NodeKey is the key of the one snapshot of a [ManagementServer] in its cache: every
// node, whatever its id, is given that snapshot.
const NodeKey = "any"

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
	// GRPC are more options of the grpc server, such as keepalive and maximum ages. Interceptors see
	// discovery messages, where those of a [Server] see bytes.
	GRPC []grpc.ServerOption
	// OnRequest, if set, is called for each request as it came from the wire, before the
	// server sees it, one at a time for each stream. It must not stop the server.
	OnRequest func(*Request)
}

// ManagementServer is a real management server: the server and the snapshot cache of
// go-control-plane on loopback TCP, with the aggregated service and those of single
// types. Its methods are safe for concurrent use.
type ManagementServer struct {
	port
	config ManagementConfig
	counts counter

	setting  sync.Mutex // held over the cache's work, which Stop ends
	mu       sync.Mutex
	snapshot *cache.Snapshot     // nil until set
	cache    cache.SnapshotCache // of the last start
	ctx      context.Context     // done when the server of the last start is stopped
}

type anyNode struct{}

func (anyNode) ID(*corev3.Node) string { return NodeKey }

// NewManagementServer starts a server without a snapshot; until there is one, requests
// stay unanswered. It must be stopped.
func NewManagementServer(cfg ManagementConfig) (*ManagementServer, error) {
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	m := &ManagementServer{config: cfg}
	opts := []grpc.ServerOption{grpc.ChainStreamInterceptor(m.intercept)}
	if cfg.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(cfg.TLS)))
	}
	if err := m.listen(cfg.Addr, m.begin, GRPCOptions(append(opts, cfg.GRPC...)...)); err != nil {
		return nil, fmt.Errorf("management server: %w", err)
	}
	return m, nil
}

// StartManagementServer is [NewManagementServer] for the length of a test, which fails if
// the server cannot start and stops it at its end.
func StartManagementServer(tb testing.TB, cfg ManagementConfig) *ManagementServer {
	tb.Helper()
	m, err := NewManagementServer(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(m.Stop)
	return m
}

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
		return err
	}
	m.setting.Lock()
	defer m.setting.Unlock()
	m.mu.Lock()
	m.snapshot = snapshot
	cache, ctx := m.cache, m.ctx
	m.mu.Unlock()
	if err := cache.SetSnapshot(ctx, NodeKey, snapshot); err != nil && ctx.Err() == nil {
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
	if m.ctx.Err() != nil {
		return nil
	}
	return m.cache
}

// Restart starts a stopped server again on the same port, with its last snapshot or with
// none. It waits up to ten seconds for the port to be free. The error is [ErrRunning] if
// the server was not stopped.
func (m *ManagementServer) Restart(keepSnapshot bool) error {
	return m.restart(func(*Server) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !keepSnapshot {
			m.snapshot = nil
		}
	})
}

// begin has a server that starts serve a new cache.
func (m *ManagementServer) begin(s *Server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cache, m.ctx = cache.NewSnapshotCache(m.config.ADS, anyNode{}, nil), s.ctx
	if m.snapshot != nil {
		// A cache without watches has nobody to tell, and so no error.
		_ = m.cache.SetSnapshot(m.ctx, NodeKey, m.snapshot)
	}
	s.handler = serveCache(m.ctx, m.cache, m.config.Ordered)
}
