// Package istio runs the client against istiod's discovery server. It is a module of its
// own, and not among those that are always tested, because istiod takes minutes to build.
package istio

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pilot/test/xds"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/schema/gvk"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/realtest"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/resource/rtds"
	"github.com/xdswatch/xdswatch/testutil"
)

// nodeID is that of a sidecar.
const nodeID = "sidecar~10.0.0.1~app.default~default.svc.cluster.local"

// server is a discovery server with services.
type server struct {
	t    *testing.T
	fake *xds.FakeDiscoveryServer
	addr string
}

// start runs a discovery server until the test ends.
func start(t *testing.T, services ...string) *server {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	realtest.Must(t, err)
	var configs []config.Config
	for _, s := range services {
		configs = append(configs, service(s))
	}
	fake := xds.NewFakeDiscoveryServer(t, xds.FakeOptions{
		Configs: configs, ListenerBuilder: func() (net.Listener, error) { return lis, nil },
	})
	return &server{t, fake, lis.Addr().String()}
}

// service is a ServiceEntry with one endpoint, of a name or "name:port".
func service(text string) config.Config {
	name, port, ok := strings.Cut(text, ":")
	target := uint32(3000)
	if ok {
		fmt.Sscan(port, &target)
	}
	return config.Config{
		Meta: config.Meta{GroupVersionKind: gvk.ServiceEntry, Name: name, Namespace: "default"},
		Spec: &networking.ServiceEntry{
			Hosts:      []string{name + ".example.com"},
			Ports:      []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
			Resolution: networking.ServiceEntry_STATIC,
			Location:   networking.ServiceEntry_MESH_INTERNAL,
			Endpoints:  []*networking.WorkloadEntry{{Address: "10.0.0.2", Ports: map[string]uint32{"http": target}}},
		},
	}
}

func (s *server) create(text string) {
	s.t.Helper()
	_, err := s.fake.Store().Create(service(text))
	realtest.Must(s.t, err)
}

func (s *server) update(text string) {
	s.t.Helper()
	_, err := s.fake.Store().Update(service(text))
	realtest.Must(s.t, err)
}

func (s *server) remove(name string) {
	s.t.Helper()
	realtest.Must(s.t, s.fake.Store().Delete(gvk.ServiceEntry, name, "default", nil))
}

// connect makes a client of whatever listens at an address.
func connect(t *testing.T, addr, node string, config client.Config) *client.Client {
	t.Helper()
	config.Bootstrap = &bootstrap.Config{
		Node:    &corev3.Node{Id: node},
		Servers: []bootstrap.ManagementServer{{URI: addr, ChannelCreds: bootstrap.Insecure()}},
	}
	return realtest.Client(t, config)
}

// clusterOf is the name of a service's cluster, and of its endpoints.
func clusterOf(service string) string { return "outbound|80||" + service + ".example.com" }

// Both variants: what there is, what comes, changes and goes, and what is invented for a name
// that nobody has; then the connection is cut, and another process takes over, with another
// state.
//
// spec: S-11 S-13 S-16
func TestVariants(t *testing.T) {
	for _, variant := range []client.Variant{client.VariantSotW, client.VariantDelta} {
		t.Run(fmt.Sprint("variant ", variant), func(t *testing.T) {
			s := start(t, "one")
			proxy, err := testutil.NewTCPProxy(s.addr)
			realtest.Must(t, err)
			defer proxy.Close()
			c := connect(t, proxy.Addr(), nodeID, client.Config{Variant: variant})
			clusters, listeners := realtest.Watch(t, c, cds.Type, "*"), realtest.Watch(t, c, lds.Type, "*")
			ends, routes := realtest.Watch(t, c, eds.Type, clusterOf("one")), realtest.Watch(t, c, rds.Type, "80")
			clusters.Await(t, "updated "+clusterOf("one"))
			listeners.Await(t, "synced *")
			ends.Await(t, "updated "+clusterOf("one")+" 3000")
			routes.Await(t, "updated 80")
			realtest.Watch(t, c, eds.Type, clusterOf("nobody")).Await(t, "updated "+clusterOf("nobody"))

			s.create("two")
			clusters.Await(t, "updated "+clusterOf("two"))
			two := realtest.Watch(t, c, eds.Type, clusterOf("two"))
			two.Await(t, "updated "+clusterOf("two")+" 3000")
			routes.Await(t, "updated 80")
			s.update("one:3001")
			ends.Await(t, "updated "+clusterOf("one")+" 3001")
			s.remove("one")
			clusters.Await(t, "does not exist "+clusterOf("one"))

			other := start(t, "one:3002", "three")
			proxy.SetTarget(other.addr)
			proxy.Cut()
			ends.Await(t, "updated "+clusterOf("one")+" 3002")
			clusters.Await(t, "updated "+clusterOf("three"))
			clusters.Await(t, "does not exist "+clusterOf("two"))
		})
	}
}

