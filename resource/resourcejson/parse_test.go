package resourcejson

import (
	"bytes"
	"strings"
	"testing"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3" // has the message that lists are read as
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// What was written is read back, bytes of unknown types included.
func TestParseAny(t *testing.T) {
	strange := &anypb.Any{TypeUrl: "type.googleapis.com/acme.Strange", Value: []byte{0xff, 0, 1}}
	nested, err := anypb.New(&corev3.TypedExtensionConfig{Name: "e", TypedConfig: strange})
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := anypb.New(&clusterv3.Cluster{Name: "a", ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{
		ClusterType: &clusterv3.Cluster_CustomClusterType{Name: "n", TypedConfig: nested},
	}, TypedExtensionProtocolOptions: map[string]*anypb.Any{"x": strange}})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := anypb.New(&clusterv3.Cluster{Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	inside := &clusterv3.Cluster{}
	if err := Parse([]byte(`{"name": "a", "newer": 1, "typedExtensionProtocolOptions": {"x": {"@type": "type.googleapis.com/acme.Strange", "value": "/wAB"}}}`), inside); err != nil {
		t.Fatal(err)
	}
	if got := inside.GetTypedExtensionProtocolOptions()["x"]; inside.GetName() != "a" || !proto.Equal(got, strange) {
		t.Errorf("%v", inside)
	}
	broken := &anypb.Any{TypeUrl: cluster.TypeUrl, Value: []byte{0xff}}
	for name, a := range map[string]*anypb.Any{"unknown": strange, "nested": cluster, "plain": plain, "broken": broken} {
		text := Options{}.Message(a)
		got, err := ParseAny(text)
		if err != nil {
			t.Errorf("%s: %v of %s", name, err, text)
			continue
		}
		if got.TypeUrl != a.TypeUrl || !bytes.Equal(got.Value, a.Value) && !sameMessage(t, got, a) {
			t.Errorf("%s: %v, want %v", name, got, a)
		}
	}
	if a, err := ParseAny([]byte(`{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "nmae": "x"}`)); err == nil {
		t.Errorf("a field that does not exist gives %v", a)
	}
}

func sameMessage(t *testing.T, a, b *anypb.Any) bool {
	t.Helper()
	x, err := a.UnmarshalNew()
	if err != nil {
		return false
	}
	y, err := b.UnmarshalNew()
	return err == nil && proto.Equal(x, y)
}

// A list collection keeps all its entries, though Envoy's messages have a field for one.
func TestListCollection(t *testing.T) {
	entry := func(name string) []byte {
		b, err := proto.Marshal(&xdscorev3.CollectionEntry{ResourceSpecifier: &xdscorev3.CollectionEntry_InlineEntry_{InlineEntry: &xdscorev3.CollectionEntry_InlineEntry{
			Name: name, Resource: &anypb.Any{TypeUrl: "type.googleapis.com/not.Linked", Value: []byte(name)},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), b)
	}
	for _, names := range [][]string{{}, {"a"}, {"a", "b", "c"}} {
		in := &anypb.Any{TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.ClusterCollection"}
		for _, name := range names {
			in.Value = append(in.Value, entry(name)...)
		}
		around := &corev3.TypedExtensionConfig{Name: "l", TypedConfig: in}
		text := Options{}.Any("type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig", around)
		for _, name := range names {
			if !strings.Contains(string(text), `"inlineEntry":{"name":"`+name+`"`) {
				t.Errorf("%v: %s", names, text)
			}
		}
		back, err := ParseAny(text)
		out := &corev3.TypedExtensionConfig{}
		if err == nil {
			err = back.UnmarshalTo(out)
		}
		if err != nil || !bytes.Equal(out.GetTypedConfig().GetValue(), in.Value) {
			t.Errorf("%v: %v, %q, want %q", names, err, out.GetTypedConfig().GetValue(), in.Value)
		}
	}
}
