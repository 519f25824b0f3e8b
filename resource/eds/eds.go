// Package eds is the resource type of the Endpoint Discovery Service: the addresses of a cluster.
//
//	assignment, err := watcher.Get(ctx, c, eds.Type, "orders")
package eds

import (
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/resource"
)

// Type is envoy.config.endpoint.v3.ClusterLoadAssignment, named by its field cluster_name.
var Type = resource.Proto[*endpointv3.ClusterLoadAssignment](resource.Options{
	NameField:   1,
	SotWMethod:  "/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints",
	DeltaMethod: "/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints",
})
