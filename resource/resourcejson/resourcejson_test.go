package resourcejson_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

func anyOf(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func structOf(t *testing.T, m map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What protojson can write is written as it writes it, but for spaces and for escapes of what does not show.
func TestAsProtoJSON(t *testing.T) {
	for name, m := range map[string]proto.Message{
		"empty": &clusterv3.Cluster{},
		"cluster": &clusterv3.Cluster{
			Name:                          "a <b> & \u2028 \"c\" \u202e\u009b",
			ClusterDiscoveryType:          &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			ConnectTimeout:                durationpb.New(1500000000),
			PerConnectionBufferLimitBytes: wrapperspb.UInt32(0),
			LbConfig: &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{
				MinimumRingSize: wrapperspb.UInt64(math.MaxUint64),
			}},
			Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
				"z": structOf(t, map[string]any{"b": nil, "a": []any{1.5, true, "x"}}), "a": {},
			}},
		},
		"an enum without a name": &corev3.SocketAddress{Protocol: 77, Address: "::1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80}},
		"nested": &listenerv3.Listener{FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: anyOf(t, &hcmv3.HttpConnectionManager{
				StatPrefix: "x",
				HttpFilters: []*hcmv3.HttpFilter{{ConfigType: &hcmv3.HttpFilter_TypedConfig{
					TypedConfig: anyOf(t, durationpb.New(5)),
				}}},
			})},
		}}}}},
		"double":                 &typev3.Percent{Value: 1e21},
		"doubles out of numbers": &structpb.ListValue{Values: []*structpb.Value{structpb.NewNumberValue(0.1)}},
		"not a number":           &typev3.Percent{Value: math.NaN()},
		"infinite":               &typev3.DoubleRange{Start: math.Inf(-1), End: math.Inf(1)},
		"bytes":                  &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte{0xff, 0xfe}}},
		"timestamp":              timestamppb.Now(),
		"mask":                   &fieldmaskpb.FieldMask{Paths: []string{"a_b.c"}},
		"empty any":              &anypb.Any{},
		"any of empty":           anyOf(t, &emptypb.Empty{}),
		"any of any":             anyOf(t, anyOf(t, wrapperspb.String("x"))),
		"any of struct":          anyOf(t, structOf(t, map[string]any{"a": "b"})),
		"endpoint":               &endpointv3.LbEndpoint{LoadBalancingWeight: wrapperspb.UInt32(7), HealthStatus: corev3.HealthStatus_DRAINING},
		"value":                  structpb.NewNullValue(),
	} {
		t.Run(name, func(t *testing.T) {
			want, err := protojson.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			got := resourcejson.Options{ShowSecrets: true}.Message(m)
			if diff := cmp.Diff(tree(t, want), tree(t, got)); diff != "" {
				t.Errorf("%s\n%s", got, diff)
			}
			if i := bytes.IndexFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("it has what does not show: %q", got[i:])
			}
		})
	}
}

func tree(t *testing.T, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// What protojson cannot write is written nevertheless.
func TestNeverFails(t *testing.T) {
	unknown := &anypb.Any{TypeUrl: "type.googleapis.com/example.Thing", Value: []byte("bytes")}
	broken := &anypb.Any{TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster", Value: []byte{0xff}}
	in := func(a *anypb.Any) proto.Message {
		return &corev3.TypedExtensionConfig{Name: "n", TypedConfig: a}
	}
	for _, tt := range []struct {
		name string
		m    proto.Message
		want string
	}{
		{"an unknown type", in(unknown), `{"name":"n","typedConfig":{"@type":"type.googleapis.com/example.Thing","value":"Ynl0ZXM="}}`},
		{"an unknown type in a known one", in(anyOf(t, in(unknown))),
			`{"name":"n","typedConfig":{"@type":"type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig","name":"n",` +
				`"typedConfig":{"@type":"type.googleapis.com/example.Thing","value":"Ynl0ZXM="}}}`},
		{"bytes that are not the message", in(broken), `{"name":"n","typedConfig":{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","value":"/w=="}}`},
		{"no type", in(&anypb.Any{Value: []byte{1}}), `{"name":"n","typedConfig":{"value":"AQ=="}}`},
		{"a duration out of range", &durationpb.Duration{Seconds: math.MaxInt64}, `{"seconds":"9223372036854775807"}`},
		{"a value without a kind", &structpb.ListValue{Values: []*structpb.Value{{}}}, `{"values":[{}]}`},
		{"a number that is none", structpb.NewNumberValue(math.NaN()), `{"numberValue":"NaN"}`},
		{"no bytes at all", in(&anypb.Any{TypeUrl: "x/y"}), `{"name":"n","typedConfig":{"@type":"x/y","value":""}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(resourcejson.Options{ShowSecrets: true}.Message(tt.m)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestUnknown(t *testing.T) {
	got := string(resourcejson.Unknown("type.googleapis.com/a.B", []byte{0, 1, 2}))
	if want := `{"@type":"type.googleapis.com/a.B","value":"AAEC"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestStable(t *testing.T) {
	m := &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{}}
	for _, k := range strings.Split("the order of maps differs from one run to the next but not here", " ") {
		m.FilterMetadata[k] = structOf(t, map[string]any{"b": 1.0, "a": 2.0})
	}
	want := string(resourcejson.Options{ShowSecrets: true}.Message(m))
	for range 20 {
		if got := string(resourcejson.Options{ShowSecrets: true}.Message(m)); got != want {
			t.Fatalf("%s\n%s", got, want)
		}
	}
	if strings.Contains(want, " ") {
		t.Errorf("%s holds spaces", want)
	}
}

// A message that is all nesting is cut, and costs no more for it.
func TestDeepNesting(t *testing.T) {
	a := anyOf(t, &emptypb.Empty{})
	for range 1000 {
		a = anyOf(t, a)
	}
	got := string(resourcejson.Options{ShowSecrets: true}.Message(a))
	if n := strings.Count(got, "@type"); n != 65 {
		t.Errorf("%d levels, want 65", n)
	}
	if tree(t, []byte(got)) == nil {
		t.Error("no JSON")
	}
}

// A value that protojson cannot write costs as much as another, however deep it lies in others.
func TestDeepValue(t *testing.T) {
	v := &structpb.Value{}
	for i := range 4000 {
		if i%2 == 0 {
			v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
		} else {
			v = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"f": v}})
		}
	}
	start := time.Now()
	got := string(resourcejson.Options{}.Message(v))
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
	if !strings.HasPrefix(got, `{"structValue":{"fields":{"f":{"listValue":{"values":[{"structValue":`) {
		t.Errorf("got %.200s", got)
	}
}
