// Package vhds is the resource type of the Virtual Host Discovery Service: the virtual hosts of a
// route configuration, one by one.
//
//	host, err := watcher.Get(ctx, c, vhds.Type, "shop/www.example")
package vhds

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/resource"
)

// Type is envoy.config.route.v3.VirtualHost. Its own field name is not its resource name:
// that is "<route configuration>/<virtual host>" and stands in the wrapper alone, which the
// incremental variant always sends. There is no other variant (Envoy docs, "VHDS").
var Type = resource.Proto[*routev3.VirtualHost](resource.Options{
	DeltaMethod: "/envoy.service.route.v3.VirtualHostDiscoveryService/DeltaVirtualHosts",
})
