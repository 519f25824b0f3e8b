package view

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
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

// The views of all listeners share what the wildcard brings: they ask for no listener by its name, and
// hear of its trouble and its end.
//
// spec: VIEW-16, VIEW-23
func TestListenersAreFed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		boot, err := bootstrap.Server(srv.Target())
		must(t, err)
		c, err := client.New(client.Config{Bootstrap: boot, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()}})
		must(t, err)
		l, err := NewListeners(t.Context(), c, Config{}, nil)
		must(t, err)
		st, err := srv.Accept(t.Context())
		must(t, err)
		synctest.Wait()
		url := kinds["lds"].TypeURL()
		must(t, st.Send(testutil.SotW(url, "1", "n1", res(t, "lds one tcp:a"), res(t, "lds two tcp:a"))))
		<-l.Synced() // though neither is ready
		if one, two := l.View("one"), l.View("two"); one == nil || two == nil || one.Snapshot() != nil || two.Snapshot() != nil {
			t.Error("not every listener has a view, or one of them is ready")
		}
		synctest.Wait()
		must(t, st.Send(testutil.SotW(kinds["cds"].TypeURL(), "1", "n2", res(t, "cds a static:1.1.1.1"))))
		must(t, l.Ready(t.Context()))
		for _, req := range st.Requests() {
			if req.TypeURL() == url && len(req.Names()) > 0 {
				t.Errorf("listeners are asked for by name: %q", req.Names())
			}
		}
		one, two := l.View("one"), l.View("two")
		bad := res(t, "lds one tcp:a")
		bad.(*listenerv3.Listener).FilterChains[0].FilterChainMatch = &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(70_000)}
		must(t, st.Send(testutil.SotW(url, "2", "n3", bad)))
		synctest.Wait()
		if s := one.Snapshot(); s.Err != nil || s.Listener.Note == nil || s.Listener.Version != "1" {
			t.Errorf("the refused listener: %v", show(s))
		}
		if l.View("two") != nil || !errors.Is(two.Err(), client.ErrStopped) {
			t.Errorf("the removed listener: %v", two.Err())
		}
		l.Stop()
		<-l.Done()
		<-one.Done()
		c.Close()
		<-c.Done()
		srv.Close()
	})
}
