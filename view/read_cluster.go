package view

import (
	"errors"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	"google.golang.org/protobuf/proto"
)

// clusterRead is what a Cluster names.
type clusterRead struct {
	kind      Kind
	eds       string // name of the assignment
	edsSource *corev3.ConfigSource
	children  []string
	list      *aggregatev3.AggregateClusterResource // where the children are a resource of their own
	needs     []Dependency
	named     names // clusters that hooks found
	err       error // it cannot be used
	note      error
}

func readCluster(c *clusterv3.Cluster, h *hooks) (r clusterRead) {
	if custom := c.GetClusterType(); custom != nil {
		r.custom(custom)
	} else {
		switch c.GetType() {
		case clusterv3.Cluster_EDS: // VIEW-12
			r.kind = KindEDS
			r.edsSource = c.GetEdsClusterConfig().GetEdsConfig()
			if r.eds = c.GetEdsClusterConfig().GetServiceName(); r.eds == "" {
				r.eds = c.GetName()
			}
		case clusterv3.Cluster_STATIC:
			r.kind = KindStatic
		case clusterv3.Cluster_STRICT_DNS, clusterv3.Cluster_LOGICAL_DNS:
			r.kind = KindDNS
		default:
			r.kind = KindOther
		}
	}
	if r.err == nil {
		found := h.walk(c)
		r.needs, r.named, r.note = found.needs, found.clusters, found.err
	}
	return r
}

// custom reads a cluster_type.
func (r *clusterRead) custom(t *clusterv3.Cluster_CustomClusterType) {
	r.kind = KindOther
	config := t.GetTypedConfig()
	switch {
	case config.MessageIs((*dnsv3.DnsCluster)(nil)):
		r.kind = KindDNS
	case config.MessageIs((*aggregatev3.ClusterConfig)(nil)):
		var aggregate aggregatev3.ClusterConfig
		r.kind = KindAggregate
		if r.err = unmarshal(config, &aggregate); r.err == nil {
			r.children, r.err = childrenOf(&aggregate)
		}
	case config.MessageIs((*aggregatev3.AggregateClusterResource)(nil)): // VIEW-36
		r.kind = KindAggregate
		r.list = &aggregatev3.AggregateClusterResource{}
		if r.err = unmarshal(config, r.list); r.err == nil && r.list.GetResourceName() == "" {
			r.err = errors.New("an aggregate cluster names no resource")
		}
	}
}

var errNoMember = errors.New("an aggregate cluster has no members")

func childrenOf(c *aggregatev3.ClusterConfig) ([]string, error) {
	if len(c.GetClusters()) == 0 { // VIEW-35
		return nil, errNoMember
	}
	return c.GetClusters(), nil
}

// otherSocket says whether the transport socket of a cluster changed.
func otherSocket(a, b *clusterv3.Cluster) bool {
	if !proto.Equal(a.GetTransportSocket(), b.GetTransportSocket()) || len(a.GetTransportSocketMatches()) != len(b.GetTransportSocketMatches()) {
		return true
	}
	for i, m := range a.GetTransportSocketMatches() {
		if !proto.Equal(m, b.GetTransportSocketMatches()[i]) {
			return true
		}
	}
	return false
}
