package restjson

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/internal/apiv2"
	"github.com/xdswatch/xdswatch/internal/wire"
)

const clusterURL = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

func pack(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	var a anypb.Any
	if err := anypb.MarshalFrom(&a, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		t.Fatal(err)
	}
	return &a
}

func TestRequest(t *testing.T) {
	want := &discoveryv3.DiscoveryRequest{
		VersionInfo: "1", TypeUrl: clusterURL, ResourceNames: []string{"a", "b"}, ResponseNonce: "n",
		Node:        &corev3.Node{Id: "me", UserAgentName: "test"},
		ErrorDetail: &statuspb.Status{Code: 3, Message: "bad"},
	}
	body, err := Request(want)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(body), `"resource_names"`) {
		t.Errorf("%s is not spelled as in the proto file", body)
	}
	got := new(discoveryv3.DiscoveryRequest)
	if err := protojson.Unmarshal(body, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// spec: S-26
func TestResponseInBothSpellings(t *testing.T) {
	want := &discoveryv3.DiscoveryResponse{
		VersionInfo: "1", TypeUrl: clusterURL, Nonce: "n",
		ControlPlane: &corev3.ControlPlane{Identifier: "cp"},
		Resources: []*anypb.Any{
			pack(t, &clusterv3.Cluster{Name: "a", ConnectTimeout: durationpb.New(3e9)}),
			pack(t, &discoveryv3.Resource{Name: "w", Ttl: durationpb.New(5e9), Resource: pack(t, &endpointv3.ClusterLoadAssignment{ClusterName: "b"})}),
		},
		ResourceErrors: []*discoveryv3.ResourceError{{
			ResourceName: &discoveryv3.ResourceName{Name: "c"},
			ErrorDetail:  &statuspb.Status{Code: 5, Message: "none"},
		}},
	}
	for _, snake := range []bool{true, false} {
		body, err := protojson.MarshalOptions{UseProtoNames: snake}.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Response(t.Context(), body, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := new(discoveryv3.DiscoveryResponse)
		if err := proto.Unmarshal(m.Frame, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("snake case %v: -want +got:\n%s", snake, diff)
		}
	}
}

// A server of version 2 is told nothing that version 2 has no field for, and the build_version.
// spec: V2-3 V2-4
func TestRequestV2(t *testing.T) {
	node := &corev3.Node{Id: "me", UserAgentName: "agent", DynamicParameters: map[string]*xdscorev3.ContextParams{"x": {}}}
	b, err := proto.Marshal(node)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(apiv2.Node(b), node); err != nil {
		t.Fatal(err)
	}
	r := &discoveryv3.DiscoveryRequest{
		Node: node, TypeUrl: "t", ResourceNames: []string{"a"}, ResourceLocators: []*discoveryv3.ResourceLocator{{Name: "b"}},
	}
	body, err := RequestV2(r)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	const text = `{"node":{"id":"me","user_agent_name":"agent","build_version":"agent"},"type_url":"t","resource_names":["a"]}`
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(r.ResourceLocators) != 1 || len(r.Node.DynamicParameters) != 1 {
		t.Error("the request itself was changed")
	}
}

// Unchanged resources have to be the same bytes in every response, maps or not.
func TestEqualBytes(t *testing.T) {
	metadata := `"filter_metadata":{"a":{"x":1},"b":{"x":2},"c":{"x":3},"d":{"x":4}}`
	body := `{"version_info":"1","resources":[{"@type":"` + clusterURL + `","name":"a","metadata":{` + metadata + `}}]}`
	m, err := Response(t.Context(), []byte(body), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		again, err := Response(t.Context(), []byte(body), nil)
		if err != nil {
			t.Fatal(err)
		}
		if string(again.Frame) != string(m.Frame) {
			t.Fatal("the same JSON makes other bytes")
		}
	}
}

// What is wrong with a variant for others concerns them alone, so its constraints are kept.
//
// spec: DYN-2
func TestUnreadableVariant(t *testing.T) {
	for _, key := range []string{"resource_name", "resourceName"} {
		body := `{"resources":[{"@type":"` + wire.WrapperURL + `","` + key + `":{"name":"x","dynamic_parameter_constraints":{"constraint":{"key":"env","value":"prod"}}},` +
			`"resource":{"@type":"` + clusterURL + `","name":"y","type":{}}}]}`
		m, err := Response(t.Context(), []byte(body), nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := wire.ScanSotW(m.Frame)
		if err != nil {
			t.Fatal(err)
		}
		if e := r.Resources[0]; string(e.Name) != "x" || e.Variant != 1 || !wire.NewParams(map[string]string{"env": "prod"}).Match(r.Constraints[0]) {
			t.Errorf("%s: %+v with constraints %x", key, e, r.Constraints)
		}
	}
}

// A resource that cannot be read is refused by itself, by its name where there is one.
func TestUnreadable(t *testing.T) {
	const cla = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	tests := []struct{ name, entry, wantName, wantReason string }{
		{"unknown type", `{"@type":"type.googleapis.com/no.such.Thing","name":"x"}`, "x", `@type: the type "type.googleapis.com/no.such.Thing" is not known to the program`},
		{"unknown type inside", `{"@type":"` + clusterURL + `","name":"x","transport_socket":{"name":"s","typed_config":{"@type":"type.googleapis.com/no.such.Thing"}}}`, "x", `transport_socket.typed_config.@type: the type "type.googleapis.com/no.such.Thing" is not known`},
		{"wrong kind of field", `{"@type":"` + clusterURL + `","name":"x","connect_timeout":{}}`, "x", "it cannot be read: "},
		{"another first field", `{"@type":"` + cla + `","clusterName":"x","endpoints":7}`, "x", "it cannot be read: endpoints"},
		{"its other spelling", `{"@type":"` + cla + `","cluster_name":"x","name":"y","endpoints":7}`, "x", "it cannot be read: endpoints"},
		{"wrapped", `{"@type":"` + wire.WrapperURL + `","name":"x","resource":{"@type":"type.googleapis.com/no.such.Thing"}}`, "x", "no.such.Thing"},
		{"wrapped with the name inside", `{"@type":"` + wire.WrapperURL + `","resource":{"@type":"` + clusterURL + `","name":"x","type":{}}}`, "x", "it cannot be read: "},
		{"no name", `{"@type":"type.googleapis.com/no.such.Thing"}`, "", "no.such.Thing"},
		{"first field is no text", `{"@type":"type.googleapis.com/envoy.config.core.v3.SocketAddress","protocol":[]}`, "", "it cannot be read: protocol"},
		{"no object", `7`, "", "it cannot be read: "},
		{"null", `null`, "", "it cannot be read: "},
		{"long reason", `{"@type":"` + clusterURL + `","name":"x","connect_timeout":"` + strings.Repeat("é", 5000) + `"}`, "x", "connect_timeout: an invalid google.protobuf.Duration"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := `{"type_url":"` + clusterURL + `","resources":[{"@type":"` + clusterURL + `","name":"good"},` + tt.entry + `]}`
			m, err := Response(t.Context(), []byte(body), nil)
			if err != nil {
				t.Fatal(err)
			}
			r, err := wire.ScanSotW(m.Frame)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Resources) != 2 || string(r.Resources[0].TypeURL) != clusterURL {
				t.Fatalf("%d resources, the first of type %q", len(r.Resources), r.Resources[0].TypeURL)
			}
			bad := r.Resources[1]
			reason := fmt.Sprint(m.Faults[1])
			if string(bad.Name) != tt.wantName || !strings.Contains(reason, tt.wantReason) || bad.Fault != nil || bad.HasBody {
				t.Errorf("name %q, reason %s, fault %v, body %v; want %q and %s", bad.Name, reason, bad.Fault, bad.HasBody, tt.wantName, tt.wantReason)
			}
			if len(m.Faults) != 1 || len(reason) > 2*maxReason {
				t.Errorf("%d faults, a reason of %d bytes", len(m.Faults), len(reason))
			}
		})
	}
}

// What stands beside the resources is bounded, and what is of no response is left alone.
//
// spec: H-5
func TestEnvelope(t *testing.T) {
	long := strings.Repeat("x", maxEnvelope)
	if _, err := Response(t.Context(), []byte(`{"version_info":"`+long+`"}`), nil); err != errEnvelope {
		t.Errorf("a long version: %v", err)
	}
	if _, err := Response(t.Context(), []byte(`{"resource_errors":[{"x":"`+long+`"}]}`), nil); err != errEnvelope {
		t.Errorf("long errors: %v", err)
	}
	m, err := Response(t.Context(), []byte(`{"version_info":"1","x":"`+long+`"}`), nil)
	if err != nil || len(m.Frame) != len("1")+2 {
		t.Errorf("a long unknown field: %v", err)
	}
}

// What a status may add to an error need not be known.
func TestUnknownErrorDetails(t *testing.T) {
	body := `{"resource_errors":[{"resource_name":{"name":"a"},"error_detail":{"code":7,"message":"no","details":[{"@type":"type.googleapis.com/no.such.Detail","x":1}]}}]}`
	m, err := Response(t.Context(), []byte(body), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := wire.ScanSotW(m.Frame)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Errors) != 1 || string(r.Errors[0].Name) != "a" || r.Errors[0].Code != 7 || r.Errors[0].Message != "no" {
		t.Errorf("errors %+v", r.Errors)
	}
}

// Fields and enum values that are newer than the program are left out.
func TestUnknownFields(t *testing.T) {
	body := `{"version_info":"1","new":{},"resources":[{"@type":"` + clusterURL + `","name":"a","new":[1],"lb_policy":"NEWER"}]}`
	m, err := Response(t.Context(), []byte(body), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := new(discoveryv3.DiscoveryResponse)
	if err := proto.Unmarshal(m.Frame, got); err != nil {
		t.Fatal(err)
	}
	want := &discoveryv3.DiscoveryResponse{VersionInfo: "1", Resources: []*anypb.Any{pack(t, &clusterv3.Cluster{Name: "a"})}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// thing is a message type that is not linked.
func thing(t *testing.T) protoreflect.FileDescriptor {
	t.Helper()
	text := descriptorpb.FieldDescriptorProto_TYPE_STRING
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("thing.proto"), Package: proto.String("own.v1"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{
			Name: proto.String("Thing"),
			Field: []*descriptorpb.FieldDescriptorProto{{
				Name: proto.String("id"), Number: proto.Int32(1), Type: &text, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			}},
		}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// A program may know more types than those that are linked into it.
func TestOwnTypes(t *testing.T) {
	files := new(protoregistry.Files)
	if err := files.RegisterFile(thing(t)); err != nil {
		t.Fatal(err)
	}
	body := `{"resources":[{"@type":"type.googleapis.com/own.v1.Thing","id":"a"},{"@type":"` + clusterURL + `","name":"b"}]}`
	m, err := Response(t.Context(), []byte(body), dynamicpb.NewTypes(files))
	if err != nil {
		t.Fatal(err)
	}
	r, err := wire.ScanSotW(m.Frame)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, res := range r.Resources {
		name, _, err := wire.StringField(res.Payload, 1)
		if err != nil {
			t.Error(err)
		}
		got = append(got, string(res.TypeURL)+" "+string(name))
	}
	want := []string{"type.googleapis.com/own.v1.Thing a", clusterURL + " b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Whatever comes is an error or a response that can be scanned.
func FuzzResponse(f *testing.F) {
	f.Add([]byte(`{"version_info":"1","resources":[{"@type":"` + clusterURL + `","name":"a"}]}`))
	f.Add([]byte(`{"resources":[{"@type":"` + wire.WrapperURL + `","name":"a","resource":{"@type":"x"}},null,{"@type":"` + wire.WrapperURL + `","resource":null}]}`))
	f.Add([]byte(`{"resource_errors":[{"error_detail":{"details":[{"@type":"x/y"}]}}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := Response(t.Context(), body, nil)
		if err != nil {
			return
		}
		if _, err := wire.ScanSotW(m.Frame); err != nil {
			t.Errorf("%q becomes a frame that does not scan: %v", body, err)
		}
	})
}

func BenchmarkResponse(b *testing.B) {
	const n = 10000
	resp := &discoveryv3.DiscoveryResponse{VersionInfo: "1", TypeUrl: clusterURL}
	for i := range n {
		resp.Resources = append(resp.Resources, pack(b, &clusterv3.Cluster{Name: fmt.Sprintf("cluster-%d", i), ConnectTimeout: durationpb.New(5e9)}))
	}
	body, err := protojson.Marshal(resp)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := Response(b.Context(), body, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/resource")
}
