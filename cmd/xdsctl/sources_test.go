package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/testutil"
)

const (
	listeners = resource.TypePrefix + "envoy.config.listener.v3.Listener"

	// pollCDS is a cds_config that polls the cluster "xds".
	pollCDS = `
  cds_config: {api_config_source: {api_type: REST, transport_api_version: V3, cluster_names: [xds], refresh_delay: 0.02s, request_timeout: 5s}}`
)

// resourceFile writes a file of resources.
func resourceFile(t *testing.T, name string, resources ...proto.Message) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	b, err := testutil.EncodeFile(path, testutil.SotW("", "7", "", resources...))
	if err == nil {
		err = testutil.PlaceFile(path, b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// polled is a polled server with a cluster.
func polled(t *testing.T) *testutil.RESTServer {
	t.Helper()
	s := testutil.StartRESTServer(t, testutil.RESTConfig{})
	if err := s.Set("1", cluster("a")); err != nil {
		t.Fatal(err)
	}
	return s
}

// The real program watches what an Envoy bootstrap asks for where the bootstrap says: a
// file, and a server that is polled. Each event says which of them it is of.
func TestBinaryOwnSources(t *testing.T) {
	t.Parallel()
	path := build(t)
	s, lds := polled(t), resourceFile(t, "lds.yaml", &listenerv3.Listener{Name: "ingress"})
	boot := envoyBootstrap(t, s.Addr(), "dynamic_resources:\n  lds_config: {path_config_source: {path: "+lds+"}}"+pollCDS)
	flags := []string{"watch", "--bootstrap", boot, "--once"}
	p := launch(t, path, append(flags, "--output", "json")...)
	out, err := io.ReadAll(p.stdout)
	if err != nil {
		t.Fatal(err)
	}
	p.ends(0)
	for _, want := range []string{
		fmt.Sprintf(`"event":"update","type":%q,"name":"ingress","version":"7","resource":{"name":"ingress"},"server":"file://%s"}`, listeners, lds),
		fmt.Sprintf(`"event":"update","type":%q,"name":"a","version":"1","resource":{"name":"a"},"server":"rest:xds"}`, clusters),
		fmt.Sprintf(`"event":"synced","type":%q,"name":"*"}`, listeners), fmt.Sprintf(`"event":"synced","type":%q,"name":"*"}`, clusters),
		fmt.Sprintf(`"event":"stream-up","server":"file://%s"`, lds), `"event":"stream-up","server":"rest:xds"`,
	} {
		if strings.Count(plain(string(out)), want) != 1 {
			t.Errorf("%s\nis not once in\n%s", want, out)
		}
	}
	p = launch(t, path, flags...)
	if out, err = io.ReadAll(p.stdout); err != nil {
		t.Fatal(err)
	}
	p.ends(0)
	for _, want := range []string{"  version 7  9 B  0 filter chains  from file://" + lds, "  from rest:xds\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s\nis not in\n%s", want, out)
		}
	}
}

// resolve follows listeners and clusters from the sources that the bootstrap has for each.
func TestResolveOwnSources(t *testing.T) {
	t.Parallel()
	tcp, err := anypb.New(&tcpv3.TcpProxy{StatPrefix: "s", ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	ingress := &listenerv3.Listener{Name: "ingress", FilterChains: []*listenerv3.FilterChain{{
		Filters: []*listenerv3.Filter{{Name: "tcp", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: tcp}}},
	}}}
	path, s, lds := build(t), polled(t), resourceFile(t, "lds.yaml", ingress)
	boot := envoyBootstrap(t, s.Addr(), "dynamic_resources:\n  lds_config: {path_config_source: {path: "+lds+"}}"+pollCDS)
	for _, root := range []string{"all", "lds:ingress"} {
		p := launch(t, path, "resolve", "--bootstrap", boot, "--once", "-o", "json", root)
		out, err := io.ReadAll(p.stdout)
		if err != nil {
			t.Fatal(err)
		}
		p.ends(0)
		for _, want := range []string{`"listener":{"name":"ingress","version":"7"}`, `"clusters":{"a":{"status":"ok"`} {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: %q is not in\n%s", root, want, out)
			}
		}
	}
}

