package testutil

import (
	"fmt"
	"net"
	"strconv"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// ADS is the config source "the stream that this came on".
func ADS() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}, ResourceApiVersion: corev3.ApiVersion_V3,
	}
}

// APIListener is a listener of a client, as gRPC's, whose routes are the route configuration of that
// name.
func APIListener(name, routes string) *listenerv3.Listener {
	return &listenerv3.Listener{Name: name, ApiListener: &listenerv3.ApiListener{ApiListener: toAny(manager(routes))}}
}

// ProxyListener is a listener of a proxy, as Envoy's, on an address "ip:port", whose routes are the route
// configuration of that name. It panics if the address is none.
func ProxyListener(name, address, routes string) *listenerv3.Listener {
	return &listenerv3.Listener{Name: name, Address: socketAddress(address), FilterChains: []*listenerv3.FilterChain{{
		Filters: []*listenerv3.Filter{{Name: "http", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: toAny(manager(routes))}}},
	}}}
}

// manager is an HTTP connection manager whose routes are the route configuration of that name.
func manager(routes string) *hcmv3.HttpConnectionManager {
	return &hcmv3.HttpConnectionManager{
		StatPrefix:     "http",
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: ADS(), RouteConfigName: routes}},
		HttpFilters: []*hcmv3.HttpFilter{{
			Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: toAny(&routerv3.Router{})},
		}},
	}
}

// RouteConfig is a route configuration.
func RouteConfig(name string, hosts ...*routev3.VirtualHost) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{Name: name, VirtualHosts: hosts}
}

// VirtualHost is a virtual host for one domain, such as "*", which is its name too.
func VirtualHost(domain string, routes ...*routev3.Route) *routev3.VirtualHost {
	return &routev3.VirtualHost{Name: domain, Domains: []string{domain}, Routes: routes}
}

// Route sends what begins with a prefix to a cluster. The prefix "" is everything.
func Route(prefix, cluster string) *routev3.Route {
	to := &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}
	return &routev3.Route{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: prefix}},
		Action: &routev3.Route_Route{Route: to},
	}
}

// EDSCluster is a cluster whose endpoints are the assignment of the same name.
func EDSCluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ConnectTimeout: durationpb.New(time.Second),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ADS()},
	}
}

// StaticCluster is a cluster with its endpoints, "ip:port", in it. It panics if an address is none.
func StaticCluster(name string, addresses ...string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ConnectTimeout: durationpb.New(time.Second),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}, LoadAssignment: Endpoints(name, addresses...),
	}
}

// Endpoints is the assignment of a cluster's endpoints, "ip:port" each, all in one locality. It panics if
// an address is none.
func Endpoints(cluster string, addresses ...string) *endpointv3.ClusterLoadAssignment {
	return EndpointsIn(cluster, Locality("zone", 0, 1, addresses...))
}

// EndpointsIn is the assignment of endpoints in several localities.
func EndpointsIn(cluster string, localities ...*endpointv3.LocalityLbEndpoints) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: cluster, Endpoints: localities}
}

// Locality is a zone with endpoints, "ip:port" each. Priority 0 is used before 1; among zones of one
// priority the weights count. It panics if an address is none.
func Locality(zone string, priority, weight uint32, addresses ...string) *endpointv3.LocalityLbEndpoints {
	l := &endpointv3.LocalityLbEndpoints{
		Locality: &corev3.Locality{Zone: zone}, Priority: priority, LoadBalancingWeight: wrapperspb.UInt32(weight),
	}
	for _, a := range addresses {
		l.LbEndpoints = append(l.LbEndpoints, &endpointv3.LbEndpoint{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socketAddress(a)}},
		})
	}
	return l
}

// socketAddress is that of "host:port". It panics if that is none.
func socketAddress(hostport string) *corev3.Address {
	host, text, err := net.SplitHostPort(hostport)
	if err != nil {
		panic(fmt.Sprintf("testutil: %v", err))
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		panic(fmt.Sprintf("testutil: address %q: want a port from 0 to 65535", hostport))
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(port)},
	}}}
}
