package lives

import (
	"io"

	"github.com/cilium/cilium/pkg/envoy/xds"
	"github.com/cilium/cilium/pkg/logging"
	"google.golang.org/grpc"
)

// ciliumNode has the form that Cilium reads an address out of.
const ciliumNode = "host~127.0.0.1~no-id~localdomain"

// ciliumServer is Cilium's server, with a cache for each type.
type ciliumServer struct {
	caches map[typ]*xds.AckingResourceMutatorWrapper
	server *xds.Server
}

func cilium(t *truth) server {
	logging.DefaultLogger.SetOutput(io.Discard)
	s := &ciliumServer{caches: map[typ]*xds.AckingResourceMutatorWrapper{}}
	config := map[string]*xds.ResourceTypeConfiguration{}
	for _, k := range []typ{clusters, endpoints} {
		cache := xds.NewCache()
		s.caches[k] = xds.NewAckingResourceMutatorWrapper(cache)
		config[k.url()] = &xds.ResourceTypeConfiguration{Source: cache, AckObserver: s.caches[k]}
		s.change(k, t.content(k))
	}
	s.server = xds.NewServer(config)
	return s
}

func (s *ciliumServer) register(g *grpc.Server) {
	for k, d := range map[typ]struct{ name, method string }{
		clusters:  {"cluster.v3.ClusterDiscoveryService", "StreamClusters"},
		endpoints: {"endpoint.v3.EndpointDiscoveryService", "StreamEndpoints"},
	} {
		g.RegisterService(&grpc.ServiceDesc{ServiceName: "envoy.service." + d.name, Streams: []grpc.StreamDesc{{
			StreamName: d.method, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, gs grpc.ServerStream) error {
				return s.server.HandleRequestStream(gs.Context(), &sotwStream{ServerStream: gs}, k.url())
			},
		}}}, nil)
	}
}

func (s *ciliumServer) change(k typ, changes content) {
	for name, text := range changes {
		if text == "" {
			s.caches[k].Delete(k.url(), name, nil, nil, nil)
		} else {
			s.caches[k].Upsert(k.url(), name, k.message(name, text), nil, nil, nil)
		}
	}
}

// stop wakes what waits for a new version: it looks at its context only then.
func (s *ciliumServer) stop() {
	for k := range s.caches {
		s.change(k, content{"the end": "of the server"})
	}
}

func (s *ciliumServer) mute(typ, string) bool { return false }
