package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/spf13/pflag"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/testutil"
)

// prefix begins the messages about a cluster of the scripted server.
func prefix(name, node string) string {
	return fmt.Sprintf("xds: envoy.config.cluster.v3.Cluster %q of server \"SERVER\" for node %q: ", name, node)
}

func TestSotW(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "cds:a")
	st, r := acceptFirst(t, srv)
	if r.Node().GetId() != "xdsctl" || strings.Join(r.Names(), " ") != "a" {
		t.Errorf("first request %s, node %v", r, r.Node())
	}
	p.expect(streamUp)

	send(t, st, testutil.SotW(clusters, "1", "n1", cluster("a")))
	p.expect(update("a", "1", `{"name":"a"}`), ack("1", "n1"))

	// An unchanged resource is no update.
	send(t, st, testutil.SotW(clusters, "2", "n2", cluster("a")))
	p.expect(ack("2", "n2"))

	changed := cluster("a")
	changed.ConnectTimeout = durationpb.New(time.Second)
	send(t, st, testutil.SotW(clusters, "3", "n3", changed))
	p.expect(update("a", "3", `{"name":"a","connectTimeout":"1s"}`), ack("3", "n3"))

	send(t, st, testutil.SotW(clusters, "4", "n4"))
	p.expect(absent("a", "absent"), ack("4", "n4"))
}

func TestRejected(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "--node-id", "me", "cds:a")
	st := accept(t, srv)
	p.expect(streamUp)
	bad := cluster("a")
	bad.ConnectTimeout = durationpb.New(-time.Second)
	reason := "not a valid envoy.config.cluster.v3.Cluster: invalid Cluster.ConnectTimeout: value must be greater than 0s"
	nack := func(version, nonce string) string {
		return fmt.Sprintf(`{"event":"nack","type":%q,"version":%q,"nonce":%q,"error":{"kind":"rejected","message":%q},"server":"SERVER"}`,
			clusters, version, nonce,
			`xds: envoy.config.cluster.v3.Cluster response of server "SERVER" for node "me": rejected: resource index 0: a: `+reason)
	}
	send(t, st, testutil.SotW(clusters, "1", "n1", bad))
	p.expect(failed("error", "a", "rejected", prefix("a", "me")+"rejected: "+reason), nack("1", "n1"))

	send(t, st, testutil.SotW(clusters, "2", "n2", cluster("a")))
	p.expect(update("a", "2", `{"name":"a"}`), ack("2", "n2"))

	send(t, st, testutil.SotW(clusters, "3", "n3", bad))
	p.expect(failed("ambient-error", "a", "rejected", prefix("a", "me")+"rejected: "+reason), nack("3", "n3"))

	send(t, st, testutil.SotW(clusters, "4", "n4", cluster("a")))
	p.expect(fmt.Sprintf(`{"event":"ambient-error","type":%q,"name":"a","error":null}`, clusters), ack("4", "n4"))
	if log := p.stderr.String(); !strings.Contains(log, "level=WARN") || !strings.Contains(log, "response rejected") {
		t.Errorf("the log does not tell of the rejection:\n%s", log)
	}
}

func TestDelta(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "--variant", "delta", "cds:a")
	st := accept(t, srv)
	if !st.Delta {
		t.Error("the stream is not delta")
	}
	p.expect(streamUp)
	send(t, st, testutil.Delta(clusters, "n1", []*discoveryv3.Resource{testutil.Wrapped("a", "v7", cluster("a"))}))
	p.expect(update("a", "v7", `{"name":"a"}`), ack("", "n1"))
	send(t, st, testutil.Delta(clusters, "n2", nil, "a"))
	p.expect(absent("a", "removed"), ack("", "n2"))
}

func TestResourceErrors(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "cds:a")
	st := accept(t, srv)
	p.expect(streamUp)
	say := func(version string, code codes.Code) {
		resp := testutil.SotW(clusters, version, "n"+version)
		resp.ResourceErrors = []*discoveryv3.ResourceError{{
			ResourceName: &discoveryv3.ResourceName{Name: "a"},
			ErrorDetail:  &statuspb.Status{Code: int32(code), Message: "no"},
		}}
		send(t, st, resp)
	}
	say("1", codes.NotFound)
	p.expect(absent("a", "not-found"), ack("1", "n1"))
	say("2", codes.PermissionDenied)
	p.expect(failed("error", "a", "data", prefix("a", "xdsctl")+"rpc error: code = PermissionDenied desc = no"), ack("2", "n2"))
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "--resource-timeout", "50ms", "cds:a")
	p.expect(streamUp, absent("a", "timeout"))

	boot := grpcBootstrap(t, srv.Target(), `"resource_timer_is_transient_error"`)
	p = start(t, srv.Target(), "--bootstrap", boot, "--output", "json", "--resource-timeout", "50ms", "cds:a")
	p.expect(streamUp, failed("error", "a", "timeout", prefix("a", "me")+"the server did not answer in time"))
}

