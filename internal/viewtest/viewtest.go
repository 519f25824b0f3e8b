// Package viewtest makes what tests of the view's adapters need: a management server, clients,
// resources, and an address at which nobody listens.
package viewtest

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sigs.k8s.io/yaml"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
)

// Patience is a context that ends a test which waits in vain.
func Patience(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Nobody is an address at which nobody listens for as long as the test runs. The local end of a connection has it: a port
// that is merely closed may be given to the next server of another test.
func Nobody(t testing.TB) *net.TCPAddr {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lis.Close() })
	conn, err := net.Dial("tcp", lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.LocalAddr().(*net.TCPAddr)
}

// Management starts a real management server.
func Management(t testing.TB, opts ...grpc.ServerOption) *testutil.ManagementServer {
	t.Helper()
	return testutil.StartManagementServer(t, testutil.ManagementConfig{GRPC: opts})
}

// Complete starts a real management server that in delta says at once what it does not have. It is for tests that
// set their resources once: while they change, a client may ask for what has just gone.
func Complete(t testing.TB) *testutil.ManagementServer {
	t.Helper()
	var m *testutil.ManagementServer
	saying := func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		return next(srv, &answers{ServerStream: s, server: m})
	}
	m = Management(t, grpc.ChainStreamInterceptor(saying))
	return m
}

// Set replaces what the server has.
func Set(t testing.TB, m *testutil.ManagementServer, version string, resources ...proto.Message) {
	t.Helper()
	if err := m.Set(version, resources...); err != nil {
		t.Fatal(err)
	}
}

// Client makes a client in delta, in which alone a server can remove endpoints. It waits a second
// for what does not exist.
func Client(t testing.TB, m *testutil.ManagementServer) *client.Client {
	t.Helper()
	boot, err := bootstrap.Server(m.Addr())
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot, Variant: client.VariantDelta, ResourceTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func pack(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	packed, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// Listener is the API listener "listener" with the route configuration "routes", which has one
// virtual host for the domains and the routes, each in YAML.
func Listener(t testing.TB, domains string, routes ...string) []proto.Message {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(`{name: routes, virtual_hosts: [{name: v, domains: [` + domains + `], routes: [` + strings.Join(routes, ", ") + `]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	rc := &routev3.RouteConfiguration{}
	if err := protojson.Unmarshal(data, rc); err != nil {
		t.Fatal(err)
	}
	manager := pack(t, &hcmv3.HttpConnectionManager{StatPrefix: "s", RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{
		Rds: &hcmv3.Rds{ConfigSource: testutil.ADS(), RouteConfigName: rc.Name},
	}})
	return []proto.Message{&listenerv3.Listener{Name: "listener", ApiListener: &listenerv3.ApiListener{ApiListener: manager}}, rc}
}

// Managed changes the HttpConnectionManager of the API listener of Listener.
func Managed(t testing.TB, all []proto.Message, change func(*hcmv3.HttpConnectionManager)) []proto.Message {
	t.Helper()
	api, hcm := all[0].(*listenerv3.Listener).GetApiListener(), &hcmv3.HttpConnectionManager{}
	if err := api.GetApiListener().UnmarshalTo(hcm); err != nil {
		t.Fatal(err)
	}
	change(hcm)
	api.ApiListener = pack(t, hcm)
	return all
}

// Cluster is an EDS cluster.
func Cluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: testutil.ADS()},
	}
}

// Aggregate is a cluster of clusters.
func Aggregate(t testing.TB, name string, members ...string) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{
		ClusterType: &clusterv3.Cluster_CustomClusterType{
			Name: "envoy.clusters.aggregate", TypedConfig: pack(t, &aggregatev3.ClusterConfig{Clusters: members}),
		},
	}}
}

// Assignment is the endpoints of a cluster.
func Assignment(name string, localities ...*endpointv3.LocalityLbEndpoints) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: localities}
}

// Locality is endpoints on loopback, by port and weight.
func Locality(priority uint32, weights map[uint32]uint32) *endpointv3.LocalityLbEndpoints {
	l := &endpointv3.LocalityLbEndpoints{
		Priority: priority, Locality: &corev3.Locality{Region: "here"}, LoadBalancingWeight: wrapperspb.UInt32(1),
	}
	for _, port := range slices.Sorted(maps.Keys(weights)) {
		l.LbEndpoints = append(l.LbEndpoints, &endpointv3.LbEndpoint{
			LoadBalancingWeight: wrapperspb.UInt32(weights[port]),
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: &corev3.Address{
				Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
				}},
			}}},
		})
	}
	return l
}

// At is a locality of one endpoint.
func At(port uint32) *endpointv3.LocalityLbEndpoints { return Locality(0, map[uint32]uint32{port: 1}) }
