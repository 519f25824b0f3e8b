package view

import (
	"fmt"
	"net"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
)

// apart is a bootstrap of Envoy whose listeners come from one server and whose clusters from another.
func apart(t *testing.T, listeners, clusters string) *bootstrap.Config {
	t.Helper()
	var b strings.Builder
	b.WriteString("node: {id: test, cluster: test}\ndynamic_resources:\n")
	for key, name := range map[string]string{"lds_config": "l", "cds_config": "c"} {
		fmt.Fprintf(&b, "  %s: {resource_api_version: V3, api_config_source: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: %s}}]}}\n", key, name)
	}
	b.WriteString("static_resources:\n  clusters:\n")
	for name, addr := range map[string]string{"l": listeners, "c": clusters} {
		host, port, err := net.SplitHostPort(addr)
		must(t, err)
		fmt.Fprintf(&b, "  - {name: %s, type: STATIC, load_assignment: {cluster_name: %[1]s, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]}}\n", name, host, port)
	}
	boot, err := bootstrap.Parse("envoy.yaml", []byte(b.String()))
	must(t, err)
	return boot
}

// Listeners and clusters come from the sources that lds_config and cds_config have of their own, and
// what they name of "self" from there too.
//
// spec: ADS-3
func TestSourcesOfTheirOwn(t *testing.T) {
	self := &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Self{Self: &corev3.SelfConfigSource{}}}
	cluster := res(t, "cds a eds").(*clusterv3.Cluster)
	cluster.EdsClusterConfig.EdsConfig = self
	listener := &listenerv3.Listener{Name: "l", FilterChains: []*listenerv3.FilterChain{chain(&hcmv3.HttpConnectionManager{
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: "r", ConfigSource: self}},
	})}}
	serve := func(resources ...proto.Message) *testutil.ManagementServer {
		srv := testutil.StartManagementServer(t, testutil.ManagementConfig{})
		must(t, srv.Set("1", resources...))
		return srv
	}
	first, second := serve(listener, res(t, "rds r *=a")), serve(cluster, res(t, "eds a 1.1.1.1"))
	c, err := client.New(client.Config{Bootstrap: apart(t, first.Addr(), second.Addr())})
	must(t, err)
	defer func() {
		c.Close()
		<-c.Done()
	}()
	l, err := NewListeners(t.Context(), c, Config{}, nil)
	must(t, err)
	defer l.Stop()
	must(t, l.Ready(t.Context()))
	v, err := New(t.Context(), c, Root{Type: RootListener, Name: "l"}, Config{})
	must(t, err)
	defer v.Stop()
	must(t, v.Ready(t.Context()))
	for _, s := range []*Snapshot{l.View("l").Snapshot(), v.Snapshot()} {
		if c := s.Cluster("a"); c.Status() != StatusOK || showEndpoints(c.Endpoints) != "[1.1.1.1]" || c.Server.URI == s.Listener.Server.URI {
			t.Errorf("the snapshot is %v", show(s))
		}
	}
}
