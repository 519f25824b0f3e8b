package testutil

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
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
	counter
	config ManagementConfig
	cache  cache.SnapshotCache // over all restarts
}

type anyNode struct{}

func (anyNode) ID(*corev3.Node) string { return NodeKey }

// NewManagementServer starts a server without a snapshot; until there is one, requests
// stay unanswered. It must be stopped.
func NewManagementServer(cfg ManagementConfig) (*ManagementServer, error) {
	m := &ManagementServer{config: cfg, cache: cache.NewSnapshotCache(cfg.ADS, anyNode{}, nil)}
	opts := []grpc.ServerOption{grpc.ChainStreamInterceptor(m.intercept)}
	if cfg.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(cfg.TLS)))
	}
	serve := func(s *Server) { s.handler = serveCache(s.ctx, m.cache, cfg.Ordered) }
	if err := m.listen(cmp.Or(cfg.Addr, "127.0.0.1:0"), serve, GRPCOptions(append(opts, cfg.GRPC...)...)); err != nil {
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
	// Each stream has room for a response of each type, so that the cache waits for no client.
	if err := m.cache.SetSnapshot(context.Background(), NodeKey, snapshot); err != nil {
		return fmt.Errorf("snapshot %q: %w", version, err)
	}
	return nil
}

// Cache is the snapshot cache, for what Set cannot do: the snapshot stands under [NodeKey].
// It is the same over all restarts.
func (m *ManagementServer) Cache() cache.SnapshotCache { return m.cache }

// Restart starts a stopped server again on the same port, with its last snapshot or with
// none. It waits up to ten seconds for the port to be free. The error is [ErrRunning] if
// the server was not stopped.
func (m *ManagementServer) Restart(keepSnapshot bool) error {
	return m.restart(func(*Server) {
		if !keepSnapshot {
			m.cache.ClearSnapshot(NodeKey)
		}
	})
}
