package testutil

import (
	"fmt"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// SotW makes a state-of-the-world response. A resource may be the message itself, an
// *anypb.Any to be sent as it stands, or a *discoveryv3.Resource, the wrapper, from
// [Wrapped]. It panics on a message that cannot be marshalled.
func SotW(typeURL, version, nonce string, resources ...proto.Message) *discoveryv3.DiscoveryResponse {
	resp := &discoveryv3.DiscoveryResponse{TypeUrl: typeURL, VersionInfo: version, Nonce: nonce}
	for _, r := range resources {
		resp.Resources = append(resp.Resources, toAny(r))
	}
	return resp
}

// Delta makes a delta response of the resources from [Wrapped] and the names removed.
func Delta(typeURL, nonce string, resources []*discoveryv3.Resource, removed ...string) *discoveryv3.DeltaDiscoveryResponse {
	return &discoveryv3.DeltaDiscoveryResponse{
		TypeUrl:          typeURL,
		Nonce:            nonce,
		Resources:        resources,
		RemovedResources: removed,
	}
}

// Wrapped makes a resource with its name and version outside. A nil message leaves the
// resource unset, as in the heartbeat of a TTL. It panics on a message that cannot be
// marshalled.
func Wrapped(name, version string, m proto.Message) *discoveryv3.Resource {
	r := &discoveryv3.Resource{Name: name, Version: version}
	if m != nil {
		r.Resource = toAny(m)
	}
	return r
}

func toAny(m proto.Message) *anypb.Any {
	if a, ok := m.(*anypb.Any); ok {
		return a
	}
	a := new(anypb.Any)
	if err := anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		panic(fmt.Sprintf("testutil: %s: %v", m.ProtoReflect().Descriptor().FullName(), err))
	}
	return a
}