// Zero is no timeout; the client's default is that of who says nothing.
func TestNoTimeout(t *testing.T) {
	for arg, want := range map[string]time.Duration{"--resource-timeout=0": -1, "--resource-timeout=2s": 2 * time.Second, "--variant=sotw": 0} {
		var f connFlags
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.register(set)
		if err := set.Parse([]string{arg}); err != nil {
			t.Fatal(err)
		}
		if got := f.config(nil, nil, nil).ResourceTimeout; got != want {
			t.Errorf("%s: the timeout is %v, want %v", arg, got, want)
		}
	}
}

// A dial that fails opens no stream, and what is up to date with a server that answers
// later is said then.
func TestConnection(t *testing.T) {
	t.Parallel()
	proxy, err := testutil.NewTCPProxy("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	if err := proxy.Refuse(true); err != nil {
		t.Fatal(err)
	}
	p := watchServer(t, proxy.Addr(), "cds:a")
	line := p.next()
	want := `{"event":"error","type":"` + clusters + `","name":"a","error":{"kind":"connection","message":"xds: envoy.config.cluster.v3.Cluster \"a\" of server \"SERVER\" for node \"xdsctl\": the server cannot be reached: `
	if !strings.HasPrefix(line, want) || !strings.Contains(line, "refused") {
		t.Errorf("got  %s\nwant %s…", line, want)
	}
	srv := server(t)
	proxy.SetTarget(srv.Target())
	if err := proxy.Refuse(false); err != nil {
		t.Fatal(err)
	}
	st := accept(t, srv)
	p.skipTo(streamUp)
	send(t, st, testutil.SotW(clusters, "1", "n1", cluster("a")))
	p.expect(update("a", "1", `{"name":"a"}`))
}

func TestStreamEnds(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "cds:a")
	st := accept(t, srv)
	p.expect(streamUp)
	st.End(status.Error(codes.Unavailable, "going away"))
	down := func(cause string) string {
		return fmt.Sprintf(`{"event":"stream-down","server":"SERVER","error":{"kind":"stream","message":%q}}`,
			`xds: stream of server "SERVER" for node "xdsctl" ended: `+cause)
	}
	gone := "rpc error: code = Unavailable desc = going away"
	p.expect(down(gone), failed("error", "a", "stream", prefix("a", "xdsctl")+"the stream ended before a response: "+gone))

	st = accept(t, srv)
	p.expect(streamUp)
	send(t, st, testutil.SotW(clusters, "1", "n1", cluster("a")))
	p.expect(update("a", "1", `{"name":"a"}`), ack("1", "n1"))
	st.End(status.Error(codes.Unavailable, "going away"))
	p.expect(down(gone), streamUp) // the end after a response is no error
}

