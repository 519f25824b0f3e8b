package main

import (
	"fmt"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/bench/kit"
)

func mustAny(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return a
}

func u32(v uint32) *wrapperspb.UInt32Value { return wrapperspb.UInt32(v) }

func ads() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}

// cluster is shaped like what a service mesh's control plane sends for one service.
func cluster(name, host string) *clusterv3.Cluster {
	spiffe := "spiffe://cluster.local/ns/prod/sa/" + host[:12]
	threshold := func(p corev3.RoutingPriority) *clusterv3.CircuitBreakers_Thresholds {
		return &clusterv3.CircuitBreakers_Thresholds{
			Priority: p, MaxConnections: u32(4294967295), MaxPendingRequests: u32(4294967295),
			MaxRequests: u32(4294967295), MaxRetries: u32(4294967295), TrackRemaining: true,
		}
	}
	md, err := structpb.NewStruct(map[string]any{
		"services": []any{map[string]any{"host": host, "name": host[:12], "namespace": "prod"}},
	})
	if err != nil {
		panic(err)
	}
	return &clusterv3.Cluster{
		Name:                 name,
		AltStatName:          kit.ZeroStamp,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads(), ServiceName: host},
		ConnectTimeout:       durationpb.New(10 * time.Second),
		LbPolicy:             clusterv3.Cluster_LEAST_REQUEST,
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{
			threshold(corev3.RoutingPriority_DEFAULT), threshold(corev3.RoutingPriority_HIGH)}},
		OutlierDetection: &clusterv3.OutlierDetection{
			Consecutive_5Xx: u32(5), Interval: durationpb.New(10 * time.Second),
			BaseEjectionTime: durationpb.New(30 * time.Second), MaxEjectionPercent: u32(50),
			EnforcingConsecutive_5Xx: u32(100),
		},
		CommonLbConfig: &clusterv3.Cluster_CommonLbConfig{},
		Metadata:       &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"istio": md}},
		TypedExtensionProtocolOptions: map[string]*anypb.Any{
			"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": mustAny(&httpv3.HttpProtocolOptions{
				UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
					ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
						ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
							Http2ProtocolOptions: &corev3.Http2ProtocolOptions{MaxConcurrentStreams: u32(1073741824)}}}},
			}),
		},
		TransportSocket: &corev3.TransportSocket{
			Name: "envoy.transport_sockets.tls",
			ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: mustAny(&tlsv3.UpstreamTlsContext{
				Sni: host,
				CommonTlsContext: &tlsv3.CommonTlsContext{
					AlpnProtocols: []string{"istio-peer-exchange", "istio", "h2"},
					TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{
						Name: "default", SdsConfig: ads()}},
					ValidationContextType: &tlsv3.CommonTlsContext_CombinedValidationContext{
						CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
							DefaultValidationContext: &tlsv3.CertificateValidationContext{
								//lint:ignore SA1019 control planes still send it
								MatchSubjectAltNames: []*matcherv3.StringMatcher{{
									MatchPattern: &matcherv3.StringMatcher_Exact{Exact: spiffe}}}},
							ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: "ROOTCA", SdsConfig: ads()},
						}},
				},
			})},
		},
	}
}

// assignment has eps endpoints in two localities.
func assignment(name string, eps int) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	for z := range 2 {
		l := &endpointv3.LocalityLbEndpoints{
			Locality:            &corev3.Locality{Region: "eu-west-1", Zone: fmt.Sprintf("eu-west-1%c", 'a'+z)},
			LoadBalancingWeight: u32(uint32(eps / 2)),
		}
		for i := range eps / 2 {
			ep := &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
				SocketAddress: &corev3.SocketAddress{
					Address:       fmt.Sprintf("10.%d.%d.%d", 100+z, 100+i/100, 100+i%100),
					PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 8080},
				}}}}
			if z == 0 && i == 0 {
				ep.Hostname = kit.ZeroStamp
			}
			l.LbEndpoints = append(l.LbEndpoints, &endpointv3.LbEndpoint{
				HostIdentifier:      &endpointv3.LbEndpoint_Endpoint{Endpoint: ep},
				HealthStatus:        corev3.HealthStatus_HEALTHY,
				LoadBalancingWeight: u32(1),
			})
		}
		a.Endpoints = append(a.Endpoints, l)
	}
	return a
}
