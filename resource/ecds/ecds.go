// Package ecds is the resource type of the Extension Config Discovery Service: the configuration of
// single filters and other extensions.
//
//	config, err := watcher.Get(ctx, c, ecds.Type, "router")
package ecds

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/xdswatch/xdswatch/resource"
)

// Type is envoy.config.core.v3.TypedExtensionConfig, named by its field name.
var Type = resource.Proto[*corev3.TypedExtensionConfig](resource.Options{
	NameField:   1,
	SotWMethod:  "/envoy.service.extension.v3.ExtensionConfigDiscoveryService/StreamExtensionConfigs",
	DeltaMethod: "/envoy.service.extension.v3.ExtensionConfigDiscoveryService/DeltaExtensionConfigs",
})
