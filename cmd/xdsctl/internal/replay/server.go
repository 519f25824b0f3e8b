package replay

import (
	"context"
	"crypto/sha256"
	"errors"
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

	mu       sync.Mutex
	versions [2]map[content]string // of the resources of this state and of the one before
}

// content is a resource as it is served.
type content struct {
	typeURL, name string
	hash          [sha256.Size]byte // of its payload
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
	versions := map[content]string{}
	for url, t := range state {
		for name, r := range t.Resources {
			versions[content{url, name, sha256.Sum256(r.Payload)}] = r.Version
		}
	}
	s.mu.Lock()
	s.versions = [2]map[content]string{versions, s.versions[0]}
	s.mu.Unlock()
	return s.cache.SetSnapshot(s.ctx, node{}.ID(nil), snapshot{state})
}

// Serve serves until the server is stopped, which is no error.
func (s *Server) Serve(lis net.Listener) error {
	if err := s.grpc.Serve(lis); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Stop ends all streams and Serve.
func (s *Server) Stop() {
	s.cancel()
	s.grpc.Stop()
}

type sotwStream = grpc.GenericServerStream[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]

// deltaStream gives resources the versions of the state: go-control-plane sends hashes, and compares
// what a client has on a new stream with the versions of the state.
type deltaStream struct {
	grpc.GenericServerStream[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]
	server *Server
}

func (s *deltaStream) Send(resp *discoveryv3.DeltaDiscoveryResponse) error {
	s.server.mu.Lock()
	for _, r := range resp.GetResources() {
		id := content{resp.GetTypeUrl(), r.GetName(), sha256.Sum256(r.GetResource().GetValue())}
		for _, versions := range s.server.versions {
			if v, ok := versions[id]; ok {
				r.Version = v
				break
			}
		}
	}
	s.server.mu.Unlock()
	return s.GenericServerStream.Send(resp)
}

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
			stream := &deltaStream{server: s}
			stream.ServerStream = gs
			return incremental.DeltaStreamHandler(stream, typeURL)
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
