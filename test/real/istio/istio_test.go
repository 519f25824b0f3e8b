// Package istio runs the client against istiod's discovery server. It is a module of its
// own, and not among those that are always tested, because istiod takes minutes to build.
package istio

import (
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pilot/test/xds"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/schema/gvk"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
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
	must(t, err)
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
	must(s.t, err)
}

func (s *server) update(text string) {
	s.t.Helper()
	_, err := s.fake.Store().Update(service(text))
	must(s.t, err)
}

func (s *server) remove(name string) {
	s.t.Helper()
	must(s.t, s.fake.Store().Delete(gvk.ServiceEntry, name, "default", nil))
}

// connect makes a client of whatever listens at an address.
func connect(t *testing.T, addr, node string, config client.Config) *client.Client {
	t.Helper()
	config.Bootstrap = &bootstrap.Config{
		Node:    &corev3.Node{Id: node},
		Servers: []bootstrap.ManagementServer{{URI: addr, ChannelCreds: bootstrap.Insecure()}},
	}
	config.Backoff = func() backoff.BackOff { return backoff.NewConstantBackOff(20 * time.Millisecond) }
	c, err := client.New(config)
	must(t, err)
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
		noLeak(t)
	})
	return c
}

// noLeak checks that no goroutine runs code of a client that was closed.
func noLeak(t *testing.T) {
	t.Helper()
	buf := make([]byte, 4<<20)
	for range 100 {
		stacks := string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, "internal/engine.") && !strings.Contains(stacks, "xdswatch/transport.") {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("goroutines left behind:\n%s", buf)
}

// record is what a watch hears.
type record chan client.Event[any]

func (r record) hear(ev client.Event[any]) { r <- ev }

func (r record) hearAll(b client.Batch[any]) {
	for _, ev := range b.Events {
		r <- ev
	}
}

// await takes events until one is as wanted.
func (r record) await(t *testing.T, want string) client.Event[any] {
	t.Helper()
	deadline := time.After(time.Minute)
	var seen []string
	for {
		select {
		case ev := <-r:
			text := ev.Kind.String() + " " + ev.Name
			if cla, ok := ev.Value.(*endpointv3.ClusterLoadAssignment); ok {
				for _, e := range cla.Endpoints {
					text += fmt.Sprint(" ", e.LbEndpoints[0].GetEndpoint().GetAddress().GetSocketAddress().GetPortValue())
				}
			}
			if text == want {
				return ev
			}
			seen = append(seen, text)
		case <-deadline:
			t.Fatalf("no %q, only %q", want, seen)
		}
	}
}

func watch(t *testing.T, c *client.Client, kind resource.AnyType, name string) record {
	t.Helper()
	r := make(record, 10_000)
	var err error
	if name == "*" {
		_, err = c.WatchAll(t.Context(), kind, name, r.hearAll)
	} else {
		_, err = c.Watch(t.Context(), kind, name, r.hear)
	}
	must(t, err)
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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
			must(t, err)
			defer proxy.Close()
			c := connect(t, proxy.Addr(), nodeID, client.Config{Variant: variant})
			clusters, listeners := watch(t, c, cds.Type, "*"), watch(t, c, lds.Type, "*")
			ends, routes := watch(t, c, eds.Type, clusterOf("one")), watch(t, c, rds.Type, "80")
			clusters.await(t, "updated "+clusterOf("one"))
			listeners.await(t, "synced *")
			ends.await(t, "updated "+clusterOf("one")+" 3000")
			routes.await(t, "updated 80")
			watch(t, c, eds.Type, clusterOf("nobody")).await(t, "updated "+clusterOf("nobody"))

			s.create("two")
			clusters.await(t, "updated "+clusterOf("two"))
			two := watch(t, c, eds.Type, clusterOf("two"))
			two.await(t, "updated "+clusterOf("two")+" 3000")
			routes.await(t, "updated 80")
			s.update("one:3001")
			ends.await(t, "updated "+clusterOf("one")+" 3001")
			s.remove("one")
			clusters.await(t, "does not exist "+clusterOf("one"))

			other := start(t, "one:3002", "three")
			proxy.SetTarget(other.addr)
			proxy.Cut()
			ends.await(t, "updated "+clusterOf("one")+" 3002")
			clusters.await(t, "updated "+clusterOf("three"))
			clusters.await(t, "does not exist "+clusterOf("two"))
		})
	}
}

// Who the server does not like hears so, with the server's words.
//
// spec: S-28
func TestNode(t *testing.T) {
	c := connect(t, start(t).addr, "someone", client.Config{})
	text := watch(t, c, cds.Type, "*").await(t, "failed *").Err.Error()
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
	clusters := watch(t, c, cds.Type, "*")
	clusters.await(t, "synced *")
	runtime := watch(t, c, rtds.Type, "layer")
	for _, name := range []string{"two", "three", "four"} {
		s.create(name)
		clusters.await(t, "updated "+clusterOf(name))
	}
	if ev := <-runtime; !slices.Contains([]client.EventKind{client.EventFailed, client.EventDoesNotExist}, ev.Kind) {
		t.Errorf("the unknown type: %v", ev.Kind)
	}
}
