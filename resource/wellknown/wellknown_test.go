package wellknown_test

import (
	"strings"
	"testing"

	annotationsv3 "github.com/envoyproxy/go-control-plane/envoy/annotations"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/extension/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/wellknown"
)

// types are the well-known types in their order: the message, the field that holds its
// name, and whether a state-of-the-world response holds all of them.
//
// spec: TYPE-1, TYPE-2
var types = []struct {
	short, message, nameField string
	fullState                 bool
}{
	{"lds", "envoy.config.listener.v3.Listener", "name", true},
	{"rds", "envoy.config.route.v3.RouteConfiguration", "name", false},
	{"srds", "envoy.config.route.v3.ScopedRouteConfiguration", "name", false},
	{"vhds", "envoy.config.route.v3.VirtualHost", "", false},
	{"cds", "envoy.config.cluster.v3.Cluster", "name", true},
	{"eds", "envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name", false},
	{"leds", "envoy.config.endpoint.v3.LbEndpoint", "", false},
	{"sds", "envoy.extensions.transport_sockets.tls.v3.Secret", "name", false},
	{"rtds", "envoy.service.runtime.v3.Runtime", "name", false},
	{"ecds", "envoy.config.core.v3.TypedExtensionConfig", "name", false},
}

func TestTypes(t *testing.T) {
	if got, want := len(wellknown.All()), len(types); got != want {
		t.Errorf("%d types, want %d", got, want)
	}
	for i, tt := range types {
		t.Run(tt.short, func(t *testing.T) {
			if got := wellknown.All()[i].Short; got != tt.short {
				t.Errorf("type %d is %s", i, got)
			}
			kind, ok := wellknown.ByShort(tt.short)
			if !ok {
				t.Fatal("is not known")
			}
			if got, want := kind.TypeURL(), "type.googleapis.com/"+tt.message; got != want {
				t.Errorf("type URL %q, want %q", got, want)
			}
			if got := kind.FullState(); got != tt.fullState {
				t.Errorf("full state %v, want %v", got, tt.fullState)
			}
			checkNameField(t, kind, tt.nameField)
			if e, ok := wellknown.ByTypeURL(kind.TypeURL()); !ok || e.Short != tt.short || e.Kind != kind {
				t.Errorf("by type URL: %v, %v", e, ok)
			}
		})
	}
}

func messageOf(t *testing.T, kind resource.AnyType) protoreflect.MessageType {
	t.Helper()
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(kind.TypeURL())
	if err != nil {
		t.Fatal(err)
	}
	return mt
}

// The name field is the one of that name in the message, and a single string.
func checkNameField(t *testing.T, kind resource.AnyType, name string) {
	t.Helper()
	if name == "" {
		if got := kind.NameField(); got != 0 {
			t.Errorf("name field %d, want none", got)
		}
		return
	}
	field := messageOf(t, kind).Descriptor().Fields().ByNumber(kind.NameField())
	if field == nil || string(field.Name()) != name ||
		field.Kind() != protoreflect.StringKind || field.Cardinality() == protoreflect.Repeated {
		t.Errorf("name field %d is %v, want the string %s", kind.NameField(), field, name)
	}
}

// Each type decodes the message that its type URL names.
func TestDecode(t *testing.T) {
	for _, e := range wellknown.All() {
		v, err := e.Kind.Decode(resource.Source{}, nil)
		if err != nil {
			t.Errorf("%s: %v", e.Short, err)
			continue
		}
		got := v.(proto.Message).ProtoReflect().Descriptor().FullName()
		if want := e.Kind.TypeURL()[len(resource.TypePrefix):]; string(got) != want {
			t.Errorf("%s decodes a %s, want a %s", e.Short, got, want)
		}
	}
}

// Each type has the streams of the service that the protos annotate with its message.
func TestMethods(t *testing.T) {
	for _, e := range wellknown.All() {
		t.Run(e.Short, func(t *testing.T) {
			sotw, delta := e.Kind.Methods()
			service := serviceOf(t, delta)
			options := service.Options()
			annotation := proto.GetExtension(options, annotationsv3.E_Resource).(*annotationsv3.ResourceAnnotation)
			if got, want := annotation.GetType(), e.Kind.TypeURL()[len(resource.TypePrefix):]; got != want {
				t.Errorf("%s serves %q, want %q", service.FullName(), got, want)
			}
			checkMethod(t, service, "Delta", "DeltaDiscoveryRequest", delta)
			checkMethod(t, service, "Stream", "DiscoveryRequest", sotw)
		})
	}
}

func serviceOf(t *testing.T, method string) protoreflect.ServiceDescriptor {
	t.Helper()
	name, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		t.Fatalf("method %q: %v", method, err)
	}
	return d.(protoreflect.ServiceDescriptor)
}

// checkMethod wants method to be the service's only bidirectional stream whose name has
// the prefix; "" if it has none.
func checkMethod(t *testing.T, service protoreflect.ServiceDescriptor, prefix, request, method string) {
	t.Helper()
	want := ""
	for i := range service.Methods().Len() {
		m := service.Methods().Get(i)
		if !strings.HasPrefix(string(m.Name()), prefix) {
			continue
		}
		want = "/" + string(service.FullName()) + "/" + string(m.Name())
		if !m.IsStreamingClient() || !m.IsStreamingServer() || string(m.Input().Name()) != request {
			t.Errorf("%s is no stream of %s", want, request)
		}
	}
	if method != want {
		t.Errorf("%s method %q, want %q", prefix, method, want)
	}
}

func TestUnknown(t *testing.T) {
	for _, short := range []string{"", "CDS", "xds"} {
		if kind, ok := wellknown.ByShort(short); ok || kind != nil {
			t.Errorf("ByShort(%q) = %v, %v", short, kind, ok)
		}
	}
	for _, url := range []string{"", "envoy.config.cluster.v3.Cluster", "type.googleapis.com/example.Thing"} {
		if e, ok := wellknown.ByTypeURL(url); ok || e.Kind != nil {
			t.Errorf("ByTypeURL(%q) = %v, %v", url, e, ok)
		}
	}
}
