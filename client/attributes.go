package client

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// Attributes are what a server sends beside a resource's value, in the Resource of
// envoy.service.discovery.v3: delta always has it, and in state of the world resources may be
// wrapped in it. They are shared between watches, read only.
//
// A change of DoNotCache or Metadata alone is an update of the resource, with the same value;
// another order of map entries in Metadata is no change. Aliases depend on the subscriptions, so
// a change of them alone makes no event; the next event and [Client.Dump] have the newest. The
// client ignores all of them in a heartbeat.
type Attributes struct {
	// Aliases are other names of the resource, as the server lists them; the one that the
	// program asked for may be among them.
	Aliases []string
	// DoNotCache asks proxies of xDS not to cache the resource (cache_control). The client
	// holds it like any other.
	DoNotCache bool
	// Metadata is additional information on the resource; nil if there is none.
	Metadata *corev3.Metadata
}

// attributesOf is nil if nothing was said. Metadata was seen to parse when it was accepted.
func attributesOf(a *wire.Attributes) *Attributes {
	if a == nil {
		return nil
	}
	// RELAY-2: a program that is a proxy is told what it must not cache.
	own := &Attributes{DoNotCache: a.DoNotCache}
	for _, name := range a.Aliases {
		own.Aliases = append(own.Aliases, string(name))
	}
	if len(a.Metadata) > 0 {
		own.Metadata = &corev3.Metadata{}
		_ = proto.Unmarshal(a.Metadata, own.Metadata)
	}
	return own
}
