package grpcrules

import (
	"time"

	udpatypev1 "github.com/cncf/xds/go/udpa/type/v1"
	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	gcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/gcp_authn/v3"
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	wrrv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/client_side_weighted_round_robin/v3"
	leastrequestv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	pickfirstv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/pick_first/v3"
	ringhashv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/ring_hash/v3"
	roundrobinv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	localityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	auditv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/rbac/audit_loggers/stream/v3"
	proxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/http_11_proxy/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// channelName is the name of the channel and of the resources that it needs, which no random one has.
const channelName = "judge.example"

func packed(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return a
}

func object(fields map[string]any) *structpb.Struct {
	s, err := structpb.NewStruct(fields)
	if err != nil {
		panic(err)
	}
	return s
}

func ads() *corev3.ConfigSource {
	return &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}
}

func httpFilter(name string, m proto.Message) *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(m)}}
}

func byRDS() *hcmv3.HttpConnectionManager_Rds {
	return &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: ads(), RouteConfigName: channelName}}
}

func listenerOf(name string, m *hcmv3.HttpConnectionManager) *listenerv3.Listener {
	return &listenerv3.Listener{Name: name, ApiListener: &listenerv3.ApiListener{ApiListener: packed(m)}}
}

// What the channel needs.

func listener() *listenerv3.Listener {
	return listenerOf(channelName, &hcmv3.HttpConnectionManager{RouteSpecifier: byRDS(), HttpFilters: []*hcmv3.HttpFilter{httpFilter("router", &routerv3.Router{})}})
}

func routes() *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{Name: channelName, VirtualHosts: []*routev3.VirtualHost{{
		Domains: []string{"*"}, Routes: []*routev3.Route{routeTo(channelName)},
	}}}
}

func routeTo(cluster string) *routev3.Route {
	return &routev3.Route{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: ""}},
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}},
	}
}

func cluster() *clusterv3.Cluster { return edsCluster(channelName) }

func edsCluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads()},
	}
}

func assignment() *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: channelName}
}

// bases are what random resources are made of.
func bases() map[string]proto.Message {
	rules := &rbacv3.RBAC{Rules: rbacRules()}
	faulty := []*hcmv3.HttpFilter{httpFilter("fault", &faultv3.HTTPFault{}), httpFilter("router", &routerv3.Router{})}
	return map[string]proto.Message{
		"listener": listenerOf("x", &hcmv3.HttpConnectionManager{RouteSpecifier: byRDS(), HttpFilters: faulty}),
		"inline": listenerOf("x", &hcmv3.HttpConnectionManager{
			RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: manyRoutes()}, HttpFilters: faulty,
		}),
		"server": &listenerv3.Listener{
			Name: "x", Address: socket("10.0.0.1", 80),
			FilterChains: []*listenerv3.FilterChain{
				chain(&listenerv3.FilterChainMatch{PrefixRanges: ranges("10.0.0.0", 8), SourcePorts: []uint32{1, 2}}, rules),
				chain(&listenerv3.FilterChainMatch{SourcePrefixRanges: ranges("192.168.0.0", 16), SourceType: listenerv3.FilterChainMatch_EXTERNAL}, rules),
				chain(&listenerv3.FilterChainMatch{TransportProtocol: "raw_buffer", PrefixRanges: ranges("::1", 128)}, rules),
			},
		},
		"default chain": &listenerv3.Listener{Name: "x", Address: socket("10.0.0.1", 80), DefaultFilterChain: chain(nil, rules)},
		"routes":        manyRoutes(),
		"cluster":       richCluster(),
		"legacy ring":   legacyRing(),
		"outlier":       withOutliers(edsCluster("x")),
		"discovered": listenerOf("x", &hcmv3.HttpConnectionManager{
			RouteSpecifier: byRDS(),
			HttpFilters: []*hcmv3.HttpFilter{
				{Name: "found", IsOptional: true, ConfigType: &hcmv3.HttpFilter_ConfigDiscovery{ConfigDiscovery: &corev3.ExtensionConfigSource{ConfigSource: ads(), TypeUrls: []string{"a"}}}},
				httpFilter("router", &routerv3.Router{}),
			},
		}),
		"overrides": overridden(),
		"dns": &clusterv3.Cluster{
			Name: "x", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_LOGICAL_DNS},
			LoadAssignment: &endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{endpointAt("dns.example", 80)}}}},
		},
		"aggregate": &clusterv3.Cluster{Name: "x", ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
			Name: "envoy.clusters.aggregate", TypedConfig: packed(&aggregatev3.ClusterConfig{Clusters: []string{"a", "b"}}),
		}}},
		"policies": withPolicies(edsCluster("x"),
			&leastrequestv3.LeastRequest{ChoiceCount: wrapperspb.UInt32(3)}),
		"ring": withPolicies(edsCluster("x"), &ringhashv3.RingHash{
			HashFunction: ringhashv3.RingHash_XX_HASH, MinimumRingSize: wrapperspb.UInt64(100), MaximumRingSize: wrapperspb.UInt64(2000),
		}),
		"weights": withPolicies(edsCluster("x"), &localityv3.WrrLocality{
			EndpointPickingPolicy: policiesOf(&wrrv3.ClientSideWeightedRoundRobin{ErrorUtilizationPenalty: wrapperspb.Float(1), BlackoutPeriod: durationpb.New(time.Second)}, &roundrobinv3.RoundRobin{}),
		}),
		"typed": withPolicies(edsCluster("x"),
			&xdstypev3.TypedStruct{TypeUrl: "a/ring_hash_experimental", Value: object(map[string]any{"minRingSize": 3, "maxRingSize": 5})}),
		"assignment": &endpointv3.ClusterLoadAssignment{
			ClusterName: "x",
			Policy:      &endpointv3.ClusterLoadAssignment_Policy{DropOverloads: []*endpointv3.ClusterLoadAssignment_Policy_DropOverload{{Category: "c"}}},
			Endpoints: []*endpointv3.LocalityLbEndpoints{
				localityOf("a", 0, 1, endpointAt("10.0.0.1", 1), endpointAt("10.0.0.2", 1)),
				localityOf("b", 0, 1, endpointAt("10.0.0.3", 1)),
				localityOf("a", 1, 5, endpointAt("10.0.0.4", 1)),
			},
		},
		"described": described(),
	}
}

