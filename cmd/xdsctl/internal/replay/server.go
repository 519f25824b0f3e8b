package replay

import (
	"context"
	"math"
	"net"
	"strings"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/recording"
	"github.com/xdswatch/xdswatch/resource/wellknown"
	"github.com/xdswatch/xdswatch/transport"
)

// Server is a management server with one state for all nodes. It serves the aggregated methods and
// those of the well-known types, in both variants, in plaintext. It is safe for concurrent use.
type Server struct {
	// Begun is closed when the first stream begins.
	Begun <-chan struct{}

	ctx    context.Context
	cancel context.CancelFunc
	cache  cache.SnapshotCache
	grpc   *grpc.Server
}

// node is the key of the one snapshot.
type node struct{}

func (node) ID(*corev3.Node) string { return "" }

// NewServer makes a server without a state: until it is given one it answers nothing.
func NewServer() *Server {
	begun := make(chan struct{})
	var once sync.Once
	s := &Server{Begun: begun, cache: cache.NewSnapshotCache(false, node{}, nil)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	serve := s.handler()
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(math.MaxInt32),
		grpc.WaitForHandlers(true),
		grpc.UnknownServiceHandler(func(srv any, gs grpc.ServerStream) error {
			once.Do(func() { close(begun) })
			return serve(srv, gs)
		}),
	)
	return s
}

// Set has the server serve a state.
func (s *Server) Set(state recording.State) error {
	return s.cache.SetSnapshot(s.ctx, node{}.ID(nil), snapshot{state})
}

// Serve serves until the server is stopped.
func (s *Server) Serve(lis net.Listener) error { return s.grpc.Serve(lis) }

// Stop ends all streams and Serve.
func (s *Server) Stop() {
	s.cancel()
	s.grpc.Stop()
}

type (
	sotwStream  = grpc.GenericServerStream[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]
	deltaStream = grpc.GenericServerStream[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]
)

// handler serves the methods, which are not taken from go-control-plane's server package: that one
// needs the module of the rate limit service.
func (s *Server) handler() grpc.StreamHandler {
	full, incremental := sotw.NewServer(s.ctx, s.cache, nil), delta.NewServer(s.ctx, s.cache, nil)
	types := methods()
	return func(_ any, gs grpc.ServerStream) error {
		name, _ := grpc.MethodFromServerStream(gs)
		typeURL, ok := types[name]
		switch {
		case !ok:
			return status.Errorf(codes.Unimplemented, "no method %s", name)
		case strings.HasPrefix(name[strings.LastIndexByte(name, '/')+1:], "Delta"):
			return incremental.DeltaStreamHandler(&deltaStream{ServerStream: gs}, typeURL)
		}
		return full.StreamHandler(&sotwStream{ServerStream: gs}, typeURL)
	}
}

// methods are those of the aggregated service and of the well-known types, with the URL of the
// type; "" of the aggregated service.
func methods() map[string]string {
	all := map[string]string{transport.MethodADS: "", transport.MethodADSDelta: ""}
	for _, e := range wellknown.All() {
		sotw, delta := e.Kind.Methods()
		for _, m := range []string{sotw, delta} {
			if m != "" {
				all[m] = e.Kind.TypeURL()
			}
		}
	}
	return all
}
