package resources

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/resource/sds"
)

// Reference is the name of another resource, and the field that has it.
type Reference struct{ Type, Name, Path string }

// References finds the route configurations, clusters, endpoints and secrets that a resource names
// and the management server is to send, in the order of the message.
func References(m proto.Message) (found []Reference) {
	Walk(m, func(path string, m proto.Message, _ bool) {
		add := func(typeURL, name, field string) {
			if name != "" {
				found = append(found, Reference{typeURL, name, Join(path, field)})
			}
		}
		clusterAt := func(name, field string) { add(cds.Type.TypeURL(), name, field) }
		switch v := m.(type) {
		case *hcmv3.Rds:
			if sent(v.GetConfigSource()) {
				add(rds.Type.TypeURL(), v.GetRouteConfigName(), "routeConfigName")
			}
		case *routev3.ScopedRouteConfiguration:
			add(rds.Type.TypeURL(), v.GetRouteConfigurationName(), "routeConfigurationName")
		case *routev3.RouteAction:
			clusterAt(v.GetCluster(), "cluster")
		case *routev3.WeightedCluster_ClusterWeight:
			clusterAt(v.GetName(), "name")
		case *routev3.RouteAction_RequestMirrorPolicy:
			clusterAt(v.GetCluster(), "cluster")
		case *tcpv3.TcpProxy:
			clusterAt(v.GetCluster(), "cluster")
		case *tcpv3.TcpProxy_WeightedCluster_ClusterWeight:
			clusterAt(v.GetName(), "name")
		case *corev3.GrpcService_EnvoyGrpc: // of a filter, an access log and the like
			clusterAt(v.GetClusterName(), "clusterName")
		case *corev3.HttpUri:
			clusterAt(v.GetCluster(), "cluster")
		case *aggregatev3.ClusterConfig:
			for _, name := range v.GetClusters() {
				clusterAt(name, "clusters")
			}
		case *clusterv3.Cluster:
			if v.GetType() == clusterv3.Cluster_EDS && v.GetClusterType() == nil && sent(v.GetEdsClusterConfig().GetEdsConfig()) {
				add(endpointsOf(v))
			}
		case *tlsv3.SdsSecretConfig:
			if v.GetSdsConfig() != nil && sent(v.GetSdsConfig()) {
				add(sds.Type.TypeURL(), v.GetName(), "name")
			}
		}
	})
	return found
}

// endpointsOf is the name of a cluster's endpoints, and the field that has it.
func endpointsOf(c *clusterv3.Cluster) (typeURL, name, field string) {
	if name := c.GetEdsClusterConfig().GetServiceName(); name != "" {
		return eds.Type.TypeURL(), name, "edsClusterConfig.serviceName"
	}
	return eds.Type.TypeURL(), c.GetName(), "name"
}

// sent says that a source is the management server itself, which nil is too.
func sent(s *corev3.ConfigSource) bool {
	return s == nil || s.GetAds() != nil || s.GetSelf() != nil
}