// parts are what an Any may become.
func parts() []proto.Message {
	return []proto.Message{
		&routerv3.Router{}, &faultv3.HTTPFault{}, &rbacv3.RBAC{Rules: rbacRules()}, &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: rbacRules()}},
		&rbacv3.RBAC{}, &routev3.FilterConfig{IsOptional: true}, &routev3.FilterConfig{Config: packed(&faultv3.HTTPFault{})},
		&udpatypev1.TypedStruct{TypeUrl: "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
		&xdstypev3.TypedStruct{TypeUrl: "type.googleapis.com/acme.Filter"},
		&xdstypev3.TypedStruct{TypeUrl: "a/least_request_experimental", Value: object(map[string]any{"choiceCount": 1})},
		&xdstypev3.TypedStruct{TypeUrl: "a/least_request_experimental", Value: object(map[string]any{"choiceCount": 2})},
		&xdstypev3.TypedStruct{TypeUrl: "a/pick_first", Value: object(map[string]any{"shuffleAddressList": "x"})},
		&udpatypev1.TypedStruct{TypeUrl: "weighted_round_robin", Value: object(map[string]any{"blackoutPeriod": "1s", "errorUtilizationPenalty": 0.5})},
		&udpatypev1.TypedStruct{TypeUrl: "weighted_round_robin", Value: object(map[string]any{"blackoutPeriod": "1"})},
		&udpatypev1.TypedStruct{TypeUrl: "x/xds_wrr_locality_experimental", Value: object(map[string]any{"childPolicy": []any{map[string]any{"nobody": map[string]any{}}, map[string]any{"round_robin": map[string]any{}}}})},
		&udpatypev1.TypedStruct{TypeUrl: "x/xds_wrr_locality_experimental", Value: object(map[string]any{"childPolicy": []any{map[string]any{"nobody": map[string]any{}}}})},
		&udpatypev1.TypedStruct{TypeUrl: "x/nobody"}, &xdstypev3.TypedStruct{TypeUrl: "x/stdout_logger"},
		&auditv3.StdoutAuditLog{}, &roundrobinv3.RoundRobin{}, &pickfirstv3.PickFirst{}, &leastrequestv3.LeastRequest{ChoiceCount: wrapperspb.UInt32(1)},
		&localityv3.WrrLocality{}, &ringhashv3.RingHash{}, &tlsv3.UpstreamTlsContext{}, &tlsv3.DownstreamTlsContext{},
		&hcmv3.HttpConnectionManager{}, &aggregatev3.ClusterConfig{},
		&routev3.FilterConfig{Disabled: true}, &routev3.FilterConfig{Disabled: true, IsOptional: true, Config: packed(&rbacv3.RBACPerRoute{})}, &rbacv3.RBACPerRoute{},
		&gcpv3.Audience{Url: "u"}, &gcpv3.Audience{}, &gcpv3.GcpAuthnFilterConfig{}, &corev3.Address{}, socket("10.0.0.1", 1), &corsv3.Cors{}, &mutationv3.HeaderMutation{},
		&proxyv3.Http11ProxyUpstreamTransport{}, &proxyv3.Http11ProxyUpstreamTransport{TransportSocket: tlsSocket(&tlsv3.UpstreamTlsContext{CommonTlsContext: commonTLS(false)})},
		&wrrv3.ClientSideWeightedRoundRobin{}, policyOf(policyOf(policyOf(&roundrobinv3.RoundRobin{}))), policyOf(),
		&xdstypev3.TypedStruct{TypeUrl: "a/weighted_round_robin", Value: object(map[string]any{"weightExpirationPeriod": "-1s", "metricNamesForComputingUtilization": []any{"named_metrics.a"}})},
		&xdstypev3.TypedStruct{TypeUrl: "a/ring_hash_experimental", Value: object(map[string]any{"minRingSize": 9, "maxRingSize": 5})},
		&xdstypev3.TypedStruct{TypeUrl: "a/round_robin", Value: object(map[string]any{"x": 1})}, &xdstypev3.TypedStruct{TypeUrl: "a/pick_first", Value: object(map[string]any{"shuffleAddressList": true})},
	}
}

