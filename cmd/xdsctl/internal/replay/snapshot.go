// Package replay serves a state as a management server, through the caches of go-control-plane.
package replay

import (
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/recording"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
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
		rs[name] = packed(r)
	}
	return rs
}

// packed is a resource with its name and version as go-control-plane takes it, for any type; streams
// unpack it.
func packed(r recording.Resource) types.Resource { return withVersion(r) }

func withVersion(r recording.Resource) *discoveryv3.Resource {
	m := proto.CloneOf(r.Content)
	m.Version = r.Version
	return m
}

// unpacked is what packed made of a resource.
func unpacked(payload []byte) (*discoveryv3.Resource, error) {
	r := &discoveryv3.Resource{}
	return r, proto.Unmarshal(payload, r)
}

// plain is a resource as state of the world has it: wrapped only if it needs to be.
func plain(typeURL string, r *discoveryv3.Resource) (*anypb.Any, error) {
	a := r.GetResource()
	rs, err := resources.FromAny(a, "")
	named := err == nil && len(rs) == 1 && rs[0].Name == r.GetName() && a.GetTypeUrl() == typeURL
	if named && r.GetTtl() == nil && len(r.GetAliases()) == 0 && r.GetCacheControl() == nil && r.GetMetadata() == nil {
		return a, nil
	}
	return anypb.New(r)
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
