package engine

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// structOf encodes a Struct with its entries in the order that is given.
func structOf(keys ...string) []byte {
	var b []byte
	for _, key := range keys {
		value, _ := proto.Marshal(structpb.NewStringValue("value of " + key))
		entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), key)
		entry = protowire.AppendBytes(protowire.AppendTag(entry, 2, protowire.BytesType), value)
		b = protowire.AppendBytes(protowire.AppendTag(b, 1, protowire.BytesType), entry)
	}
	return b
}

// clusterWith is a cluster whose extension has an Any of the type under so many others.
func clusterWith(t *testing.T, url string, value []byte, levels int) []byte {
	t.Helper()
	inner := &anypb.Any{TypeUrl: url, Value: value}
	for range levels {
		outer := &corev3.TypedExtensionConfig{Name: "level", TypedConfig: inner}
		next, err := anypb.New(outer)
		if err != nil {
			t.Fatal(err)
		}
		inner = next
	}
	raw, err := proto.Marshal(&clusterv3.Cluster{Name: "c", TypedExtensionProtocolOptions: map[string]*anypb.Any{"x": inner}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Bytes of one length are unchanged if they mean the same, inside an Any of a type that the
// program links too, eight deep.
//
// spec: P-10 WATCH-4
func TestSameInsideAny(t *testing.T) {
	const known, unknown = "type.googleapis.com/google.protobuf.Struct", "type.googleapis.com/no.such.Type"
	for _, tt := range []struct {
		name   string
		url    string
		levels int
		raw    []byte
		same   bool
	}{
		{"another order", known, 0, structOf("two", "one"), true},
		{"another order, eight deep", known, 7, structOf("two", "one"), true},
		{"another order, nine deep", known, 8, structOf("two", "one"), false},
		{"of an unknown type", unknown, 0, structOf("two", "one"), false},
		{"another value of the same bytes", known, 0, structOf("neo", "two"), false},
		{"not its type", known, 0, []byte("\xff" + string(structOf("two", "one")[1:])), false},
	} {
		old, raw := clusterWith(t, tt.url, structOf("one", "two"), tt.levels), clusterWith(t, tt.url, tt.raw, tt.levels)
		it := machine.Item{Raw: raw, Old: old}
		if r := decode(cds.Type, resource.Source{}, &it); r.Err != nil || r.Same != tt.same {
			t.Errorf("%s: same %v, error %v", tt.name, r.Same, r.Err)
		}
	}
}
