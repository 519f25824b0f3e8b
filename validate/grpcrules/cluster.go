package grpcrules

import (
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// cluster judges a cluster (gRFC A27, A29, A37, A42, A48, A50, A52, A83).
func (j *judge) cluster(c *clusterv3.Cluster) {
	j.lbPolicy(c)
	if len(c.GetTransportSocketMatches()) > 0 {
		j.refuses(RuleSocketMatches, "transportSocketMatches", "the field is not supported")
	}
	j.upstreamTLS(c.GetTransportSocket())
	j.outlierDetection(c.GetOutlierDetection())
	if c.GetLoadBalancingPolicy() != nil {
		j.policyList("loadBalancingPolicy", c.GetLoadBalancingPolicy(), 0)
	}
	if lrs := c.GetLrsServer(); lrs != nil && lrs.GetSelf() == nil {
		j.refuses(RuleLRSServer, "lrsServer", "the server of load reports is not self")
	}
	j.clusterType(c)
	if j.GCPAuthentication {
		j.metadata("", c.GetMetadata())
	}
}

func (j *judge) lbPolicy(c *clusterv3.Cluster) {
	switch c.GetLbPolicy() {
	case clusterv3.Cluster_ROUND_ROBIN:
	case clusterv3.Cluster_RING_HASH:
		if c.GetRingHashLbConfig().GetHashFunction() != clusterv3.Cluster_RingHashLbConfig_XX_HASH {
			j.refuses(RuleRingHash, "ringHashLbConfig.hashFunction", "the hash function is not XX_HASH")
		}
	case clusterv3.Cluster_LEAST_REQUEST:
		if n := c.GetLeastRequestLbConfig().GetChoiceCount(); n != nil && n.GetValue() < 2 {
			j.refuses(RuleLeastRequest, "leastRequestLbConfig.choiceCount", "choice_count is less than 2")
		}
	default:
		j.refuses(RuleLBPolicy, "lbPolicy", "the policy is not ROUND_ROBIN, RING_HASH or LEAST_REQUEST, which has to be one also beside load_balancing_policy")
	}
}

func (j *judge) outlierDetection(d *clusterv3.OutlierDetection) {
	duration := func(field string, v *durationpb.Duration) {
		if v != nil && (v.CheckValid() != nil || v.AsDuration() < 0) {
			j.refuses(RuleOutlier, "outlierDetection."+field, "the duration is not valid, or negative")
		}
	}
	percentage := func(field string, v *wrapperspb.UInt32Value) {
		if v.GetValue() > 100 {
			j.refuses(RuleOutlier, "outlierDetection."+field, "the percentage is more than 100")
		}
	}
	duration("interval", d.GetInterval())
	duration("baseEjectionTime", d.GetBaseEjectionTime())
	duration("maxEjectionTime", d.GetMaxEjectionTime())
	percentage("maxEjectionPercent", d.GetMaxEjectionPercent())
	percentage("enforcingSuccessRate", d.GetEnforcingSuccessRate())
	percentage("failurePercentageThreshold", d.GetFailurePercentageThreshold())
	percentage("enforcingFailurePercentage", d.GetEnforcingFailurePercentage())
}

// aggregate is the name by which gRPC knows an aggregate cluster, whatever the type of its
// configuration.
const aggregate = "envoy.clusters.aggregate"

func (j *judge) clusterType(c *clusterv3.Cluster) {
	switch {
	case c.GetType() == clusterv3.Cluster_EDS:
		if !fromADSOrSelf(c.GetEdsClusterConfig().GetEdsConfig()) {
			j.refuses(RuleEDSSource, "edsClusterConfig.edsConfig", "the source of endpoints is neither ADS nor self")
		}
		// FED-2: as the decoder has it.
		if strings.HasPrefix(c.GetName(), "xdstp:") && c.GetEdsClusterConfig().GetServiceName() == "" {
			j.refuses(RuleEDSServiceName, "edsClusterConfig.serviceName", "the cluster has a structured name and no service_name")
		}
	case c.GetType() == clusterv3.Cluster_LOGICAL_DNS:
		j.logicalDNS(c)
	case c.GetClusterType().GetName() == aggregate:
		config := &aggregatev3.ClusterConfig{}
		if j.read("clusterType.typedConfig", c.GetClusterType().GetTypedConfig(), config) && len(config.GetClusters()) == 0 {
			j.refuses(RuleAggregate, "clusterType.typedConfig.clusters", "the aggregate names no cluster")
		}
	default:
		j.refuses(RuleClusterType, "type", "the cluster is neither EDS nor LOGICAL_DNS nor envoy.clusters.aggregate")
	}
}

// ADS-3: gRPC knows no other sources.
func fromADSOrSelf(s *corev3.ConfigSource) bool { return s.GetAds() != nil || s.GetSelf() != nil }

func (j *judge) logicalDNS(c *clusterv3.Cluster) {
	refuses := func(path, message string) { j.refuses(RuleLogicalDNS, path, message) }
	localities := c.GetLoadAssignment().GetEndpoints()
	if len(localities) != 1 {
		refuses("loadAssignment.endpoints", "there is not exactly one locality")
		return
	}
	path := "loadAssignment.endpoints[0].lbEndpoints"
	if len(localities[0].GetLbEndpoints()) != 1 {
		refuses(path, "there is not exactly one endpoint")
		return
	}
	path += "[0].endpoint.address.socketAddress"
	s := localities[0].GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress()
	if s == nil {
		refuses(path, "there is no socket address")
		return
	}
	if s.GetResolverName() != "" {
		refuses(path+".resolverName", "a resolver is named")
	}
	if s.GetAddress() == "" {
		refuses(path+".address", "there is no host")
	}
	if s.GetPortValue() == 0 {
		refuses(path+".portValue", "there is no port")
	}
}
