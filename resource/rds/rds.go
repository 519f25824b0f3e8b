// Package rds is the resource type of the Route Discovery Service: which cluster a request goes to.
//
//	routes, err := watcher.Get(ctx, c, rds.Type, "shop")
package rds

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/resource"
)

// Type is envoy.config.route.v3.RouteConfiguration, named by its field name.
var Type = resource.Proto[*routev3.RouteConfiguration](resource.Options{
	NameField:   1,
	SotWMethod:  "/envoy.service.route.v3.RouteDiscoveryService/StreamRoutes",
	DeltaMethod: "/envoy.service.route.v3.RouteDiscoveryService/DeltaRoutes",
})
