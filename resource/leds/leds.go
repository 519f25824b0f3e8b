// Package leds is the resource type of the Locality Endpoint Discovery Service: the endpoints of a
// locality, one by one.
//
//	endpoint, err := watcher.Get(ctx, c, leds.Type, "xdstp://prod/envoy.config.endpoint.v3.LbEndpoint/a/1")
package leds

import (
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/resource"
)

// Type is envoy.config.endpoint.v3.LbEndpoint. It has no name of its own: the wrapper
// names it. Its service has the incremental variant only.
var Type = resource.Proto[*endpointv3.LbEndpoint](resource.Options{
	DeltaMethod: "/envoy.service.endpoint.v3.LocalityEndpointDiscoveryService/DeltaLocalityEndpoints",
})
