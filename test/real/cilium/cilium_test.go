package cilium

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/cilium/pkg/envoy/xds"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/realtest"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/resource/sds"
)

// nodeID has the form that Cilium reads the address out of.
const nodeID = "host~" + address + "~no-id~localdomain"

// connect makes a client of the server, with a stream for each type unless change says
// otherwise.
func connect(t *testing.T, s *server, change func(*client.Config)) *client.Client {
	t.Helper()
	config := client.Config{
		Bootstrap: &bootstrap.Config{
			Node: &corev3.Node{Id: nodeID, Cluster: "test"},
			Servers: []bootstrap.ManagementServer{{
				URI: "unix://" + s.path, ChannelCreds: bootstrap.Insecure(), PerType: true,
			}},
		},
	}
	if change != nil {
		change(&config)
	}
	return realtest.Client(t, config)
}

func cluster(name, text string) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, AltStatName: text}
}

func assignment(name string) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: name}
}

// Every type that Cilium serves, each on a stream of its own: values, changes, removals, and
// what is asked for before it is there. Cilium itself says what was acknowledged.
//
// spec: S-20
func TestEveryType(t *testing.T) {
	s := newServer(t)
	s.set(cds.Type, "a", cluster("a", "one"))
	s.set(cds.Type, "b", cluster("b", "one"))
	s.set(eds.Type, "a", assignment("a"))
	s.begin()
	c := connect(t, s, nil)
	clusters, listeners := realtest.Watch(t, c, cds.Type, "*"), realtest.Watch(t, c, lds.Type, "*")
	a, late := realtest.Watch(t, c, eds.Type, "a"), realtest.Watch(t, c, eds.Type, "late")
	route, secret := realtest.Watch(t, c, rds.Type, "r"), realtest.Watch(t, c, sds.Type, "s")
	clusters.Await(t, "synced *")
	listeners.Await(t, "synced *")
	a.Await(t, "updated a")

	realtest.Must(t, s.push(cds.Type, "a", cluster("a", "two")))
	clusters.Await(t, "updated a two")
	realtest.Must(t, s.push(cds.Type, "b", nil))
	clusters.Await(t, "does not exist b")
	realtest.Must(t, s.push(lds.Type, "l", &listenerv3.Listener{Name: "l"}))
	listeners.Await(t, "updated l")
	realtest.Must(t, s.push(lds.Type, "l", nil))
	listeners.Await(t, "does not exist l")
	realtest.Must(t, s.push(eds.Type, "late", assignment("late")))
	late.Await(t, "updated late")
	realtest.Must(t, s.push(rds.Type, "r", &routev3.RouteConfiguration{Name: "r"}))
	route.Await(t, "updated r")
	realtest.Must(t, s.push(sds.Type, "s", &tlsv3.Secret{Name: "s"}))
	secret.Await(t, "updated s")
	realtest.Must(t, c.Ready(t.Context()))
}

// Cilium is told of a bad resource by its version and nonce, which are one number, and sends
// it no second time.
//
// spec: ACK-3 S-20
func TestNACK(t *testing.T) {
	s := newServer(t)
	s.set(cds.Type, "a", cluster("a", "one"))
	s.begin()
	answers := make(chan client.AnswerInfo, 1000)
	c := connect(t, s, func(c *client.Config) {
		c.Trace = &client.Trace{NACK: func(a client.AnswerInfo) { answers <- a }}
	})
	clusters := realtest.Watch(t, c, cds.Type, "*")
	clusters.Await(t, "synced *")
	bad := cluster("a", "bad")
	bad.ConnectTimeout = durationpb.New(-1)
	var refused *xds.ProxyError
	if err := s.push(cds.Type, "a", bad); !errors.As(err, &refused) || !strings.Contains(refused.Detail, "ConnectTimeout") {
		t.Errorf("Cilium makes %v of a NACK", err)
	}
	clusters.Await(t, "ambient error a")
	if err := s.push(cds.Type, "b", cluster("b", "one")); !errors.As(err, &refused) {
		t.Errorf("Cilium makes %v of a response that is bad still", err)
	}
	clusters.Await(t, "updated b one")
	realtest.Must(t, s.push(cds.Type, "a", cluster("a", "two")))
	clusters.Await(t, "updated a two")
	if n := len(answers); n != 2 {
		t.Errorf("%d NACKs, want 2", n)
	}
}

