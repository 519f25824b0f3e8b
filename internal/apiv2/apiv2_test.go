package apiv2

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/ecds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/leds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/resource/rtds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/resource/srds"
	"github.com/xdswatch/xdswatch/resource/vhds"
)

// spec: V2-2
func TestTypesAndMethods(t *testing.T) {
	const api, discovery = "/envoy.api.v2.", "/envoy.service.discovery.v2."
	tests := []struct {
		kind        resource.AnyType
		url         string // of version 2
		sotw, delta string
	}{
		{lds.Type, "envoy.api.v2.Listener", api + "ListenerDiscoveryService/StreamListeners", api + "ListenerDiscoveryService/DeltaListeners"},
		{rds.Type, "envoy.api.v2.RouteConfiguration", api + "RouteDiscoveryService/StreamRoutes", api + "RouteDiscoveryService/DeltaRoutes"},
		{srds.Type, "envoy.api.v2.ScopedRouteConfiguration", api + "ScopedRoutesDiscoveryService/StreamScopedRoutes", api + "ScopedRoutesDiscoveryService/DeltaScopedRoutes"},
		{vhds.Type, "envoy.api.v2.route.VirtualHost", "", api + "VirtualHostDiscoveryService/DeltaVirtualHosts"},
		{cds.Type, "envoy.api.v2.Cluster", api + "ClusterDiscoveryService/StreamClusters", api + "ClusterDiscoveryService/DeltaClusters"},
		{eds.Type, "envoy.api.v2.ClusterLoadAssignment", api + "EndpointDiscoveryService/StreamEndpoints", api + "EndpointDiscoveryService/DeltaEndpoints"},
		{sds.Type, "envoy.api.v2.auth.Secret", discovery + "SecretDiscoveryService/StreamSecrets", discovery + "SecretDiscoveryService/DeltaSecrets"},
		{rtds.Type, "envoy.service.discovery.v2.Runtime", discovery + "RuntimeDiscoveryService/StreamRuntime", discovery + "RuntimeDiscoveryService/DeltaRuntime"},
		{leds.Type, "", "", ""},
		{ecds.Type, "", "", ""},
	}
	for _, test := range tests {
		v3 := test.kind.TypeURL()
		v2 := resource.TypePrefix + test.url
		if test.url == "" {
			v2 = v3
		}
		if got := ToV2(v3); got != v2 {
			t.Errorf("version 2 of %s is %s, want %s", v3, got, v2)
		}
		if got := ToV3(v2); got != v3 {
			t.Errorf("version 3 of %s is %s, want %s", v2, got, v3)
		}
		if got := ToV3(v3); got != v3 {
			t.Errorf("version 3 of %s is %s", v3, got)
		}
		sotw, delta := test.kind.Methods()
		if sotw, delta = Method(sotw), Method(delta); sotw != test.sotw || delta != test.delta {
			t.Errorf("methods of %s are %q and %q, want %q and %q", v3, sotw, delta, test.sotw, test.delta)
		}
	}
	for v3, want := range map[string]string{
		"/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources": discovery + "AggregatedDiscoveryService/StreamAggregatedResources",
		"/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources":  discovery + "AggregatedDiscoveryService/DeltaAggregatedResources",
		"/own.v3.Things/Stream":    "/own.v3.Things/Stream",
		"/envoy.api.v2.Own/Stream": "/envoy.api.v2.Own/Stream",
		"":                         "",
	} {
		if got := Method(v3); got != want {
			t.Errorf("method %q is %q, want %q", v3, got, want)
		}
	}
	if got := ToV2("example.com/Own"); got != "example.com/Own" {
		t.Errorf("a program's own type is %s", got)
	}
}

// golden reads what the generated code of version 2 wrote.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".binpb"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fields are those of a message by number, so that their order does not count.
func fields(t *testing.T, b []byte) map[protowire.Number]string {
	t.Helper()
	fields := map[protowire.Number]string{}
	for len(b) > 0 {
		num, _, n := protowire.ConsumeField(b)
		if n < 0 {
			t.Fatalf("not a message: %x", b)
		}
		fields[num] += string(b[:n])
		b = b[n:]
	}
	return fields
}

// request takes the node out of a request: its fields apart from the others.
func request(t *testing.T, delta bool, parts ...[]byte) (node, rest map[protowire.Number]string) {
	t.Helper()
	num := protowire.Number(2)
	if delta {
		num = 1
	}
	rest = fields(t, bytes.Join(parts, nil))
	_, _, tag := protowire.ConsumeTag([]byte(rest[num]))
	b, _ := protowire.ConsumeBytes([]byte(rest[num])[tag:])
	delete(rest, num)
	return fields(t, b), rest
}

