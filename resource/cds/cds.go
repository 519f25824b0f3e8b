// Package cds is the resource type of the Cluster Discovery Service: upstreams and how to reach
// them.
package cds

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/resource"
)

// Type is envoy.config.cluster.v3.Cluster, named by its field name. A state-of-the-world
// response holds all clusters (xDS protocol, "Deleting Resources").
var Type = resource.Proto[*clusterv3.Cluster](resource.Options{
	NameField:   1,
	FullState:   true,
	SotWMethod:  "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters",
	DeltaMethod: "/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters",
})
