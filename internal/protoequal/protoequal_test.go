package protoequal_test

import (
	"fmt"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/internal/protoequal"
)

// packed is the bytes of metadata with two filters, in the order that is asked for.
func packed(first, second string) *anypb.Any {
	var all []byte
	for _, name := range []string{first, second} {
		one, err := proto.Marshal(&corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{name: {}}})
		if err != nil {
			panic(err)
		}
		all = append(all, one...)
	}
	return &anypb.Any{TypeUrl: "type.googleapis.com/envoy.config.core.v3.Metadata", Value: all}
}

func nested(a *anypb.Any, depth int) *anypb.Any {
	for range depth {
		outer, err := anypb.New(a)
		if err != nil {
			panic(err)
		}
		a = outer
	}
	return a
}

// listed and mapped are messages with an Any in a list and in a map.
func listed(all ...*anypb.Any) *endpointv3.LocalityLbEndpoints {
	m := &endpointv3.LocalityLbEndpoints{}
	for _, a := range all {
		m.LbEndpoints = append(m.LbEndpoints, &endpointv3.LbEndpoint{Metadata: mapped(a)})
	}
	return m
}

func mapped(a *anypb.Any) *corev3.Metadata {
	return &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{"k": a}}
}

func retyped(a *anypb.Any, url string) *anypb.Any {
	return &anypb.Any{TypeUrl: url, Value: a.GetValue()}
}

func broken(with string) *anypb.Any {
	return &anypb.Any{TypeUrl: packed("a", "b").GetTypeUrl(), Value: []byte("\xff" + with)}
}

func unknown(m *corev3.Locality) *corev3.Locality {
	m.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1))
	return m
}

func named(name string) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{NamedEndpoints: map[string]*endpointv3.Endpoint{name: {}}}
}

func options(name string, goPackage *string) *descriptorpb.FileDescriptorProto {
	return &descriptorpb.FileDescriptorProto{Name: &name, Options: &descriptorpb.FileOptions{GoPackage: goPackage}}
}

// spec: VIEW-4 P-10
func TestEqual(t *testing.T) {
	foreign := func(value string) *anypb.Any { return &anypb.Any{TypeUrl: "example.com/unknown", Value: []byte(value)} }
	for i, test := range []struct {
		a, b proto.Message
		want bool
	}{
		{&corev3.Locality{}, &corev3.Locality{}, true},
		{&corev3.Locality{}, &corev3.Node{}, false},
		{&corev3.Locality{Zone: "a"}, &corev3.Locality{Zone: "a"}, true},
		{&corev3.Locality{Zone: "a"}, &corev3.Locality{Zone: "b"}, false},
		{&corev3.Locality{Zone: "a"}, &corev3.Locality{}, false},
		{&corev3.Locality{}, &corev3.Locality{Zone: "a"}, false},
		{&corev3.Locality{}, &corev3.Locality{Region: "a"}, false},
		{unknown(&corev3.Locality{}), unknown(&corev3.Locality{}), true},
		{unknown(&corev3.Locality{}), &corev3.Locality{}, false},
		{&corev3.Node{}, &corev3.Node{Locality: &corev3.Locality{}}, false},
		{&corev3.Node{Locality: &corev3.Locality{Zone: "a"}}, &corev3.Node{Locality: &corev3.Locality{Zone: "b"}}, false},
		{&corev3.Node{ClientFeatures: []string{"a", "b"}}, &corev3.Node{ClientFeatures: []string{"b", "a"}}, false},
		{&corev3.Node{ClientFeatures: []string{"a"}}, &corev3.Node{ClientFeatures: []string{"a", "a"}}, false},
		{named("a"), named("a"), true},
		{named("a"), named("b"), false},
		{named("a"), &endpointv3.ClusterLoadAssignment{}, false},
		{options("a", proto.String("")), options("a", proto.String("")), true},
		{options("a", proto.String("")), options("a", nil), false}, // of proto2: there is a difference
		{packed("a", "b"), packed("b", "a"), true},
		{packed("a", "b"), packed("a", "c"), false},
		{packed("a", "b"), packed("a", "a"), false},
		{nested(packed("a", "b"), 7), nested(packed("b", "a"), 7), true},
		{nested(packed("a", "b"), 8), nested(packed("b", "a"), 8), false}, // not opened so deep
		{listed(packed("a", "b"), packed("a", "b")), listed(packed("b", "a"), packed("a", "b")), true},
		{listed(packed("a", "b"), packed("a", "b")), listed(packed("b", "a"), packed("a", "c")), false},
		{listed(packed("a", "b")), listed(packed("a", "b"), packed("a", "b")), false},
		{mapped(packed("a", "b")), mapped(packed("b", "a")), true},
		{mapped(packed("a", "b")), mapped(packed("a", "c")), false},
		{packed("a", "b"), retyped(packed("a", "b"), "example.com/envoy.config.core.v3.Metadata"), false},
		{broken("a"), broken("b"), false},
		{foreign("a"), foreign("a"), true},
		{foreign("a"), foreign("b"), false},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if got := protoequal.Equal(test.a, test.b); got != test.want {
				t.Errorf("%v and %v: %t", test.a, test.b, got)
			}
			if got := protoequal.Equal(test.b, test.a); got != test.want {
				t.Errorf("the other way round: %t", got)
			}
		})
	}
}
