// Package cilium runs the client against the xDS server of Cilium, which speaks state of
// the world on the streams of single types and nothing else, over a Unix socket. It is a
// module of its own, because Cilium is one.
package cilium

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/cilium/pkg/completion"
	"github.com/cilium/cilium/pkg/envoy/xds"
	"github.com/cilium/cilium/pkg/logging"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/realtest"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/resource/sds"
)

// address of the node, which Cilium reads in the node's id.
const address = "127.0.0.1"

// services are those that Cilium registers, with what follows "Stream" and "Delta" in the
// names of their methods.
var services = []struct {
	name, methods string
	kind          resource.AnyType
}{
	{"listener.v3.ListenerDiscoveryService", "Listeners", lds.Type},
	{"route.v3.RouteDiscoveryService", "Routes", rds.Type},
	{"cluster.v3.ClusterDiscoveryService", "Clusters", cds.Type},
	{"endpoint.v3.EndpointDiscoveryService", "Endpoints", eds.Type},
	{"secret.v3.SecretDiscoveryService", "Secrets", sds.Type},
}

type stream = grpc.GenericServerStream[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]

// server is Cilium's server, which can be killed and begin again.
type server struct {
	t     *testing.T
	path  string
	types map[string]*xds.AckingResourceMutatorWrapper // by type URL
	grpc  *grpc.Server
	over  chan struct{} // closed when it serves no more
}

func TestMain(m *testing.M) {
	logging.DefaultLogger.SetOutput(io.Discard)
	os.Exit(m.Run())
}

func newServer(t *testing.T) *server {
	s := &server{t: t, path: filepath.Join(t.TempDir(), "xds.sock")}
	s.reset()
	return s
}

// reset makes a server that holds nothing, and whose versions begin anew.
func (s *server) reset() {
	s.types = map[string]*xds.AckingResourceMutatorWrapper{}
	config := map[string]*xds.ResourceTypeConfiguration{}
	for _, d := range services {
		cache := xds.NewCache()
		acked := xds.NewAckingResourceMutatorWrapper(cache)
		s.types[d.kind.TypeURL()] = acked
		config[d.kind.TypeURL()] = &xds.ResourceTypeConfiguration{Source: cache, AckObserver: acked}
	}
	served := xds.NewServer(config)
	s.grpc = grpc.NewServer(grpc.WaitForHandlers(true))
	for _, d := range services {
		url := d.kind.TypeURL()
		s.grpc.RegisterService(&grpc.ServiceDesc{ServiceName: "envoy.service." + d.name, Streams: []grpc.StreamDesc{
			{StreamName: "Stream" + d.methods, ServerStreams: true, ClientStreams: true, Handler: func(_ any, gs grpc.ServerStream) error {
				return served.HandleRequestStream(gs.Context(), &stream{ServerStream: gs}, url)
			}},
			{StreamName: "Delta" + d.methods, ServerStreams: true, ClientStreams: true, Handler: func(any, grpc.ServerStream) error {
				return errors.New("not implemented")
			}},
		}}, nil)
	}
}

// begin serves until kill, or until the test ends.
func (s *server) begin() {
	s.t.Helper()
	lis, err := net.Listen("unix", s.path)
	realtest.Must(s.t, err)
	s.over = make(chan struct{})
	go func(g *grpc.Server, over chan struct{}) {
		defer close(over)
		_ = g.Serve(lis) // it fails only by being stopped
	}(s.grpc, s.over)
	s.t.Cleanup(s.grpc.Stop)
}

// kill cuts all connections.
func (s *server) kill() {
	s.grpc.Stop()
	<-s.over
}

// set adds or replaces a resource without waiting for anybody.
func (s *server) set(kind resource.AnyType, name string, m proto.Message) {
	s.types[kind.TypeURL()].Upsert(kind.TypeURL(), name, m, nil, nil, nil)
}

// push adds, replaces or, with a nil message, removes a resource, and returns what Cilium
// makes of the client's answer: nothing of an ACK, an error of a NACK.
func (s *server) push(kind resource.AnyType, name string, m proto.Message) error {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	answered := completion.NewWaitGroup(ctx)
	if m == nil {
		s.types[kind.TypeURL()].Delete(kind.TypeURL(), name, []string{address}, answered, nil)
	} else {
		s.types[kind.TypeURL()].Upsert(kind.TypeURL(), name, m, []string{address}, answered, nil)
	}
	return answered.Wait()
}