// What Watch returns is an event.
func TestConfigErrors(t *testing.T) {
	t.Parallel()
	srv := server(t)
	boot := grpcBootstrap(t, srv.Target(), "")
	for _, tt := range []struct {
		sub, want string
	}{
		{"xdstp://bad.example/envoy.config.cluster.v3.Cluster/a",
			`{"event":"error","type":"` + clusters + `","name":"xdstp://bad.example/envoy.config.cluster.v3.Cluster/a","authority":"bad.example","error":{"kind":"config","message":` +
				`"xds: envoy.config.cluster.v3.Cluster \"xdstp://bad.example/envoy.config.cluster.v3.Cluster/a\" for node \"me\": `},
		{"xdstp:///envoy.config.cluster.v3.Cluster/a",
			`{"event":"error","type":"` + clusters + `","name":"xdstp:///envoy.config.cluster.v3.Cluster/a","authority":"","error":{"kind":"config",`},
		{"xdstp://good.example", `{"event":"error","type":"","name":"xdstp://good.example","error":{"kind":"config","message":` +
			`"xds: resource \"xdstp://good.example\" for node \"me\": resource name \"xdstp://good.example\": xdstp: `},
		{"xdstp://good.example/envoy.config.cluster.v3.Cluster/a?k=1&k=2",
			`{"event":"error","type":"` + clusters + `","name":"xdstp://good.example/envoy.config.cluster.v3.Cluster/a?k=1&k=2","authority":"good.example","error":{"kind":"config","message":` +
				`"xds: envoy.config.cluster.v3.Cluster \"xdstp://good.example/`},
		{"cds:", `{"event":"error","type":"` + clusters + `","name":"","error":{"kind":"config","message":"xds: envoy.config.cluster.v3.Cluster \"\" for node \"me\": `},
		{"eds:xdstp://good.example/envoy.config.cluster.v3.Cluster/a", `{"event":"error","type":"` + endpoints + `","name":"xdstp://good.example/envoy.config.cluster.v3.Cluster/a","authority":"good.example","error":{"kind":"config",`},
		{"xdstp://bad.example/envoy.config.cluster.v3.Cluster/*",
			`{"event":"error","type":"` + clusters + `","name":"xdstp://bad.example/envoy.config.cluster.v3.Cluster/*","authority":"bad.example","error":{"kind":"config",`},
	} {
		p := start(t, srv.Target(), "--bootstrap", boot, "--output", "json", "--for", never, tt.sub)
		if got := p.next(); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s\ngot  %s\nwant %s…", tt.sub, got, tt.want)
		}
		p.stop()
		p.ends(0)
		p = start(t, srv.Target(), "--bootstrap", boot, "--output", "json", "--once", tt.sub)
		p.ends(3)
	}
}

func TestStructuredName(t *testing.T) {
	t.Parallel()
	srv := server(t)
	name := "xdstp://good.example/envoy.config.cluster.v3.Cluster/a"
	p := start(t, srv.Target(), "--bootstrap", grpcBootstrap(t, srv.Target(), ""), "--output", "json", name)
	st := accept(t, srv)
	p.expect(streamUp)
	send(t, st, testutil.SotW(clusters, "1", "n1", cluster(name)))
	p.expect(fmt.Sprintf(`{"event":"update","type":%q,"name":%q,"authority":"good.example","version":"1","resource":{"name":%q},"server":"SERVER"}`, clusters, name, name))
}

// A list names the type of its members; events say where a redirected one is.
func TestList(t *testing.T) {
	t.Parallel()
	srv := server(t)
	const authority = "xdstp://good.example/envoy.config.cluster.v3.Cluster"
	list, a, b := authority+"Collection/l", authority+"/a", authority+"/b"
	locator := func(id string) *xdscorev3.ResourceLocator {
		return &xdscorev3.ResourceLocator{Authority: "good.example", ResourceType: "envoy.config.cluster.v3.Cluster", Id: id}
	}
	p := start(t, srv.Target(), "--bootstrap", grpcBootstrap(t, srv.Target(), ""), "--output", "json", "--stdin", list)
	st := accept(t, srv)
	p.expect(streamUp)
	lists := clusters + "Collection"
	send(t, st, testutil.SotW(lists, "1", "n1", testutil.Wrapped(list, "", &clusterv3.ClusterCollection{Entries: &xdscorev3.CollectionEntry{
		ResourceSpecifier: &xdscorev3.CollectionEntry_Locator{Locator: locator("a")},
	}})))
	p.expect(fmt.Sprintf(`{"event":"ack","type":%q,"version":"1","nonce":"n1","error":null,"server":"SERVER"}`, lists))
	ask(t, st, a)
	send(t, st, testutil.SotW(clusters, "2", "n2", testutil.Wrapped(a, "", locator("b"))))
	p.expect(ack("2", "n2"))
	ask(t, st, a+" "+b)
	send(t, st, testutil.SotW(clusters, "3", "n3", testutil.Wrapped(a, "", locator("b")), cluster(b)))
	p.expect(
		fmt.Sprintf(`{"event":"update","type":%q,"name":%q,"authority":"good.example","version":"3","resource":{"name":%q},"server":"SERVER","locator":%q}`, clusters, a, b, b),
		fmt.Sprintf(`{"event":"synced","type":%q,"name":%q,"authority":"good.example"}`, clusters, list),
		ack("3", "n3"))
	p.enter("dump")
	if dump := p.next(); !strings.Contains(dump, fmt.Sprintf(`"error":null,"redirect":%q}`, b)) {
		t.Errorf("the dump has no redirect: %s", dump)
	}
}

