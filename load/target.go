package load

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/client"
)

// Target says what is counted together, and who gets the reports.
type Target struct {
	// Server is the URI of the management server that sent the cluster (Event.Server, or that of
	// view.Cluster's Origin); it gets the reports.
	Server  string
	Cluster string // name of the cluster
	Service string // name of its EDS service, if that is another (eds_cluster_config.service_name)
	// Metrics are those of the endpoints' ORCA reports that are reported too
	// (lrs_report_endpoint_metrics, gRFC A85): "cpu_utilization", "mem_utilization",
	// "application_utilization", "named_metrics.NAME", "named_metrics.*". Others are ignored.
	Metrics []string
}

// TargetOf is the target of a cluster that the server, by its URI, has sent. It is the zero Target,
// for which nothing is counted, unless the cluster's lrs_server is "self", which is all that gRPC
// supports too (gRFC A47); see [CheckCluster].
func TargetOf(server string, c *clusterv3.Cluster) Target {
	// LRS-1: reports go to the server that sent the cluster.
	if c.GetLrsServer().GetSelf() == nil {
		return Target{}
	}
	return Target{
		Server: server, Cluster: c.GetName(), Service: c.GetEdsClusterConfig().GetServiceName(),
		Metrics: c.GetLrsReportEndpointMetrics(),
	}
}

// CheckCluster refuses a cluster whose lrs_server is another than "self", as gRPC does (gRFC A47),
// for [github.com/xdswatch/xdswatch/resource.With]. Without it such a cluster is used, and nothing
// is reported for it.
func CheckCluster(c *clusterv3.Cluster) error {
	// LRS-g: another server is refused.
	if s := c.GetLrsServer(); s != nil && s.GetSelf() == nil {
		return fmt.Errorf("lrs_server is %T, only self is supported", s.GetConfigSourceSpecifier())
	}
	return nil
}

// Guard is [CheckCluster] for Config.Guards of a client, where the type of clusters is that of
// another package, as in a view. It refuses the whole response.
func Guard(p *client.Proposal) error {
	for _, change := range p.Changed {
		if c, ok := change.Value.(*clusterv3.Cluster); ok {
			if err := CheckCluster(c); err != nil {
				return fmt.Errorf("cluster %q: %w", change.Name, err)
			}
		}
	}
	return nil
}
