// Package cds is the resource type of the Cluster Discovery Service: upstreams and how to reach
// them.
//
//	cluster, err := watcher.Get(ctx, c, cds.Type, "orders")
package cds

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Type is envoy.config.cluster.v3.Cluster, named by its field name. A state-of-the-world
// response holds all clusters (xDS protocol, "Deleting Resources"). A cluster with a
// structured name whose endpoints come by EDS is invalid without
// eds_cluster_config.service_name, since its own name is of another type than theirs (gRFC
// A47).
var Type = resource.Custom(message.TypeURL(), options, decode)

var (
	message = resource.Proto[*clusterv3.Cluster](options)
	options = resource.Options{
		NameField:   1,
		FullState:   true, // TYPE-2
		SotWMethod:  "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters",
		DeltaMethod: "/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters",
	}
)

func decode(src resource.Source, b []byte) (*clusterv3.Cluster, error) {
	v, err := message.Decode(src, b)
	if err != nil {
		return nil, err
	}
	c := v.(*clusterv3.Cluster)
	// FED-2: a structured name is no name of endpoints.
	if c.GetType() == clusterv3.Cluster_EDS && c.GetEdsClusterConfig().GetServiceName() == "" && xdstp.IsXDSTP(c.GetName()) {
		return nil, fmt.Errorf("eds_cluster_config.service_name is required, because the name of the cluster (%q) begins with \"xdstp:\"", c.GetName())
	}
	return c, nil
}
