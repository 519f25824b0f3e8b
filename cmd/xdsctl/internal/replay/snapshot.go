// Package replay serves a state as a management server, through the caches of go-control-plane.
package replay

import (
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/recording"
)

// nothing is the version of a type of which there is nothing.
const nothing = "0"

// snapshot is a state as go-control-plane wants it.
type snapshot struct{ recording.State }

// GetVersion implements [cache.ResourceSnapshot].
func (s snapshot) GetVersion(typeURL string) string {
	if t, ok := s.State[typeURL]; ok {
		return t.Version
	}
	return nothing
}

// GetResources implements [cache.ResourceSnapshot].
func (s snapshot) GetResources(typeURL string) map[string]types.Resource {
	rs := make(map[string]types.Resource, len(s.State[typeURL].Resources))
	for name, r := range s.State[typeURL].Resources {
		rs[name] = opaque(r.Payload)
	}
	return rs
}

// opaque is a message that is encoded as these bytes, whatever they are.
func opaque(payload []byte) types.Resource {
	m := &emptypb.Empty{}
	m.ProtoReflect().SetUnknown(payload)
	return m
}

// GetResourcesAndTTL implements [cache.ResourceSnapshot].
func (s snapshot) GetResourcesAndTTL(typeURL string) map[string]types.ResourceWithTTL {
	rs := make(map[string]types.ResourceWithTTL, len(s.State[typeURL].Resources))
	for name, r := range s.GetResources(typeURL) {
		rs[name] = types.ResourceWithTTL{Resource: r}
	}
	return rs
}

// ConstructVersionMap implements [cache.ResourceSnapshot].
func (s snapshot) ConstructVersionMap() error { return nil }

// GetVersionMap implements [cache.ResourceSnapshot].
func (s snapshot) GetVersionMap(typeURL string) map[string]string {
	vs := make(map[string]string, len(s.State[typeURL].Resources))
	for name, r := range s.State[typeURL].Resources {
		vs[name] = r.Version
	}
	return vs
}