func TestWildcards(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		sub, names string
	}{{"cds", ""}, {"cds:*", "*"}, {clusters, ""}, {clusters + ":*", "*"}} {
		t.Run(tt.sub, func(t *testing.T) {
			srv := server(t)
			p := watchServer(t, srv.Target(), tt.sub)
			st, r := acceptFirst(t, srv)
			if strings.Join(r.Names(), " ") != tt.names {
				t.Errorf("asks for %q, want %q", r.Names(), tt.names)
			}
			p.expect(streamUp)
			send(t, st, testutil.SotW(clusters, "1", "n1", cluster("a"), cluster("b")))
			p.expect(update("a", "1", `{"name":"a"}`), update("b", "1", `{"name":"b"}`), synced(), ack("1", "n1"))
			send(t, st, testutil.SotW(clusters, "2", "n2", cluster("b")))
			p.expect(absent("a", "absent"), ack("2", "n2"))
		})
	}
}

// A wildcard begins before the names that are given with it, since a legacy one that comes after names were sent
// takes a new stream; so many lie between them that the stream is there before all are subscribed to.
// spec: WILD-3
func TestWildcardFirst(t *testing.T) {
	t.Parallel()
	srv := server(t)
	subs := []string{"cds:a"}
	for i := range 20_000 {
		subs = append(subs, fmt.Sprintf("eds:%d", i))
	}
	watchServer(t, srv.Target(), append(subs, "cds")...)
	st, r := acceptFirst(t, srv)
	for r.TypeURL() != clusters {
		r = request(t, st)
	}
	if len(r.Names()) > 0 {
		t.Errorf("the first request of the type names %q, want the wildcard", r.Names())
	}
}

func TestWildcardTimeout(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "--resource-timeout", "50ms", "cds")
	p.expect(streamUp, absent("*", "timeout"))
}

func TestUnknownType(t *testing.T) {
	t.Parallel()
	const url = "type.googleapis.com/example.Thing"
	srv := server(t)
	p := watchServer(t, srv.Target(), url+":x", url+":y")
	st, first := acceptFirst(t, srv)
	if len(first.Names()) < 2 {
		ask(t, st, "x y")
	}
	p.expect(streamUp)
	thing := func(payload string) *anypb.Any { return &anypb.Any{TypeUrl: url, Value: []byte(payload)} }
	// One is named by its wrapper, the other by its first field.
	send(t, st, testutil.SotW(url, "1", "n1", testutil.Wrapped("x", "", thing("\x12\x01!")), thing("\x0a\x01y")))
	p.expect(
		`{"event":"update","type":"`+url+`","name":"x","version":"1","resource":{"@type":"`+url+`","value":"EgEh"},"server":"SERVER"}`,
		`{"event":"update","type":"`+url+`","name":"y","version":"1","resource":{"@type":"`+url+`","value":"CgF5"},"server":"SERVER"}`,
	)
}

func TestUnknownInside(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "cds:a")
	st := accept(t, srv)
	p.expect(streamUp)
	c := cluster("a")
	c.TypedExtensionProtocolOptions = map[string]*anypb.Any{
		"x": {TypeUrl: "type.googleapis.com/example.Thing", Value: []byte("bytes")},
	}
	c.TransportSocket = &corev3.TransportSocket{Name: "s", ConfigType: &corev3.TransportSocket_TypedConfig{
		TypedConfig: &anypb.Any{TypeUrl: "type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"},
	}}
	send(t, st, testutil.SotW(clusters, "1", "n1", c))
	p.expect(update("a", "1", `{"name":"a",`+
		`"typedExtensionProtocolOptions":{"x":{"@type":"type.googleapis.com/example.Thing","value":"Ynl0ZXM="}},`+
		`"transportSocket":{"name":"s","typedConfig":{"@type":"type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"}}}`))
}

func TestPerType(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "--streams", "per-type", "cds:a", "eds:a")
	methods := map[string]bool{}
	for range 2 {
		st := accept(t, srv)
		methods[st.Method] = true
		p.expect(streamUp)
	}
	for _, want := range []string{
		"/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters",
		"/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints",
	} {
		if !methods[want] {
			t.Errorf("no stream of %s in %v", want, methods)
		}
	}
}

