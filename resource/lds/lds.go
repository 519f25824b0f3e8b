// Package lds is the resource type of the Listener Discovery Service: where a proxy listens, and
// with which filters.
//
//	listener, err := watcher.Get(ctx, c, lds.Type, "ingress")
package lds

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/xdswatch/xdswatch/resource"
)

// Type is envoy.config.listener.v3.Listener, named by its field name. A state-of-the-world
// response holds all listeners (xDS protocol, "Deleting Resources").
var Type = resource.Proto[*listenerv3.Listener](resource.Options{
	NameField:   1,
	FullState:   true, // TYPE-2
	SotWMethod:  "/envoy.service.listener.v3.ListenerDiscoveryService/StreamListeners",
	DeltaMethod: "/envoy.service.listener.v3.ListenerDiscoveryService/DeltaListeners",
})
