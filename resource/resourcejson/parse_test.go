package resourcejson

import (
	"bytes"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
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
	broken := &anypb.Any{TypeUrl: cluster.TypeUrl, Value: []byte{0xff}}
	for name, a := range map[string]*anypb.Any{"unknown": strange, "nested": cluster, "plain": plain, "broken": broken} {
		text := Options{Readable: true}.Message(a)
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