func socket(host string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

func endpointAt(host string, port uint32) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socket(host, port)}}}
}

func localityOf(zone string, priority, weight uint32, es ...*endpointv3.LbEndpoint) *endpointv3.LocalityLbEndpoints {
	return &endpointv3.LocalityLbEndpoints{
		Locality: &corev3.Locality{Zone: zone}, Priority: priority, LoadBalancingWeight: wrapperspb.UInt32(weight), LbEndpoints: es,
	}
}

func ranges(prefix string, bits uint32) []*corev3.CidrRange {
	return []*corev3.CidrRange{{AddressPrefix: prefix, PrefixLen: wrapperspb.UInt32(bits)}}
}

func exact(s string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: s}}
}

func provider() *tlsv3.CertificateProviderPluginInstance {
	return &tlsv3.CertificateProviderPluginInstance{InstanceName: "there"}
}

func commonTLS(server bool) *tlsv3.CommonTlsContext {
	v := &tlsv3.CertificateValidationContext{CaCertificateProviderInstance: provider()}
	if !server {
		v.MatchSubjectAltNames = []*matcherv3.StringMatcher{exact("a")}
	}
	return &tlsv3.CommonTlsContext{
		TlsCertificateProviderInstance: provider(),
		ValidationContextType:          &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: v},
	}
}

func tlsSocket(m proto.Message) *corev3.TransportSocket {
	return &corev3.TransportSocket{Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(m)}}
}

func chain(match *listenerv3.FilterChainMatch, rules *rbacv3.RBAC) *listenerv3.FilterChain {
	return &listenerv3.FilterChain{
		FilterChainMatch: match,
		Filters: []*listenerv3.Filter{{Name: "hcm", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(&hcmv3.HttpConnectionManager{
			RouteSpecifier: byRDS(), HttpFilters: []*hcmv3.HttpFilter{httpFilter("rbac", rules), httpFilter("router", &routerv3.Router{})},
		})}}},
		TransportSocket: tlsSocket(&tlsv3.DownstreamTlsContext{CommonTlsContext: commonTLS(true), RequireClientCertificate: wrapperspb.Bool(true)}),
	}
}

func rbacRules() *rbacconfigv3.RBAC {
	header := &routev3.HeaderMatcher{Name: "x", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: exact("a")}}
	return &rbacconfigv3.RBAC{Policies: map[string]*rbacconfigv3.Policy{"p": {
		Permissions: []*rbacconfigv3.Permission{
			{Rule: &rbacconfigv3.Permission_Header{Header: header}},
			{Rule: &rbacconfigv3.Permission_NotRule{NotRule: &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_UrlPath{
				UrlPath: &matcherv3.PathMatcher{Rule: &matcherv3.PathMatcher_Path{Path: exact("/a")}},
			}}}},
			{Rule: &rbacconfigv3.Permission_AndRules{AndRules: &rbacconfigv3.Permission_Set{Rules: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}}}}},
			{Rule: &rbacconfigv3.Permission_DestinationIp{DestinationIp: ranges("10.0.0.0", 8)[0]}},
		},
		Principals: []*rbacconfigv3.Principal{
			{Identifier: &rbacconfigv3.Principal_Header{Header: header}},
			{Identifier: &rbacconfigv3.Principal_Authenticated_{Authenticated: &rbacconfigv3.Principal_Authenticated{PrincipalName: exact("a")}}},
			{Identifier: &rbacconfigv3.Principal_OrIds{OrIds: &rbacconfigv3.Principal_Set{Ids: []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_RemoteIp{RemoteIp: ranges("::", 0)[0]}}}}}},
		},
	}}, AuditLoggingOptions: &rbacconfigv3.RBAC_AuditLoggingOptions{LoggerConfigs: []*rbacconfigv3.RBAC_AuditLoggingOptions_AuditLoggerConfig{
		{AuditLogger: &corev3.TypedExtensionConfig{Name: "a", TypedConfig: packed(&auditv3.StdoutAuditLog{})}},
	}}}
}

