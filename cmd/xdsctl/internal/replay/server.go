package replay

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"slices"
	"strings"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/recording"
	"github.com/xdswatch/xdswatch/resource/wellknown"
	"github.com/xdswatch/xdswatch/transport"
)

// Server is a management server with one state for all nodes. It serves the aggregated methods and
// those of the well-known types, in both variants. It is safe for concurrent use.
type Server struct {
	// Begun is closed when the first stream begins.
	Begun <-chan struct{}

	ctx    context.Context
	cancel context.CancelFunc
	cache  *globs
	grpc   *grpc.Server
}

// node is the key of the one snapshot.
type node struct{}

func (node) ID(*corev3.Node) string { return "" }

// NewServer makes a server without a state: until it is given one it answers nothing. It is in plaintext if
// secured is nil.
func NewServer(secured *tls.Config) *Server {
	creds := insecure.NewCredentials()
	if secured != nil {
		creds = credentials.NewTLS(secured)
	}
	begun := make(chan struct{})
	var once sync.Once
	s := &Server{Begun: begun, cache: newGlobs(cache.NewSnapshotCache(false, node{}, nil))}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	serve := s.handler()
	s.grpc = grpc.NewServer(
		grpc.Creds(creds),
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
	return s.cache.set(s.ctx, node{}.ID(nil), state)
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

// sotwStream unpacks what it sends, and has each new glob answered: go-control-plane answers a request
// with the newest version only if a name in it is new.
type sotwStream struct {
	grpc.GenericServerStream[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]
	typeURL string // of its requests; "" of the aggregated service
	heart   *heart
	asked   map[string][]string // the globs of the last request, by type URL
}

func (s *sotwStream) Recv() (*discoveryv3.DiscoveryRequest, error) {
	req, err := s.GenericServerStream.Recv()
	if err != nil {
		return nil, err
	}
	s.heart.met(req.GetNode())
	s.heart.asksFor(cmp.Or(s.typeURL, req.GetTypeUrl()), req.GetResourceNames())
	req.ResponseNonce = answered(req.GetResponseNonce())
	asked := globsIn(req.GetResourceNames())
	for _, glob := range asked {
		if !slices.Contains(s.asked[req.GetTypeUrl()], glob) {
			req.VersionInfo = ""
		}
	}
	s.asked[req.GetTypeUrl()] = asked
	return req, nil
}

func (s *sotwStream) Send(resp *discoveryv3.DiscoveryResponse) error {
	s.heart.mu.Lock()
	defer s.heart.mu.Unlock()
	p := s.heart.pulse(resp.GetTypeUrl())
	for i, a := range resp.GetResources() {
		r, err := unpacked(a.GetValue())
		if err == nil {
			s.heart.lives(p, r)
			resp.Resources[i], err = plain(resp.GetTypeUrl(), r)
		}
		if err != nil {
			return err
		}
	}
	p.version, p.nonce = resp.GetVersionInfo(), resp.GetNonce()
	s.heart.next(resp.GetTypeUrl(), p)
	return s.GenericServerStream.Send(resp)
}

// beat sends heartbeats.
func (s *sotwStream) beat(typeURL string, p *pulse, beats []*discoveryv3.Resource) error {
	resp := &discoveryv3.DiscoveryResponse{TypeUrl: typeURL, VersionInfo: p.version, Nonce: p.heartbeat()}
	for _, r := range beats {
		a, err := anypb.New(r)
		if err != nil {
			return err
		}
		resp.Resources = append(resp.Resources, a)
	}
	return s.GenericServerStream.Send(resp)
}

// deltaStream unpacks what it sends, which gives resources the versions of the state: go-control-plane
// sends hashes, and compares what a client has on a new stream with the versions of the state.
type deltaStream struct {
	grpc.GenericServerStream[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]
	typeURL string // of its requests; "" of the aggregated service
	heart   *heart
}

func (s *deltaStream) Recv() (*discoveryv3.DeltaDiscoveryRequest, error) {
	req, err := s.GenericServerStream.Recv()
	if err != nil {
		return nil, err
	}
	s.heart.met(req.GetNode())
	s.heart.asks(cmp.Or(s.typeURL, req.GetTypeUrl()), req.GetResourceNamesSubscribe(), req.GetResourceNamesUnsubscribe())
	req.ResponseNonce = answered(req.GetResponseNonce())
	return req, nil
}

func (s *deltaStream) Send(resp *discoveryv3.DeltaDiscoveryResponse) error {
	s.heart.mu.Lock()
	defer s.heart.mu.Unlock()
	p := s.heart.pulse(resp.GetTypeUrl())
	for i, packed := range resp.GetResources() {
		r, err := unpacked(packed.GetResource().GetValue())
		if err != nil {
			return err
		}
		s.heart.lives(p, r)
		resp.Resources[i] = r
	}
	p.version, p.nonce = resp.GetSystemVersionInfo(), resp.GetNonce()
	s.heart.next(resp.GetTypeUrl(), p)
	return s.GenericServerStream.Send(resp)
}

// beat sends heartbeats.
func (s *deltaStream) beat(typeURL string, p *pulse, beats []*discoveryv3.Resource) error {
	return s.GenericServerStream.Send(&discoveryv3.DeltaDiscoveryResponse{
		TypeUrl: typeURL, SystemVersionInfo: p.version, Nonce: p.heartbeat(), Resources: beats,
	})
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
			stream := &deltaStream{typeURL: typeURL, heart: s.newHeart()}
			stream.ServerStream, stream.heart.send = gs, stream.beat
			defer stream.heart.end()
			return incremental.DeltaStreamHandler(stream, typeURL)
		}
		stream := &sotwStream{typeURL: typeURL, heart: s.newHeart(), asked: map[string][]string{}}
		stream.ServerStream, stream.heart.send = gs, stream.beat
		defer stream.heart.end()
		return full.StreamHandler(stream, typeURL)
	}
}

func (s *Server) newHeart() *heart {
	return &heart{pulses: map[string]*pulse{}, state: func() recording.State {
		if state := s.cache.state.Load(); state != nil {
			return *state
		}
		return nil
	}}
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
