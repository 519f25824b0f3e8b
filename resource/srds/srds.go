// Package srds is the resource type of the Scoped Route Discovery Service: which route
// configuration a request is looked up in.
//
//	scope, err := watcher.Get(ctx, c, srds.Type, "tenant-1")
package srds

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/resource"
)

// Type is envoy.config.route.v3.ScopedRouteConfiguration, named by its field name.
var Type = resource.Proto[*routev3.ScopedRouteConfiguration](resource.Options{
	NameField:   1,
	SotWMethod:  "/envoy.service.route.v3.ScopedRoutesDiscoveryService/StreamScopedRoutes",
	DeltaMethod: "/envoy.service.route.v3.ScopedRoutesDiscoveryService/DeltaScopedRoutes",
})
