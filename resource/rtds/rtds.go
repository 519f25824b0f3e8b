// Package rtds is the resource type of the Runtime Discovery Service: layers of runtime settings.
//
//	layer, err := watcher.Get(ctx, c, rtds.Type, "flags")
package rtds

import (
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"

	"github.com/xdswatch/xdswatch/resource"
)

// Type is envoy.service.runtime.v3.Runtime, named by its field name.
var Type = resource.Proto[*runtimev3.Runtime](resource.Options{
	NameField:   1,
	SotWMethod:  "/envoy.service.runtime.v3.RuntimeDiscoveryService/StreamRuntime",
	DeltaMethod: "/envoy.service.runtime.v3.RuntimeDiscoveryService/DeltaRuntime",
})