// A new process of Cilium counts its versions from the beginning. It is told the last one
// that was accepted, counts on from there, and what went meanwhile is gone.
//
// spec: SOTW-2 S-19
func TestKilled(t *testing.T) {
	s := newServer(t)
	for _, name := range []string{"a", "b", "c"} {
		s.set(cds.Type, name, cluster(name, "one"))
	}
	s.set(eds.Type, "a", assignment("a"))
	s.begin()
	c := connect(t, s, nil)
	clusters, a := realtest.Watch(t, c, cds.Type, "*"), realtest.Watch(t, c, eds.Type, "a")
	clusters.Await(t, "synced *")
	a.Await(t, "updated a")
	s.kill()
	a.Await(t, "ambient error a")
	s.reset()
	s.set(cds.Type, "a", cluster("a", "two"))
	s.set(cds.Type, "b", cluster("b", "one"))
	s.set(eds.Type, "a", assignment("a"))
	s.begin()
	clusters.Await(t, "updated a two")
	clusters.Await(t, "does not exist c")
	realtest.Must(t, s.push(cds.Type, "c", cluster("c", "three")))
	clusters.Await(t, "updated c three")
	realtest.Must(t, s.push(eds.Type, "a", nil)) // in state of the world this says nothing
	a.Await(t, "recovered a")
}

// What Cilium does not speak, and whom it does not like, is said to the watch.
//
// spec: S-6 S-28
func TestNotServed(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*client.Config)
		wants  []string
	}{
		"aggregated": {
			func(c *client.Config) { c.Streams = client.StreamsAggregated },
			[]string{"Unimplemented", "AggregatedDiscoveryService", "not on an aggregated stream"},
		},
		"delta": {
			func(c *client.Config) { c.Variant = client.VariantDelta },
			[]string{"not implemented", "may not speak the delta variant"},
		},
		"node": {
			func(c *client.Config) { c.Bootstrap.Node.Id = "someone" },
			[]string{"invalid node format", `"someone"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.set(cds.Type, "a", cluster("a", "one"))
			s.begin()
			text := realtest.Watch(t, connect(t, s, tt.change), cds.Type, "a").Await(t, "failed a").Err.Error()
			if i := slices.IndexFunc(tt.wants, func(want string) bool { return !strings.Contains(text, want) }); i >= 0 {
				t.Errorf("%q lacks %q", text, tt.wants[i])
			}
		})
	}
}

// Cilium compares versions and not names: what is added to a stream is answered with the next
// change of the type, whenever that is, and on a new stream at once. A scope has its own.
//
// spec: S-30
func TestAddedNames(t *testing.T) {
	s := newServer(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		s.set(eds.Type, name, assignment(name))
	}
	s.begin()
	opened := make(chan client.StreamInfo, 100)
	c := connect(t, s, func(c *client.Config) {
		c.Trace = &client.Trace{StreamUp: func(i client.StreamInfo) { opened <- i }}
	})
	realtest.Watch(t, c, eds.Type, "a").Await(t, "updated a")
	b := realtest.Watch(t, c, eds.Type, "b")
	realtest.Watch(t, c, eds.Type, "c", client.InScope("c")).Await(t, "updated c")
	if ev := <-b; ev.Kind != client.EventUpdated {
		t.Errorf("b: %v", ev.Kind)
	}
	if n := len(opened); n != 3 {
		t.Errorf("%d streams, want that of a, that of c, and a new one for a and b", n)
	}
	d := realtest.Watch(t, c, eds.Type, "d")
	s.set(eds.Type, "y", assignment("y"))
	d.Await(t, "updated d")
}

// Whatever a program learns from its clusters it asks for while they come, and is not told
// that anything of it did not exist.
//
// spec: S-30
func TestFollow(t *testing.T) {
	s := newServer(t)
	const n = 1000
	for i := range n {
		name := fmt.Sprint(i)
		s.set(cds.Type, name, cluster(name, ""))
		s.set(eds.Type, name, assignment(name))
	}
	s.begin()
	c := connect(t, s, nil)
	ends := make(realtest.Record, 2*n)
	_, err := c.WatchAll(t.Context(), cds.Type, "*", func(b client.Batch[any]) {
		for ev := range b.Changed() {
			if _, err := c.Watch(t.Context(), eds.Type, ev.Name, func(ev client.Event[any]) { ends <- ev }); err != nil {
				t.Error(err)
			}
		}
	})
	realtest.Must(t, err)
	for range n {
		if ev := <-ends; ev.Kind != client.EventUpdated {
			t.Errorf("%s: %v", ev.Name, ev.Kind)
		}
	}
}
