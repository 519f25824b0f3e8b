// Package sds is the resource type of the Secret Discovery Service: certificates, keys and roots of
// trust. Events and errors never print what is in a secret.
//
//	secret, err := watcher.Get(ctx, c, sds.Type, "roots")
package sds

import (
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/xdswatch/xdswatch/resource"
)

// Type is envoy.extensions.transport_sockets.tls.v3.Secret, named by its field name.
var Type = resource.Proto[*tlsv3.Secret](resource.Options{
	NameField:   1,
	SotWMethod:  "/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets",
	DeltaMethod: "/envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets",
})