// Who the server does not like hears so, with the server's words.
//
// spec: S-28
func TestNode(t *testing.T) {
	c := connect(t, start(t).addr, "someone", client.Config{})
	text := realtest.Watch(t, c, cds.Type, "*").Await(t, "failed *").Err.Error()
	for _, want := range []string{"InvalidArgument", `"someone"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}

// A type that istiod does not have ends the whole stream, if it does. The others do without
// it.
//
// spec: S-3
func TestUnknownType(t *testing.T) {
	s := start(t, "one")
	c := connect(t, s.addr, nodeID, client.Config{})
	clusters := realtest.Watch(t, c, cds.Type, "*")
	clusters.Await(t, "synced *")
	runtime := realtest.Watch(t, c, rtds.Type, "layer")
	for _, name := range []string{"two", "three", "four"} {
		s.create(name)
		clusters.Await(t, "updated "+clusterOf(name))
	}
	if ev := <-runtime; !slices.Contains([]client.EventKind{client.EventFailed, client.EventDoesNotExist}, ev.Kind) {
		t.Errorf("the unknown type: %v", ev.Kind)
	}
}

// The view resolves everything that istiod has for a sidecar: each service, from its listener to
// its endpoints. It follows what comes, changes and goes, and another process with another state.
func TestResolve(t *testing.T) {
	for _, variant := range []client.Variant{client.VariantSotW, client.VariantDelta} {
		t.Run(fmt.Sprint("variant ", variant), func(t *testing.T) {
			s := start(t, "one", "two")
			proxy, err := testutil.NewTCPProxy(s.addr)
			realtest.Must(t, err)
			defer proxy.Close()
			c := connect(t, proxy.Addr(), nodeID, client.Config{Variant: variant})
			r := realtest.Resolve(t, c)
			const listener, domain = "0.0.0.0_80", ".example.com"
			names := r.Await(listener, domain, realtest.Hosts{"one.example.com": at(3000), "two.example.com": at(3000)})
			for _, want := range []string{clusterOf("one"), clusterOf("two")} {
				if !slices.Contains(names, want) {
					t.Errorf("clusters %q lack %q", names, want)
				}
			}
			s.create("three:3003")
			r.Await(listener, domain, realtest.Hosts{"one.example.com": at(3000), "two.example.com": at(3000), "three.example.com": at(3003)})
			s.update("one:3001")
			r.Await(listener, domain, realtest.Hosts{"one.example.com": at(3001), "two.example.com": at(3000), "three.example.com": at(3003)})
			s.remove("two")
			r.Await(listener, domain, realtest.Hosts{"one.example.com": at(3001), "three.example.com": at(3003)})

			other := start(t, "one:3002", "four")
			proxy.SetTarget(other.addr)
			proxy.Cut()
			r.Await(listener, domain, realtest.Hosts{"one.example.com": at(3002), "four.example.com": at(3000)})
		})
	}
}

// at is the address of a service's endpoint.
func at(port int) []string { return []string{fmt.Sprint("10.0.0.2:", port)} }
