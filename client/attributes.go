package client

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// Attributes are what a server says beside a resource's value, in the Resource of
// envoy.service.discovery.v3 that delta has and that may wrap the resources of the other
// variant. They are shared between watches, read only.
//
// A change of DoNotCache or Metadata alone is an update of the resource, with the value as
// it was; Metadata that differs in the order of map entries has not changed. Aliases follow
// what was asked for, so a change of them alone is told to nobody; the next event and
// [Client.Dump] have the newest. What a heartbeat says of any of them does not count.
type Attributes struct {
	// Aliases are other names of the resource, as the server lists them; the one that was
	// asked for may be among them.
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
