package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/resource"
)

// rewriting says whether -update is given, which the tests of package main declare.
func rewriting() bool { return flag.Lookup("update").Value.(flag.Getter).Get().(bool) }

const server = "xds.example:18000"

// clock counts the records: each comes 1.5 s after the one before.
type clock struct{ now time.Time }

func (c *clock) head(event string) report.Head {
	c.now = c.now.Add(1500 * time.Millisecond)
	return report.Head{Time: report.Time(c.now), Event: event}
}

func newClock() *clock { return &clock{time.Date(2026, 5, 4, 12, 0, 0, 120_000_000, time.UTC)} }

func (c *clock) about(event string, m proto.Message, name string) report.About {
	return report.About{
		Head: c.head(event), Type: resource.TypePrefix + string(m.ProtoReflect().Descriptor().FullName()),
		Name: name, Authority: report.AuthorityOf(name),
	}
}

func (c *clock) update(name, version string, m proto.Message) report.Update {
	raw, err := proto.Marshal(m)
	if err != nil {
		panic(err) // messages of this file
	}
	about := c.about(report.EventUpdate, m, name)
	return report.Update{
		About: about, Version: version, Server: server,
		Resource: report.Resource{TypeURL: about.Type, Message: m, Raw: raw},
	}
}

func socket(host string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

func endpoint(host string, h corev3.HealthStatus) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{HealthStatus: h, HostIdentifier: &endpointv3.LbEndpoint_Endpoint{
		Endpoint: &endpointv3.Endpoint{Address: socket(host, 80)},
	}}
}

// updates are one resource of each type.
func updates(c *clock) []report.Record {
	return []report.Record{
		c.update("ingress", "1", &listenerv3.Listener{Name: "ingress", Address: socket("0.0.0.0", 8080), FilterChains: []*listenerv3.FilterChain{{}}}),
		c.update("api", "1", &listenerv3.Listener{ApiListener: &listenerv3.ApiListener{ApiListener: &anypb.Any{TypeUrl: "type.googleapis.com/x.HttpConnectionManager"}}}),
		c.update("local", "1", &routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{
			{Routes: []*routev3.Route{{}, {}}}, {}}}),
		c.update("scope", "1", &routev3.ScopedRouteConfiguration{RouteConfigurationName: "local"}),
		c.update("local/a", "1", &routev3.VirtualHost{Domains: []string{"a", "b"}, Routes: []*routev3.Route{{}}}),
		c.update("outbound|80||backend.default.svc.cluster.local", "2026-05-04T12:00:00Z/17", &clusterv3.Cluster{
			ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{ServiceName: "backend"},
		}),
		c.update("aggregate", "2", &clusterv3.Cluster{
			ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{Name: "envoy.clusters.aggregate"}},
			LoadBalancingPolicy: &clusterv3.LoadBalancingPolicy{Policies: []*clusterv3.LoadBalancingPolicy_Policy{{
				TypedExtensionConfig: &corev3.TypedExtensionConfig{TypedConfig: &anypb.Any{TypeUrl: "type.googleapis.com/x.v3.RoundRobin"}},
			}}},
			AltStatName: strings.Repeat("x", 1200),
		}),
		c.update("backend", "3", &endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{
			{LbEndpoints: []*endpointv3.LbEndpoint{endpoint("10.0.0.1", 0), endpoint("10.0.0.2", corev3.HealthStatus_UNHEALTHY)}}, {},
		}}),
		c.update("10.0.0.1", "3", endpoint("10.0.0.1", corev3.HealthStatus_HEALTHY)),
		c.update("cert", "4", &tlsv3.Secret{Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{}}}),
		c.update("layer", "4", &runtimev3.Runtime{Name: "layer"}),
		c.update("filter", "4", &corev3.TypedExtensionConfig{TypedConfig: &anypb.Any{TypeUrl: "type.googleapis.com/x.v3.RBAC"}}),
		report.Update{
			About:   report.About{Head: c.head(report.EventUpdate), Type: "type.googleapis.com/example.Thing", Name: "xdstp://a.example/example.Thing/x", Authority: report.AuthorityOf("xdstp://a.example/example.Thing/x")},
			Version: "9", Server: server, Resource: report.Resource{TypeURL: "type.googleapis.com/example.Thing", Raw: []byte("raw")},
		},
	}
}

