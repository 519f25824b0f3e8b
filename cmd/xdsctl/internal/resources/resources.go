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
	Scope      string               // of the process that has it: another set of resources than its other scopes
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
		return FromDump(m).Contents(), nil
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
