package protosize_test

import (
	"bytes"
	"errors"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/internal/protosize"
)

// within is a message that has b as the value of fields within fields, the innermost first.
func within(b []byte, fields ...protowire.Number) []byte {
	for _, f := range fields {
		b = protowire.AppendBytes(protowire.AppendTag(nil, f, protowire.BytesType), b)
	}
	return b
}

// A message of nothing but empty parts is refused, wherever they are, and what has as many bytes
// of text is not.
//
// spec: H-5
func TestCheck(t *testing.T) {
	const size = 8 << 20
	fill := func(piece ...byte) []byte { return bytes.Repeat(piece, size/len(piece)) }
	opened := func(b []byte) []byte {
		any, err := proto.Marshal(&anypb.Any{TypeUrl: "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", Value: b})
		if err != nil {
			t.Fatal(err)
		}
		return within(any, 2, 36) // Cluster.typed_extension_protocol_options
	}
	for _, tt := range []struct {
		name string
		m    proto.Message
		b    []byte
		over bool
	}{
		{"localities", &endpointv3.ClusterLoadAssignment{}, fill(0x12, 0), true},
		{"endpoints", &endpointv3.ClusterLoadAssignment{}, within(fill(0x12, 0), 2), true},
		{"routes", &routev3.RouteConfiguration{}, within(fill(0x1a, 2, 0x12, 0), 2), true},
		{"values", &structpb.ListValue{}, fill(0x0a, 0), true},
		{"entries of a map", &structpb.Struct{}, fill(0x0a, 0), true},
		{"in an Any", &clusterv3.Cluster{}, opened(fill(0x12, 0)), true},
		{"a text", &clusterv3.Cluster{}, within(fill('x'), 1), false},
		{"of an unknown field", &clusterv3.Cluster{}, within(fill('x'), 1000), false},
		{"bytes in an Any", &clusterv3.Cluster{}, opened(within(fill('x'), 1)), false},
		{"no message", &clusterv3.Cluster{}, fill(0xff), false},
	} {
		err := protosize.Check(tt.b, tt.m.ProtoReflect().Descriptor())
		var over *protosize.Error
		if errors.As(err, &over) != tt.over || over != nil && (over.Limit != protosize.Most || over.Size != len(tt.b)) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// What is accepted takes no more than the bound, also where it is nearly refused.
//
// spec: H-5
func TestMost(t *testing.T) {
	if testing.Short() {
		t.Skip("long: messages as large as they may be")
	}
	for name, tt := range map[string]struct {
		m     proto.Message
		piece []byte
	}{
		"localities": {&endpointv3.ClusterLoadAssignment{}, []byte{0x12, 0}},
		"values":     {&structpb.ListValue{}, []byte{0x0a, 0}},
	} {
		size, fill := 1<<20, func(size int) []byte { return bytes.Repeat(tt.piece, size/len(tt.piece)) }
		for protosize.Check(fill(size*5/4), tt.m.ProtoReflect().Descriptor()) == nil {
			size = size * 5 / 4
		}
		raw := fill(size)
		grown := heapsize.While(func() {
			if err := proto.Unmarshal(raw, tt.m); err != nil {
				t.Error(err)
			}
		})
		t.Logf("%s: %d KiB take %d MiB", name, size>>10, grown>>20)
		if grown > protosize.Most*3/2 {
			t.Errorf("%s: %d bytes take %d MiB", name, size, grown>>20)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: "a", Endpoints: []*endpointv3.LocalityLbEndpoints{{}}}
	for range 50_000 {
		a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, &endpointv3.LbEndpoint{HealthStatus: 1})
	}
	raw, err := proto.Marshal(a)
	if err != nil {
		b.Fatal(err)
	}
	raw = append(raw, bytes.Repeat(raw, 2)...)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if err := protosize.Check(raw, a.ProtoReflect().Descriptor()); err != nil {
			b.Fatal(err)
		}
	}
}