// What a file holds is taken or refused, and nobody is told ACK or NACK.
//
// spec: FILE-4
func TestFileIsNotAnswered(t *testing.T) {
	t.Parallel()
	bad := cluster("b")
	bad.ConnectTimeout = durationpb.New(-time.Second)
	boot := file(t, "envoy.yaml", `
node: {id: envoy, cluster: c}
dynamic_resources:
  cds_config: {path_config_source: {path: `+resourceFile(t, "cds.yaml", cluster("a"), bad)+`}}
`)
	p := start(t, boot, "--bootstrap", boot, "--output", "json", "--once", "cds:a", "cds:b")
	var events []string
	for line := range p.lines {
		var r struct{ Event string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		events = append(events, r.Event)
	}
	slices.Sort(events)
	if want := []string{"error", "stream-up", "update"}; !slices.Equal(events, want) {
		t.Errorf("printed %v, want %v", events, want)
	}
	p.ends(3)
}

// The list collection in a file is shown as any other, with no server; and an Envoy bootstrap
// may ask for nothing else.
func TestFileList(t *testing.T) {
	t.Parallel()
	path := file(t, "list.yaml", `
version: "7"
resource:
  "@type": type.googleapis.com/envoy.config.cluster.v3.ClusterCollection
  entries:
  - inline_entry: {name: a, version: "3", resource: {"@type": `+clusters+`, name: x}}
  - inline_entry: {resource: {"@type": `+clusters+`, name: z}}
`)
	url := "file://" + path
	update := func(name, version, id string) string {
		return fmt.Sprintf(`"event":"update","type":%q,"name":"%s#%s","version":%q,"resource":{"name":%q},"server":%q}`, clusters, url, name, version, id, url)
	}
	all := []string{
		update("entry=a", "3", "x"), update("1", "7", "z"),
		fmt.Sprintf(`"event":"synced","type":%q,"name":%q}`, clusters, url),
	}
	boot := file(t, "envoy.yaml", "node: {id: a, cluster: c}\ndynamic_resources: {cds_resources_locator: \""+url+"\"}")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--server", "localhost:1", "cds:" + url}, all},
		{[]string{"--bootstrap", boot}, all},
		{[]string{"--server", "localhost:1", "cds:" + url + "#entry=a"}, all[:1]},
	} {
		status, out, errs := runOnce(t, append([]string{"watch", "--once", "--output", "json"}, c.args...)...)
		if status != 0 || errs != "" {
			t.Errorf("%v: status %d, %s", c.args, status, errs)
		}
		for _, want := range c.want {
			if strings.Count(plain(out), want) != 1 {
				t.Errorf("%v: %s\nis not once in\n%s", c.args, want, out)
			}
		}
	}
}

// What is followed through all that it names begins there too.
func TestOwnSourcesAreFollowed(t *testing.T) {
	t.Parallel()
	s := testutil.StartRESTServer(t, testutil.RESTConfig{})
	if err := s.Set("1", testutil.StaticCluster("a", "10.0.0.1:80")); err != nil {
		t.Fatal(err)
	}
	path := resourceFile(t, "lds.yaml", inlineListener(t, "ingress", testutil.RouteConfig("r", testutil.VirtualHost("*", testutil.Route("", "a")))))
	boot := envoyBootstrap(t, s.Addr(), "dynamic_resources:\n  lds_config: {path_config_source: {path: "+path+"}}"+pollCDS)
	for _, root := range []string{"lds:ingress", "all"} {
		status, out, errs := runOnce(t, "resolve", "--bootstrap", boot, "--once", "-o", "json", root)
		if status != 0 || !strings.Contains(out, `"address":"10.0.0.1:80"`) {
			t.Errorf("resolve %s: status %d, %s%s", root, status, out, errs)
		}
		status, out, errs = runOnce(t, "graph", "--bootstrap", boot, root)
		if status != 0 || out != "lds ingress\n└── cds a\n" {
			t.Errorf("graph %s: status %d, %s%s", root, status, out, errs)
		}
		p, url := startUI(t, "--bootstrap", boot, root)
		until(t, "the view", func() bool { return strings.Contains(fetched(t, url+"views?format=json"), `"clusters": 1`) })
		if status := p.ended(); status != 0 {
			t.Errorf("ui %s: status %d: %s", root, status, p.stderr)
		}
	}
}

// inlineListener is a proxy's listener with routes of its own.
func inlineListener(t *testing.T, name string, routes *routev3.RouteConfiguration) *listenerv3.Listener {
	t.Helper()
	l := testutil.ProxyListener(name, "127.0.0.1:80", "")
	config := l.GetFilterChains()[0].GetFilters()[0].GetTypedConfig()
	m := &hcmv3.HttpConnectionManager{}
	if err := config.UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
	m.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: routes}
	if err := config.MarshalFrom(m); err != nil {
		t.Fatal(err)
	}
	return l
}

// What is subscribed to by hand is asked there too, single names included.
func TestOwnSourcesByHand(t *testing.T) {
	t.Parallel()
	s := polled(t)
	boot := envoyBootstrap(t, s.Addr(), "dynamic_resources:"+pollCDS)
	p := start(t, s.Addr(), "--bootstrap", boot, "--output", "json", "--stdin")
	const from = `"server":"rest:xds"}`
	for _, sub := range []string{"cds:a", "cds", "cds:*"} {
		p.enter("watch " + sub)
		if line := p.skipTo(`"event":"update"`); !strings.HasSuffix(line, from) {
			t.Errorf("%s: %s", sub, line)
		}
	}
	p.enter("watch eds:a")
	if line := p.skipTo(`"event":"error"`); !strings.Contains(line, `"kind":"config"`) {
		t.Errorf("printed %s", line)
	}
}

