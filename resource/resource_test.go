package resource_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/resource"
)

var cluster = resource.Proto[*clusterv3.Cluster](resource.Options{NameField: 1, FullState: true})

func marshal(t *testing.T, msg proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(msg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestProtoDecode(t *testing.T) {
	want := &clusterv3.Cluster{Name: "backend", AltStatName: "b"}
	for _, validate := range []bool{false, true} {
		got, err := cluster.Decode(resource.Source{Validate: validate}, marshal(t, want))
		if err != nil {
			t.Fatalf("validate = %v: %v", validate, err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("validate = %v (-want +got):\n%s", validate, diff)
		}
	}
}

// A type of a message that a program finds at run time is that of [resource.Proto].
func TestMessage(t *testing.T) {
	found := resource.Message(new(clusterv3.Cluster).ProtoReflect().Type(), resource.Options{NameField: 1, FullState: true})
	if found.TypeURL() != cluster.TypeURL() || found.NameField() != 1 || !found.FullState() {
		t.Errorf("%s, name in field %d, full state %v", found.TypeURL(), found.NameField(), found.FullState())
	}
	for _, c := range []struct {
		bytes []byte
		ok    bool
	}{{marshal(t, &clusterv3.Cluster{Name: "a"}), true}, {nil, false}, {[]byte{0xff}, false}} {
		v, err := found.Decode(resource.Source{Validate: true}, c.bytes)
		want, wantErr := cluster.Decode(resource.Source{Validate: true}, c.bytes)
		if (err == nil) != c.ok || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%x: %v, want %v", c.bytes, err, wantErr)
		}
		if diff := cmp.Diff(want, v, protocmp.Transform()); c.ok && diff != "" {
			t.Errorf("%x (-want +got):\n%s", c.bytes, diff)
		}
	}
}

// A message of no bytes is a message with nothing set.
func TestProtoDecodeEmpty(t *testing.T) {
	got, err := cluster.Decode(resource.Source{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(new(clusterv3.Cluster), got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProtoDecodeGarbage(t *testing.T) {
	tests := map[string][]byte{
		"cut off":      marshal(t, &clusterv3.Cluster{Name: "backend"})[:4],
		"no proto":     []byte("\xff\xff\xff"),
		"not UTF-8":    {0x0a, 0x01, 0xff},
		"end of group": {0x0c},
	}
	for what, b := range tests {
		got, err := cluster.Decode(resource.Source{}, b)
		if err == nil || !strings.Contains(err.Error(), "not a message of type envoy.config.cluster.v3.Cluster") {
			t.Errorf("%s: error %v, want one that names the message", what, err)
		}
		if c, ok := got.(*clusterv3.Cluster); !ok || c != nil {
			t.Errorf("%s: value %v beside an error", what, got)
		}
	}
}

// spec: TYPE-7
func TestProtoUnknownFieldsAreKept(t *testing.T) {
	b := marshal(t, &clusterv3.Cluster{Name: "backend"})
	b = protowire.AppendTag(b, 9999, protowire.BytesType)
	b = protowire.AppendString(b, "of a later version")
	got, err := cluster.Decode(resource.Source{Validate: true}, b)
	if err != nil {
		t.Fatal(err)
	}
	c := got.(*clusterv3.Cluster)
	if c.GetName() != "backend" || len(c.ProtoReflect().GetUnknown()) == 0 {
		t.Errorf("got %v, want the known and the unknown field", c)
	}
}

// A message without generated validation is valid.
func TestProtoWithoutValidate(t *testing.T) {
	typ := resource.Proto[*structpb.Value](resource.Options{})
	got, err := typ.Decode(resource.Source{Validate: true}, marshal(t, structpb.NewStringValue("x")))
	if err != nil {
		t.Fatal(err)
	}
	if v := got.(*structpb.Value); v.GetStringValue() != "x" {
		t.Errorf("got %v, want x", v)
	}
}

func TestProtoKind(t *testing.T) {
	var k resource.AnyType = cluster
	if got, want := k.TypeURL(), "type.googleapis.com/envoy.config.cluster.v3.Cluster"; got != want {
		t.Errorf("type URL %q, want %q", got, want)
	}
	if !k.FullState() || k.NameField() != 1 {
		t.Errorf("full state %v, name field %d; want true, 1", k.FullState(), k.NameField())
	}
	if sotw, delta := k.Methods(); sotw != "" || delta != "" {
		t.Errorf("methods %q and %q of a type without streams", sotw, delta)
	}
}

// route is a value that is no protobuf message.
type route struct{ from, to, server string }

var errNoRoute = errors.New("want FROM->TO")

func decodeRoute(src resource.Source, b []byte) (route, error) {
	from, to, ok := strings.Cut(string(b), "->")
	if !ok {
		return route{}, fmt.Errorf("route %q: %w", b, errNoRoute)
	}
	return route{from, to, src.Server}, nil
}

func TestCustom(t *testing.T) {
	typ := resource.Custom("type.googleapis.com/example.Route", resource.Options{
		SotWMethod:  "/example.Routes/Stream",
		DeltaMethod: "/example.Routes/Delta",
	}, decodeRoute)

	got, err := typ.Decode(resource.Source{Server: "xds:1"}, []byte("a->b"))
	if want := (route{"a", "b", "xds:1"}); err != nil || got != any(want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := typ.Decode(resource.Source{}, []byte("ab")); !errors.Is(err, errNoRoute) {
		t.Errorf("error %v, want the decoder's own", err)
	}
	if got := typ.TypeURL(); got != "type.googleapis.com/example.Route" {
		t.Errorf("type URL %q, want it as given", got)
	}
	if typ.FullState() || typ.NameField() != 0 {
		t.Errorf("full state %v, name field %d; want false, 0", typ.FullState(), typ.NameField())
	}
	if sotw, delta := typ.Methods(); sotw != "/example.Routes/Stream" || delta != "/example.Routes/Delta" {
		t.Errorf("methods %q and %q, want them as given", sotw, delta)
	}
}
