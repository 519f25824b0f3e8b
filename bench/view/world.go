package main

import (
	"fmt"
	"time"

	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	ldsURL = "type.googleapis.com/envoy.config.listener.v3.Listener"
	rdsURL = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	cdsURL = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	edsURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

	listenerName  = "listener"
	routesName    = "routes"
	endpointsEach = 10
	firstPort     = 8000
	sinkPolicy    = "xdswatch_bench_sink" // a balancer of gRPC's that takes endpoints and connects to none
)

// world is what the server holds: routes to weighted clusters, each with endpoints.
type world struct{ routes, clusters int }

func (w world) cluster(i int) string { return fmt.Sprintf("cluster-%06d.namespace.svc", i) }

func (w world) names() []string {
	all := make([]string, w.clusters)
	for i := range all {
		all[i] = w.cluster(i)
	}
	return all
}

func pack(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	check(err)
	return a
}

func ads() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}

func (w world) listener() *listenerv3.Listener {
	return &listenerv3.Listener{Name: listenerName, ApiListener: &listenerv3.ApiListener{ApiListener: pack(&hcmv3.HttpConnectionManager{
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: routesName, ConfigSource: ads()}},
		HttpFilters: []*hcmv3.HttpFilter{{
			Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(&routerv3.Router{})},
		}},
	})}}
}

// routing gives each route an equal part of the clusters. Change n turns the parts by n, so that each
// change is one of every route.
func (w world) routing(n int) *routev3.RouteConfiguration {
	host := &routev3.VirtualHost{Name: fmt.Sprint("change-", n), Domains: []string{"*"}}
	per := w.clusters / w.routes
	for r := range w.routes {
		weighted := &routev3.WeightedCluster{}
		for j := range per {
			weighted.Clusters = append(weighted.Clusters, &routev3.WeightedCluster_ClusterWeight{
				Name: w.cluster(((r+n)*per + j) % w.clusters), Weight: wrapperspb.UInt32(1),
			})
		}
		host.Routes = append(host.Routes, &routev3.Route{
			Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: fmt.Sprintf("/service-%04d/", r)}},
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_WeightedClusters{WeightedClusters: weighted}}},
		})
	}
	return &routev3.RouteConfiguration{Name: routesName, VirtualHosts: []*routev3.VirtualHost{host}}
}

func (w world) clusterOf(i int) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: w.cluster(i), ConnectTimeout: durationpb.New(5 * time.Second),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads()},
		LoadBalancingPolicy: &clusterv3.LoadBalancingPolicy{Policies: []*clusterv3.LoadBalancingPolicy_Policy{{
			TypedExtensionConfig: &corev3.TypedExtensionConfig{
				Name: sinkPolicy, TypedConfig: pack(&xdstypev3.TypedStruct{TypeUrl: "type.googleapis.com/" + sinkPolicy}),
			},
		}}},
	}
}

// endpoints of a cluster; all ports of change n are greater by n.
func (w world) endpoints(i, n int) *endpointv3.ClusterLoadAssignment {
	locality := &endpointv3.LocalityLbEndpoints{
		Locality: &corev3.Locality{Region: "region", Zone: "zone"}, LoadBalancingWeight: wrapperspb.UInt32(1),
	}
	for j := range endpointsEach {
		locality.LbEndpoints = append(locality.LbEndpoints, &endpointv3.LbEndpoint{
			HealthStatus: corev3.HealthStatus_HEALTHY,
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: &corev3.Address{
				Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address:       fmt.Sprintf("10.%d.%d.%d", i/250, i%250, j),
					PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(firstPort + n)},
				}},
			}}},
		})
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: w.cluster(i), Endpoints: []*endpointv3.LocalityLbEndpoints{locality}}
}

// changed is the cluster whose endpoints change.
func (w world) changed() int { return w.clusters / 2 }