// A source of its own on gRPC has a stream for the type alone, beside the aggregated one.
func TestOwnStream(t *testing.T) {
	t.Parallel()
	srv := server(t)
	const service = "transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]"
	boot := envoyBootstrap(t, srv.Target(), `
dynamic_resources:
  ads_config: {api_type: GRPC, `+service+`}
  lds_config: {ads: {}}
  cds_config: {api_config_source: {api_type: DELTA_GRPC, `+service+`}}
`)
	startHiding(t, strings.NewReplacer(), "--bootstrap", boot)
	methods := map[string]bool{}
	for range 2 {
		methods[accept(t, srv).Method] = true
	}
	for _, want := range []string{
		"/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters",
		"/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
	} {
		if !methods[want] {
			t.Errorf("no stream of %s in %v", want, methods)
		}
	}
}

// What lds_config and cds_config say of the start goes for every name of their types, also
// where they refer to ads_config.
//
// spec: DNE-10
func TestInitialFetchTimeout(t *testing.T) {
	t.Parallel()
	srv := server(t)
	boot := envoyBootstrap(t, srv.Target(), `
dynamic_resources:
  ads_config: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}
  cds_config: {ads: {}, initial_fetch_timeout: 0.05s}
`)
	for name, args := range map[string][]string{`"name":"*"`: nil, `"name":"a"`: {"cds:a"}} {
		p := start(t, srv.Target(), append([]string{"--bootstrap", boot, "--output", "json", "--once"}, args...)...)
		line := p.skipTo(`"event":"error"`)
		for _, want := range []string{name, `"kind":"timeout"`, "no answer within the initial fetch timeout of 50ms"} {
			if !strings.Contains(line, want) {
				t.Errorf("%s is missing in %s", want, line)
			}
		}
		p.ends(3)
	}
}

// A bootstrap that asks for version 2 of the transport is obeyed; what is printed is of
// version 3.
//
// spec: V2-1 V2-2
func TestVersion2(t *testing.T) {
	t.Parallel()
	srv := server(t)
	boot := envoyBootstrap(t, srv.Target(), `
dynamic_resources:
  ads_config: {api_type: GRPC, transport_api_version: V2, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}
  cds_config: {ads: {}, resource_api_version: V2}
`)
	p := start(t, srv.Target(), "--bootstrap", boot, "--output", "json", "--once")
	st, first := acceptFirst(t, srv)
	const v2 = resource.TypePrefix + "envoy.api.v2.Cluster"
	if want := "/envoy.service.discovery.v2.AggregatedDiscoveryService/StreamAggregatedResources"; st.Method != want {
		t.Errorf("method %s, want %s", st.Method, want)
	}
	if got := first.SotW.GetTypeUrl(); got != v2 {
		t.Errorf("asked for %s, want %s", got, v2)
	}
	resp := testutil.SotW(v2, "1", "n1", cluster("a"))
	resp.Resources[0].TypeUrl = v2
	send(t, st, resp)
	for _, want := range []string{`"event":"update","type":"` + clusters + `","name":"a"`, `"event":"synced","type":"` + clusters + `"`} {
		p.skipTo(want)
	}
	p.ends(0)
}

// A collection whose URL is given fields of the node is still known as the one that was
// asked for. Its members have them in their names, by which they can be asked for.
//
// spec: CTX-1
func TestNodeContextOnce(t *testing.T) {
	t.Parallel()
	s := testutil.StartCollectionServer(t)
	all, list := at("east", "p/*"), listAt("east", "l")
	const param = "?xds.node.cluster=c"
	member := at("east", "p/x") + param
	if err := s.Set(testutil.Wrapped(member, "1", cluster(member))); err != nil {
		t.Fatal(err)
	}
	if err := s.List(list+param, inline("in", "1")); err != nil {
		t.Fatal(err)
	}
	boot := envoyBootstrap(t, s.Addr(), `
node_context_params: [cluster]
dynamic_resources:
  cds_resources_locator: `+all+`
default_config_source:
  api_config_source: {api_type: AGGREGATED_DELTA_GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}
`)
	p := start(t, s.Addr(), "--bootstrap", boot, "--output", "json", "--once")
	p.skipTo(about("update", member))
	p.skipTo(complete(all + param))
	p.ends(0)
	p = start(t, s.Addr(), "--bootstrap", boot, "--output", "json", "--once", list)
	p.skipTo(complete(list + param))
	p.ends(0)
	p = start(t, s.Addr(), "--bootstrap", boot, "--output", "json", "--once", "cds:"+member)
	p.skipTo(about("update", member))
	p.ends(0)
}
