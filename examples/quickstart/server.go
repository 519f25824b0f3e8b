package main

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// world is what the management server serves: a listener "edge" with the routes "routes",
// which lead to one of the clusters "blue" and "green", each with an endpoint.
type world struct {
	cluster string            // where the routes lead
	timeout time.Duration     // connect_timeout of the clusters
	hosts   map[string]string // address of the endpoint, by cluster
}

func (w world) resources() ([]proto.Message, error) {
	listener, err := listener("edge", "routes")
	if err != nil {
		return nil, err
	}
	return []proto.Message{
		listener,
		routes("routes", w.cluster),
		cluster("blue", "blue-endpoints", w.timeout),
		cluster("green", "green-endpoints", w.timeout),
		endpoints("blue-endpoints", w.hosts["blue"]),
		endpoints("green-endpoints", w.hosts["green"]),
	}, nil
}

// listener is an API listener, as gRPC's clients take it; its routes come by RDS.
func listener(name, routes string) (*listenerv3.Listener, error) {
	hcm, err := anypb.New(&hcmv3.HttpConnectionManager{
		StatPrefix: name,
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{
			Rds: &hcmv3.Rds{RouteConfigName: routes, ConfigSource: ads()},
		},
	})
	if err != nil {
		return nil, err
	}
	return &listenerv3.Listener{Name: name, ApiListener: &listenerv3.ApiListener{ApiListener: hcm}}, nil
}

// routes lead everything to one cluster.
func routes(name, cluster string) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{
		Name: name,
		VirtualHosts: []*routev3.VirtualHost{{
			Name:    "all",
			Domains: []string{"*"},
			Routes: []*routev3.Route{{
				Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{
					ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster},
				}},
			}},
		}},
	}
}

// cluster has its endpoints by EDS, under another name than its own.
func cluster(name, service string, timeout time.Duration) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{ServiceName: service, EdsConfig: ads()},
		ConnectTimeout:       durationpb.New(timeout),
	}
}

func endpoints(name, host string) *endpointv3.ClusterLoadAssignment {
	address := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       host,
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 8080},
	}}}
	return &endpointv3.ClusterLoadAssignment{
		ClusterName: name,
		Endpoints: []*endpointv3.LocalityLbEndpoints{{
			LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address}},
			}},
		}},
	}
}

// ads says that a resource comes from the server and stream of the one that names it.
func ads() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}