func records() []report.Record {
	c := newClock()
	cause := errors.New("not a valid message:\x1b[31m no name\nat all")
	bad := report.ErrorOf(&client.ResourceError{Kind: client.ErrorRejected, Type: "type.googleapis.com/envoy.config.cluster.v3.Cluster", Name: "backend", Server: server, NodeID: "me", Err: cause})
	ended := &report.Error{Kind: "stream", Message: "xds: stream of server \"x\" ended: EOF", Cause: "EOF"}
	rs := []report.Record{report.Stream{Head: c.head(report.EventStreamUp), Server: server}}
	rs = append(rs, updates(c)...)
	held := report.Time(c.now.Add(-26*time.Hour - 3*time.Minute))
	recent := report.Time(c.now.Add(-71 * time.Minute))
	cl := &clusterv3.Cluster{}
	return append(rs,
		report.Answer{Head: c.head(report.EventACK), Type: resource.TypePrefix + "envoy.config.cluster.v3.Cluster", Version: "3", Nonce: "n3", Server: server},
		report.Answer{Head: c.head(report.EventNACK), Type: resource.TypePrefix + "envoy.config.cluster.v3.Cluster", Nonce: "n4", Server: server, Error: bad},
		report.Synced{About: c.about(report.EventSynced, cl, "*")},
		report.Absent{About: c.about(report.EventDoesNotExist, cl, "gone"), Reason: "absent"},
		report.Absent{About: c.about(report.EventDoesNotExist, cl, "slow"), Reason: "timeout"},
		report.Absent{About: c.about(report.EventDoesNotExist, cl, "lost"), Reason: "timeout", Instead: &report.Instead{
			Time: recent, Count: 1, Names: []string{"default/lost"}, Text: `the newest response of the type held one resource: "default/lost"`,
		}},
		report.Fault{About: c.about(report.EventError, cl, "backend"), Error: bad},
		report.Fault{About: c.about(report.EventAmbientError, cl, "backend"), Error: bad},
		report.Fault{About: c.about(report.EventAmbientError, cl, "backend")},
		report.Stream{Head: c.head(report.EventStreamDown), Server: server, Error: ended},
		report.Stream{Head: c.head(report.EventStreamDown), Server: server, Type: resource.TypePrefix + "envoy.config.cluster.v3.Cluster"},
		report.Dump{Head: c.head(report.EventDump), Subscriptions: []report.State{
			{Type: resource.TypePrefix + "envoy.config.cluster.v3.Cluster", Name: "*", Status: "ACKED", Server: server},
			{Type: resource.TypePrefix + "envoy.config.cluster.v3.Cluster", Name: "backend", Status: "NACKED", Version: "3", Server: server, Updated: &held, Error: bad},
			{Type: resource.TypePrefix + "envoy.config.endpoint.v3.ClusterLoadAssignment", Name: "backend", Status: "ACKED", Version: "17", Server: server, Updated: &recent},
			{Type: resource.TypePrefix + "example.Thing", Name: "xdstp://a.example/example.Thing/x", Authority: report.AuthorityOf("xdstp://a.example/example.Thing/x"),
				Status: "ACKED", Version: "9", Server: server, Updated: &recent, Redirect: "xdstp://b.example/example.Thing/y"},
		}},
	)
}

func TestText(t *testing.T) {
	golden(t, "text.golden", func(w io.Writer) report.Printer { return report.NewText(w, report.TextOptions{Zone: time.UTC}) })
}

