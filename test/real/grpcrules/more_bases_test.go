package grpcrules

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	localityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// legacyRing is a ring hash without load_balancing_policy.
func legacyRing() *clusterv3.Cluster {
	c := edsCluster("x")
	c.LbPolicy = clusterv3.Cluster_RING_HASH
	c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{
		MinimumRingSize: wrapperspb.UInt64(100), MaximumRingSize: wrapperspb.UInt64(2000),
	}}
	c.LrsReportEndpointMetrics = []string{"named_metrics.a", "cpu_utilization"}
	return c
}

func withOutliers(c *clusterv3.Cluster) *clusterv3.Cluster {
	percent := wrapperspb.UInt32(50)
	c.OutlierDetection = &clusterv3.OutlierDetection{
		Interval: durationpb.New(time.Second), BaseEjectionTime: durationpb.New(time.Second), MaxEjectionTime: durationpb.New(time.Minute),
		MaxEjectionPercent: percent, EnforcingSuccessRate: percent, EnforcingFailurePercentage: percent, FailurePercentageThreshold: percent,
		SuccessRateMinimumHosts: percent, SuccessRateRequestVolume: percent, SuccessRateStdevFactor: percent,
		FailurePercentageMinimumHosts: percent, FailurePercentageRequestVolume: percent,
	}
	return c
}

// overridden are routes with overrides of filters on each level, and all that a retry and a hash may have.
func overridden() *routev3.RouteConfiguration {
	overrides := func() map[string]*anypb.Any {
		return map[string]*anypb.Any{
			"fault": packed(&faultv3.HTTPFault{Abort: &faultv3.FaultAbort{
				ErrorType: &faultv3.FaultAbort_HttpStatus{HttpStatus: 503}, Percentage: &typev3.FractionalPercent{Numerator: 5},
			}}),
			"rbac": packed(&routev3.FilterConfig{Config: packed(&rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: rbacRules()}})}),
		}
	}
	r := routeTo("a")
	r.TypedPerFilterConfig = overrides()
	action := r.GetRoute()
	action.RetryPolicy = retryPolicy()
	action.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{MaxStreamDuration: durationpb.New(time.Second), GrpcTimeoutHeaderMax: durationpb.New(0)}
	action.HostRewriteSpecifier = &routev3.RouteAction_AutoHostRewrite{AutoHostRewrite: wrapperspb.Bool(true)}
	action.HashPolicy = []*routev3.RouteAction_HashPolicy{
		{PolicySpecifier: &routev3.RouteAction_HashPolicy_FilterState_{FilterState: &routev3.RouteAction_HashPolicy_FilterState{Key: "io.grpc.channel_id"}}, Terminal: true},
		{PolicySpecifier: &routev3.RouteAction_HashPolicy_Cookie_{Cookie: &routev3.RouteAction_HashPolicy_Cookie{Name: "c"}}},
	}
	r.Match.RuntimeFraction = &corev3.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{Numerator: 5}}
	r.Match.Headers = []*routev3.HeaderMatcher{
		{Name: "a", HeaderMatchSpecifier: &routev3.HeaderMatcher_RangeMatch{RangeMatch: &typev3.Int64Range{Start: 1, End: 2}}},
		{Name: "b", HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}, InvertMatch: true},
	}
	return &routev3.RouteConfiguration{
		Name: "x", TypedPerFilterConfig: overrides(),
		VirtualHosts: []*routev3.VirtualHost{{Domains: []string{"*"}, Routes: []*routev3.Route{r}, TypedPerFilterConfig: overrides()}},
	}
}

// described is an assignment with metadata, hostnames and more addresses.
func described() *endpointv3.ClusterLoadAssignment {
	metadata := func() *corev3.Metadata {
		return &corev3.Metadata{
			FilterMetadata:      map[string]*structpb.Struct{"envoy.lb": object(map[string]any{"hash_key": "a"})},
			TypedFilterMetadata: map[string]*anypb.Any{"envoy.http11_proxy_transport_socket.proxy_address": packed(socket("10.0.0.1", 1))},
		}
	}
	e := endpointAt("10.0.0.1", 1)
	e.Metadata, e.HealthStatus, e.LoadBalancingWeight = metadata(), corev3.HealthStatus_DRAINING, wrapperspb.UInt32(1)
	e.GetEndpoint().Hostname = "a"
	e.GetEndpoint().AdditionalAddresses = []*endpointv3.Endpoint_AdditionalAddress{{Address: socket("10.0.0.2", 1)}, {Address: socket("::1", 1)}}
	l := localityOf("a", 0, 1, e, endpointAt("10.0.0.3", 1))
	l.Metadata = metadata()
	return &endpointv3.ClusterLoadAssignment{
		ClusterName: "x", Endpoints: []*endpointv3.LocalityLbEndpoints{l, localityOf("b", 0, 4294967294, endpointAt("10.0.0.4", 1))},
		Policy: &endpointv3.ClusterLoadAssignment_Policy{
			DropOverloads:          []*endpointv3.ClusterLoadAssignment_Policy_DropOverload{{DropPercentage: &typev3.FractionalPercent{Numerator: 5, Denominator: typev3.FractionalPercent_MILLION}}},
			OverprovisioningFactor: wrapperspb.UInt32(140), EndpointStaleAfter: durationpb.New(time.Second),
		},
	}
}

// policyOf is a policy with children.
func policyOf(children ...proto.Message) *localityv3.WrrLocality {
	return &localityv3.WrrLocality{EndpointPickingPolicy: policiesOf(children...)}
}
