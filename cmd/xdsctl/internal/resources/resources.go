// Package resources reads resources from files, and finds what a resource names.
package resources

import (
	"cmp"
	"errors"
	"fmt"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	_ "github.com/xdswatch/xdswatch/cmd/xdsctl/internal/envoytypes" // so that what stands in an Any can be read
	"github.com/xdswatch/xdswatch/resource/resourcejson"
	"github.com/xdswatch/xdswatch/resource/wellknown"
)

// Resource is one resource.
type Resource struct {
	Type, Name string // Type is a URL
	Version    string
	Message    proto.Message        // nil if the type is not known
	Raw        []byte               // of one whose type is not known
	File       string               // that it was read from
	TTL        *durationpb.Duration // nil of one that stays
}

// FromAny are the resources in an Any: itself, or what a Resource, a response or a config dump in
// it contains.
func FromAny(a *anypb.Any, version string) ([]Resource, error) {
	m, err := resourcejson.UnmarshalAny(a)
	switch {
	case errors.Is(err, protoregistry.NotFound):
		return []Resource{{Type: a.GetTypeUrl(), Version: version, Raw: a.GetValue()}}, nil
	case err != nil:
		return nil, fmt.Errorf("not a message of type %s", a.GetTypeUrl())
	}
	return FromMessage(m, a.GetTypeUrl(), version)
}

// FromMessage is FromAny for a message that is decoded.
func FromMessage(m proto.Message, typeURL, version string) ([]Resource, error) {
	switch m := m.(type) {
	case *discoveryv3.DiscoveryResponse:
		return eachOf(m.GetResources(), m.GetTypeUrl(), m.GetVersionInfo(), FromAny)
	case *discoveryv3.DeltaDiscoveryResponse:
		var all []Resource
		for _, r := range m.GetResources() {
			rs, err := fromWrapper(r)
			if err != nil {
				return nil, err
			}
			all = append(all, rs...)
		}
		return all, nil
	case *discoveryv3.Resource:
		return fromWrapper(m)
	case *adminv3.ConfigDump:
		return fromDump(m)
	}
	return []Resource{{Type: typeURL, Name: nameOf(typeURL, m), Version: version, Message: m}}, nil
}

// fromWrapper gives the resource the name and the version of its wrapper.
func fromWrapper(r *discoveryv3.Resource) ([]Resource, error) {
	if r.GetResource() == nil {
		return nil, fmt.Errorf("the Resource %q holds no resource", r.GetName())
	}
	rs, err := FromAny(r.GetResource(), r.GetVersion())
	if len(rs) == 1 {
		rs[0].Name, rs[0].TTL = cmp.Or(r.GetName(), rs[0].Name), r.GetTtl()
	}
	return rs, err
}

// fromDump finds the resources of Envoy's config dump. Of a resource that is there in several
// states the first counts: the active one.
func fromDump(d *adminv3.ConfigDump) (all []Resource, err error) {
	seen := map[[2]string]bool{}
	for _, part := range d.GetConfigs() {
		m, err := part.UnmarshalNew()
		if err != nil {
			continue // of another Envoy
		}
		for _, r := range Inside(m) {
			if id := [2]string{r.Type, r.Name}; !seen[id] {
				seen[id] = true
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// Inside are the resources in a part of a config dump; those that cannot be read are left out.
func Inside(m proto.Message) (all []Resource) {
	each(m.ProtoReflect(), func(a *anypb.Any, version string) {
		if rs, err := FromAny(a, version); err == nil {
			all = append(all, rs...)
		}
	})
	return all
}

// each calls f with the well-known resources in a part of a dump, but not with refused ones, and
// with the version that stands beside or above them.
func each(m protoreflect.Message, f func(a *anypb.Any, version string)) {
	var walk func(m protoreflect.Message, version string)
	walk = func(m protoreflect.Message, version string) {
		switch v := m.Interface().(type) {
		case *anypb.Any:
			if _, known := wellknown.ByTypeURL(v.GetTypeUrl()); known {
				f(v, version)
			}
			return
		case *adminv3.UpdateFailureState:
			return
		}
		if fd := m.Descriptor().Fields().ByName("version_info"); fd != nil {
			version = m.Get(fd).String()
		}
		fds := m.Descriptor().Fields()
		for i := range fds.Len() {
			fd := fds.Get(i)
			switch {
			case fd.Message() == nil || fd.IsMap() || !m.Has(fd):
			case fd.IsList():
				for j := range m.Get(fd).List().Len() {
					walk(m.Get(fd).List().Get(j).Message(), version)
				}
			default:
				walk(m.Get(fd).Message(), version)
			}
		}
	}
	walk(m, "")
}

// nameOf is the name that a resource has itself; "" if its type has none.
func nameOf(typeURL string, m proto.Message) string {
	fields := m.ProtoReflect().Descriptor().Fields()
	fd := fields.ByName("name")
	if e, ok := wellknown.ByTypeURL(typeURL); ok {
		fd = fields.ByNumber(e.Kind.NameField())
	}
	if fd == nil || fd.Kind() != protoreflect.StringKind || fd.IsList() {
		return ""
	}
	return m.ProtoReflect().Get(fd).String()
}