func TestJSON(t *testing.T) {
	golden(t, "json.golden", func(w io.Writer) report.Printer { return report.NewJSON(w, report.JSONOptions{}) })
}

// oneWrite counts the calls that it takes to write everything.
type oneWrite struct {
	calls int
	out   bytes.Buffer
}

func (w *oneWrite) Write(b []byte) (int, error) {
	w.calls++
	return w.out.Write(b)
}

func golden(t *testing.T, name string, printer func(io.Writer) report.Printer) {
	t.Helper()
	out := &oneWrite{}
	p := printer(out)
	rs := records()
	for _, r := range rs {
		if err := p.Print(r); err != nil {
			t.Fatal(err)
		}
	}
	if out.calls != len(rs) {
		t.Errorf("%d records took %d writes", len(rs), out.calls)
	}
	path := "testdata/" + name
	if rewriting() {
		if err := os.WriteFile(path, out.out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.out.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestColor(t *testing.T) {
	var b bytes.Buffer
	r := report.Synced{About: newClock().about(report.EventSynced, &clusterv3.Cluster{}, "*")}
	if err := report.NewText(&b, report.TextOptions{Color: true, Zone: time.UTC}).Print(r); err != nil {
		t.Fatal(err)
	}
	want := "12:00:01.620  \x1b[36msynced\x1b[0m          cds   *                 the first state is complete\n"
	if got := b.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Where there are several servers a line says whose it is.
func TestServers(t *testing.T) {
	var b bytes.Buffer
	c := newClock()
	p := report.NewText(&b, report.TextOptions{Zone: time.UTC, Servers: true})
	for _, r := range []report.Record{
		c.update("a", "1", &clusterv3.Cluster{Name: "a"}),
		report.Answer{Head: c.head(report.EventACK), Type: "x.Y", Version: "1", Server: "file:///y"},
	} {
		if err := p.Print(r); err != nil {
			t.Fatal(err)
		}
	}
	want := "12:00:01.620  update          cds   a                 version 1  3 B  STATIC, ROUND_ROBIN  from " + server + "\n" +
		"12:00:03.120  ack             Y                       version 1  from file:///y\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestErrorOf(t *testing.T) {
	if report.ErrorOf(nil) != nil {
		t.Error("no error is one")
	}
	got := report.ErrorOf(errors.New("x"))
	if want := (&report.Error{Kind: "config", Message: "x", Cause: "x"}); !cmp.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestBrokenWriter(t *testing.T) {
	for _, p := range []report.Printer{report.NewJSON(brokenWriter{}, report.JSONOptions{}), report.NewText(brokenWriter{}, report.TextOptions{Zone: time.UTC})} {
		if err := p.Print(records()[0]); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%T: %v", p, err)
		}
	}
}

// What a server says cannot steer a terminal: control characters and those that turn the
// direction of text are escapes in JSON, which mean the same, and in text.
//
// spec: H-12
func TestNothingSteersATerminal(t *testing.T) {
	const odd = "a\u009b31m\u202eb\x7f\u2066\ufeff\U000e0041ñ\x1b"
	r := report.Synced{About: report.About{Head: report.Head{Event: report.EventSynced}, Name: odd}}
	var inJSON, inText bytes.Buffer
	for _, p := range []report.Printer{report.NewJSON(&inJSON, report.JSONOptions{}), report.NewText(&inText, report.TextOptions{Zone: time.UTC})} {
		if err := p.Print(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, out := range []string{inJSON.String(), inText.String()} {
		if strings.ContainsFunc(strings.TrimSuffix(out, "\n"), func(r rune) bool { return !unicode.IsPrint(r) }) || !strings.Contains(out, "ñ") {
			t.Errorf("%q", out)
		}
	}
	var back struct{ Name string }
	if err := json.Unmarshal(inJSON.Bytes(), &back); err != nil || back.Name != odd {
		t.Errorf("%s is read as %q, %v", inJSON.String(), back.Name, err)
	}
}