func sotwRequest(t *testing.T) [][]byte {
	t.Helper()
	node, err := proto.Marshal(&corev3.Node{
		Id: "i", UserAgentName: "xdswatch", UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: "0.1.0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	head := wire.AppendSotW(nil, secretV3, "1", "n", Node(node), &wire.Status{Code: 3, Message: "bad"})
	return [][]byte{head, wire.AppendName(nil, "a", nil), wire.AppendName(nil, "b", nil)}
}

func deltaRequest(*testing.T) [][]byte {
	msg := wire.AppendDelta(nil, runtimeV3, "", []byte("\x0a\x01i"), nil)
	msg = wire.AppendUnsubscribe(wire.AppendSubscribe(msg, "a", nil), "b", nil)
	return [][]byte{wire.AppendInitialVersion(msg, "c", "4")}
}

// spec: V2-2 V2-3
func TestRequest(t *testing.T) {
	for name, compose := range map[string]func(*testing.T) [][]byte{"sotw-request": sotwRequest, "delta-request": deltaRequest} {
		delta := name == "delta-request"
		msg := compose(t)
		node, rest := request(t, delta, Request(msg, delta)...)
		wantNode, wantRest := request(t, delta, golden(t, name))
		if diff := cmp.Diff(wantNode, node); diff != "" {
			t.Errorf("%s: node (-of its time +ours):\n%s", name, diff)
		}
		if diff := cmp.Diff(wantRest, rest); diff != "" {
			t.Errorf("%s (-of its time +ours):\n%s", name, diff)
		}
		if diff := cmp.Diff(compose(t), msg); diff != "" {
			t.Errorf("%s was modified:\n%s", name, diff)
		}
	}
}

// spec: V2-3
func TestNode(t *testing.T) {
	const id, build, name, version = "\x0a\x01i", "\x2a\x01b", "\x32\x01n", "\x3a\x01v"
	for node, want := range map[string]string{
		"":                          "",
		id:                          id,
		id + version:                id + version,
		id + name:                   id + name + build[:2] + "n",
		name + version:              name + version + "\x2a\x03n/v",
		id + build + name + version: id + build + name + version,
		name + "\x32\x09broken":     name + "\x32\x09broken",
	} {
		if got := Node([]byte(node)); string(got) != want {
			t.Errorf("node %q became %q, want %q", node, got, want)
		}
	}
	shared := append(make([]byte, 0, 64), name...)
	Node(shared)
	if tail := shared[len(name) : len(name)+3]; !bytes.Equal(tail, make([]byte, 3)) {
		t.Errorf("the room behind the node was written to: %x", tail)
	}
}

// spec: V2-1 V2-2
func TestResponse(t *testing.T) {
	sotw, err := wire.ScanSotW(golden(t, "sotw-response"))
	if err != nil {
		t.Fatal(err)
	}
	Response(sotw)
	want := &wire.Response{
		Version: "1", TypeURL: clusterV3, Nonce: "n", ControlPlane: "old", Size: sotw.Size,
		Resources: []wire.Resource{{TypeURL: []byte(clusterV3), Payload: []byte("\x0a\x01a\x22\x02\x10\x01"), HasBody: true}},
	}
	if diff := cmp.Diff(want, sotw, cmpopts.IgnoreUnexported(wire.Response{})); diff != "" {
		t.Errorf("state of the world (-want +got):\n%s", diff)
	}

	delta, err := wire.ScanDelta(golden(t, "delta-response"))
	if err != nil {
		t.Fatal(err)
	}
	Response(delta)
	want = &wire.Response{
		Version: "1", TypeURL: virtualHostV3, Nonce: "n", Size: delta.Size,
		Removed: [][]byte{[]byte("r/gone")},
		Resources: []wire.Resource{{
			Name: []byte("r/h"), Version: []byte("3"), TypeURL: []byte(virtualHostV3), Payload: []byte("\x0a\x01h"),
			HasBody: true, Attributes: &wire.Attributes{Aliases: [][]byte{[]byte("r/x")}},
		}},
	}
	if diff := cmp.Diff(want, delta, cmpopts.IgnoreUnexported(wire.Response{})); diff != "" {
		t.Errorf("delta (-want +got):\n%s", diff)
	}
}

// Entries of all versions, of other types, and of none.
// spec: V2-1
func TestResponseMixed(t *testing.T) {
	urls := []string{clusterV2, clusterV3, clusterV2, clusterV2, "", endpointsV2, wire.WrapperURL, "own", clusterV2}
	want := []string{clusterV3, clusterV3, clusterV3, clusterV3, "", endpointsV3, wire.WrapperURL, "own", clusterV3}
	r := &wire.Response{TypeURL: clusterV3}
	for _, url := range urls {
		r.Resources = append(r.Resources, wire.Resource{TypeURL: []byte(url)})
	}
	Response(r)
	for i, e := range r.Resources {
		if string(e.TypeURL) != want[i] {
			t.Errorf("entry %d is %q, want %q", i, e.TypeURL, want[i])
		}
	}
	if r.TypeURL != clusterV3 {
		t.Errorf("the response is of %q", r.TypeURL)
	}
}