func manyRoutes() *routev3.RouteConfiguration {
	weighted := routeTo("")
	weighted.Action = &routev3.Route_Route{Route: &routev3.RouteAction{
		ClusterSpecifier: &routev3.RouteAction_WeightedClusters{WeightedClusters: &routev3.WeightedCluster{Clusters: []*routev3.WeightedCluster_ClusterWeight{
			{Name: "a", Weight: wrapperspb.UInt32(1), TypedPerFilterConfig: map[string]*anypb.Any{"fault": packed(&faultv3.HTTPFault{})}},
			{Name: "b", Weight: wrapperspb.UInt32(2)},
		}}},
		RetryPolicy: retryPolicy(),
		HashPolicy: []*routev3.RouteAction_HashPolicy{{PolicySpecifier: &routev3.RouteAction_HashPolicy_Header_{Header: &routev3.RouteAction_HashPolicy_Header{
			HeaderName: "a", RegexRewrite: &matcherv3.RegexMatchAndSubstitute{Pattern: &matcherv3.RegexMatcher{Regex: "a"}},
		}}}},
	}}
	matching := routeTo("a")
	matching.Match = &routev3.RouteMatch{
		PathSpecifier: &routev3.RouteMatch_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: "a+"}},
		Headers: []*routev3.HeaderMatcher{
			{Name: "a", HeaderMatchSpecifier: &routev3.HeaderMatcher_PrefixMatch{PrefixMatch: "x"}},
			{Name: "b", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: exact("x")}},
		},
	}
	plugged := routeTo("")
	plugged.Action = &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_ClusterSpecifierPlugin{ClusterSpecifierPlugin: "p"}}}
	return &routev3.RouteConfiguration{
		Name: "x",
		VirtualHosts: []*routev3.VirtualHost{
			{Domains: []string{"*"}, Routes: []*routev3.Route{weighted, matching, plugged}, RetryPolicy: retryPolicy()},
			{Domains: []string{"b"}, Routes: []*routev3.Route{{Match: routeTo("").Match, Action: &routev3.Route_NonForwardingAction{}}}, TypedPerFilterConfig: map[string]*anypb.Any{
				"rbac":  packed(&rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: rbacRules()}}),
				"other": packed(&routev3.FilterConfig{IsOptional: true, Config: packed(&xdstypev3.TypedStruct{TypeUrl: "acme"})}),
			}},
		},
		ClusterSpecifierPlugins: []*routev3.ClusterSpecifierPlugin{{IsOptional: true, Extension: &corev3.TypedExtensionConfig{Name: "p", TypedConfig: packed(&routerv3.Router{})}}},
	}
}

func retryPolicy() *routev3.RetryPolicy {
	return &routev3.RetryPolicy{RetryOn: "unavailable", NumRetries: wrapperspb.UInt32(2), RetryBackOff: &routev3.RetryPolicy_RetryBackOff{
		BaseInterval: durationpb.New(time.Second), MaxInterval: durationpb.New(2 * time.Second),
	}}
}

func richCluster() *clusterv3.Cluster {
	c := edsCluster("x")
	c.LbPolicy = clusterv3.Cluster_LEAST_REQUEST
	c.LbConfig = &clusterv3.Cluster_LeastRequestLbConfig_{LeastRequestLbConfig: &clusterv3.Cluster_LeastRequestLbConfig{ChoiceCount: wrapperspb.UInt32(2)}}
	c.LrsServer = &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Self{Self: &corev3.SelfConfigSource{}}}
	c.TransportSocket = tlsSocket(&tlsv3.UpstreamTlsContext{CommonTlsContext: commonTLS(false)})
	c.OutlierDetection = &clusterv3.OutlierDetection{Interval: durationpb.New(time.Second), MaxEjectionPercent: wrapperspb.UInt32(10)}
	return c
}

func policiesOf(ms ...proto.Message) *clusterv3.LoadBalancingPolicy {
	l := &clusterv3.LoadBalancingPolicy{}
	for _, m := range ms {
		l.Policies = append(l.Policies, &clusterv3.LoadBalancingPolicy_Policy{TypedExtensionConfig: &corev3.TypedExtensionConfig{Name: "n", TypedConfig: packed(m)}})
	}
	return l
}

func withPolicies(c *clusterv3.Cluster, ms ...proto.Message) *clusterv3.Cluster {
	c.LoadBalancingPolicy = policiesOf(ms...)
	return c
}