// The bootstrap says the variant, and the flag wins over it.
func TestVariantOfBootstrap(t *testing.T) {
	t.Parallel()
	srv := server(t)
	boot := grpcBootstrap(t, srv.Target(), `"xdswatch.delta"`)
	for want, args := range map[bool][]string{true: nil, false: {"--variant", "sotw"}} {
		p := start(t, srv.Target(), append(args, "--bootstrap", boot, "--output", "json", "cds:a")...)
		if st := accept(t, srv); st.Delta != want {
			t.Errorf("%v: delta %v", args, st.Delta)
		}
		p.stop()
		p.ends(0)
	}
}

// envoyBootstrap is a bootstrap in Envoy's format, with the server as cluster "xds".
func envoyBootstrap(t *testing.T, server, rest string) string {
	t.Helper()
	host, port, _ := strings.Cut(server, ":")
	return file(t, "envoy.yaml", fmt.Sprintf(`
node: {id: envoy, cluster: c}
static_resources:
  clusters:
  - name: xds
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment:
      cluster_name: xds
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]
%s`, host, port, rest))
}

// prints runs the program to its end and looks for texts in what it printed.
func (p *program) prints(texts ...string) {
	p.t.Helper()
	var seen []string
	for line := range p.lines {
		seen = append(seen, line)
	}
	all := plain(strings.Join(seen, "\n"))
	for _, want := range texts {
		if !strings.Contains(all, want) {
			p.t.Errorf("%s is missing in\n%s", want, all)
		}
	}
}

// An Envoy bootstrap asks for its wildcards by itself.
func TestEnvoyBootstrap(t *testing.T) {
	t.Parallel()
	m := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	if err := m.Set("1", cluster("a")); err != nil {
		t.Fatal(err)
	}
	boot := envoyBootstrap(t, m.Addr(), `
dynamic_resources:
  ads_config: {api_type: DELTA_GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}
  lds_config: {ads: {}, resource_api_version: V3}
  cds_config: {ads: {}, resource_api_version: V3}
`)
	p := start(t, m.Addr(), "--bootstrap", boot, "--output", "json", "--once", "--resource-timeout", silence)
	p.prints(`"name":"a"`, `"event":"synced","type":"`+clusters+`","name":"*"`, `Listener","name":"*"`)
}

// So it does for the collections that its locators name, whose authorities may have sources
// of their own.
func TestEnvoyLocators(t *testing.T) {
	t.Parallel()
	s := testutil.StartCollectionServer(t)
	x := at("listed", "p/x")
	if err := s.Set(testutil.Wrapped(x, "1", cluster(x))); err != nil {
		t.Fatal(err)
	}
	boot := envoyBootstrap(t, s.Addr(), `
dynamic_resources:
  lds_resources_locator: xdstp://other/envoy.config.listener.v3.Listener/p/*
  cds_resources_locator: xdstp://listed/envoy.config.cluster.v3.Cluster/p/*
config_sources:
- authorities: [{name: listed}]
  api_config_source: {api_type: AGGREGATED_DELTA_GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}
default_config_source:
  api_config_source: {api_type: AGGREGATED_DELTA_GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}
`)
	p := start(t, s.Addr(), "--bootstrap", boot, "--output", "json", "--once")
	p.prints(about("update", x)[1:], complete(at("listed", "p/*"))[1:],
		`"event":"synced","type":"type.googleapis.com/envoy.config.listener.v3.Listener","name":"xdstp://other/envoy.config.listener.v3.Listener/p/*","authority":"other"`)
	p.ends(0)
}

// The real server, with many members and types at once.
func TestManagementServer(t *testing.T) {
	t.Parallel()
	m := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	const n = 1200 // several batches
	var resources []proto.Message
	for i := range n {
		resources = append(resources, cluster(fmt.Sprintf("c%04d", i)))
	}
	resources = append(resources, &endpointv3.ClusterLoadAssignment{ClusterName: "c0000"})
	if err := m.Set("1", resources...); err != nil {
		t.Fatal(err)
	}
	for _, variant := range []string{"sotw", "delta"} {
		t.Run(variant, func(t *testing.T) {
			p := watchServer(t, m.Addr(), "--variant", variant, "--once", "cds", "eds:c0000")
			events := map[string]int{}
			for line := range p.lines {
				_, rest, _ := strings.Cut(line, `"event":"`)
				event, _, _ := strings.Cut(rest, `"`)
				events[event]++
			}
			p.ends(0)
			if events["update"] != n+1 || events["synced"] != 1 || events["stream-up"] != 1 {
				t.Errorf("events %v", events)
			}
		})
	}
}
