package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

var rewrite = flag.Bool("update", false, "rewrite the examples of the documents")

// pages are the documents with examples of the command.
var pages = []string{"../../docs/XDSCTL.md", "../../docs/guide/debugging.md", "../../README.md"}

var (
	blocks = regexp.MustCompile("(?s)```console\n.*?```\n")
	times  = regexp.MustCompile(`\d\d:\d\d:\d\d(\.\d{3}(\d{6})?)?Z?|\d{4}-\d\d-\d\dT`)
)

// Every example of the documents prints what they say.
func TestDocs(t *testing.T) {
	if testing.Short() {
		t.Skip("long: some commands wait for seconds, and no other test runs meanwhile")
	}
	var paths []string
	for _, page := range pages {
		path, err := filepath.Abs(page)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	m := managed(t, shop()...)
	process := serveProcess(t, saying(ofEdge()))
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{
		"release.yaml": released(t),
		"broken.yaml": `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: backend
connect_timeout: -1s
---
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
nmae: frontend
`,
		"broken-for-grpc.yaml": `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: backend
type: EDS
lb_policy: MAGLEV
eds_cluster_config: {eds_config: {path_config_source: {path: /etc/eds.yaml}}}
---
"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
cluster_name: backend
endpoints:
- locality: {zone: a}
- {locality: {zone: b}, load_balancing_weight: 1, priority: 1}
`,
		"part.yaml": `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: backend
type: EDS
eds_cluster_config: {eds_config: {ads: {}}}
`,
		"node.yaml": "id: edge-1\nmetadata: {role: none}\n",
		"federated.json": `{
			"node": {"id": "me"},
			"xds_servers": [
				{"server_uri": "xds-1.example:443", "channel_creds": [{"type": "tls"}], "server_features": ["fail_on_data_errors"]},
				{"server_uri": "xds-2.example:443", "channel_creds": [{"type": "tls"}]}
			],
			"authorities": {"west": {"xds_servers": [{"server_uri": "west.example:18000", "channel_creds": [{"type": "insecure"}]}]}},
			"favourite_colour": "blue"
		}`,
		"bad.json":  `{"xds_servers": [{"server_uri": "xds.example:443", "channel_creds": [{"type": "tsl"}]}], "authorities": {"west": 1}}`,
		"grpc.json": fmt.Sprintf(`{"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}]}], "node": {"id": "me"}}`, m.Addr()),
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup // some commands wait for seconds
	for _, path := range paths {
		wg.Go(func() { checkPage(t, m.Addr(), process, path) })
	}
	wg.Wait()
}

func checkPage(t *testing.T, server, process, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
		return
	}
	plain := func(s string) string { return times.ReplaceAllString(s, "TIME") }
	written := blocks.FindAllString(string(text), -1)
	printed := make([]string, len(written))
	var wg sync.WaitGroup // blocks stand for themselves
	for i, block := range written {
		wg.Go(func() { printed[i] = rerun(t, server, process, block) })
	}
	wg.Wait()
	got := blocks.ReplaceAllStringFunc(string(text), func(block string) string {
		again := printed[0]
		printed = printed[1:]
		if plain(again) == plain(block) {
			return block
		}
		return again
	})
	diff := cmp.Diff(plain(string(text)), plain(got))
	switch {
	case diff == "":
	case *rewrite:
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Error(err)
		}
	default:
		t.Errorf("%s is not what is printed; -update rewrites it:\n%s", path, diff)
	}
}

// released is a file with the shop after some changes.
func released(t *testing.T) string {
	t.Helper()
	m := managed(t, changed()...)
	args := []string{"get", "--server", m.Addr(), "-o", "yaml", "lds", "cds", "rds:shop", "eds:backend", "eds:frontend", "eds:extra"}
	status, out, errs := runOnce(t, args...)
	if status != 0 {
		t.Fatal(errs)
	}
	return out
}

// rerun runs the commands of a block, and puts below each what it prints.
func rerun(t *testing.T, server, process, block string) string {
	const local, localProcess = "localhost:18000", "localhost:50051"
	var b strings.Builder
	b.WriteString("```console\n")
	for line := range strings.Lines(block) {
		if !strings.HasPrefix(line, "$ ") {
			continue
		}
		args := strings.Fields(strings.NewReplacer(local, server, localProcess, process).Replace(line))[2:]
		_, out, errs := runOnce(t, args...)
		b.WriteString(line + strings.NewReplacer(server, local, process, localProcess).Replace(out+errs))
	}
	return b.String() + "```\n"
}

func packed(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err) // messages of tests
	}
	return a
}

func address(host string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

var adsSource = &corev3.ConfigSource{
	ResourceApiVersion: corev3.ApiVersion_V3, ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
}

// edsCluster is a cluster whose endpoints have its name.
func edsCluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: adsSource},
	}
}

// assignment is the endpoints of a cluster, all in one zone.
func assignment(name string, hosts ...string) *endpointv3.ClusterLoadAssignment {
	l := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Region: "eu", Zone: "eu-1"}, LoadBalancingWeight: wrapperspb.UInt32(1)}
	for _, host := range hosts {
		l.LbEndpoints = append(l.LbEndpoints, &endpointv3.LbEndpoint{
			HealthStatus: corev3.HealthStatus_HEALTHY, LoadBalancingWeight: wrapperspb.UInt32(1),
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address(host, 8080)}},
		})
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{l}}
}

// manager is an HTTP connection manager whose routes are a resource of their own.
func manager(routes string) *hcmv3.HttpConnectionManager {
	return &hcmv3.HttpConnectionManager{StatPrefix: "http", RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{
		Rds: &hcmv3.Rds{ConfigSource: adsSource, RouteConfigName: routes},
	}}
}

// proxyListener is a listener of a proxy, apiListener one of a gRPC client.
func proxyListener(name, routes string) *listenerv3.Listener {
	return &listenerv3.Listener{Name: name, Address: address("0.0.0.0", 80), FilterChains: []*listenerv3.FilterChain{{
		Filters: []*listenerv3.Filter{{Name: "http", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(manager(routes))}}},
	}}}
}

func apiListener(name, routes string) *listenerv3.Listener {
	return &listenerv3.Listener{Name: name, ApiListener: &listenerv3.ApiListener{ApiListener: packed(manager(routes))}}
}

// routesTo are routes with a virtual host for each cluster, whose domain is CLUSTER.example.
func routesTo(name string, clusters ...string) *routev3.RouteConfiguration {
	rc := &routev3.RouteConfiguration{Name: name}
	for _, c := range clusters {
		rc.VirtualHosts = append(rc.VirtualHosts, &routev3.VirtualHost{
			Name: c, Domains: []string{c + ".example"},
			Routes: []*routev3.Route{{
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: c}}},
			}},
		})
	}
	return rc
}

// shop is the configuration of the page.
func shop() []proto.Message {
	return []proto.Message{
		proxyListener("ingress", "shop"), routesTo("shop", "frontend", "backend"), routesTo("legacy", "backend", "gone"),
		edsCluster("frontend"), edsCluster("backend"),
		assignment("frontend", "10.0.0.1"), assignment("backend", "10.0.1.1", "10.0.1.2"),
	}
}
