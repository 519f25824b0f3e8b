package nodeparams

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"github.com/xdswatch/xdswatch/xdstp"
)

func metadata(t testing.TB) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(map[string]any{"foo": true, "bar": "a", "baz": 42})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func versioned(t testing.TB) *corev3.Node {
	return &corev3.Node{
		Id:            "some_id",
		Cluster:       "some_cluster",
		UserAgentName: "xds_client",
		UserAgentVersionType: &corev3.Node_UserAgentVersion{
			UserAgentVersion: "1.2.3",
		},
		Locality: &corev3.Locality{Region: "<region>", Zone: "<zone>", SubZone: "<sub_zone>"},
		Metadata: metadata(t),
	}
}

func built(t testing.TB) *corev3.Node {
	return &corev3.Node{UserAgentVersionType: &corev3.Node_UserAgentBuildVersion{
		UserAgentBuildVersion: &corev3.BuildVersion{
			Version:  &typev3.SemanticVersion{MajorNumber: 1, MinorNumber: 2, Patch: 3},
			Metadata: metadata(t),
		},
	}}
}

// loadCases gives what is expected of each case of the section context_params.
func loadCases(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile("../testdata/xdstp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			ID     string            `json:"id"`
			Expect map[string]string `json:"expect"`
		} `json:"context_params"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	cases := make(map[string]map[string]string)
	for _, c := range file.Cases {
		cases[c.ID] = c.Expect
	}
	return cases
}

func toMap(params []xdstp.Param) map[string]string {
	m := make(map[string]string)
	for _, p := range params {
		m[p.Key] = p.Value
	}
	return m
}

// The cases of Envoy's own test.
//
// spec: CTX-2
func TestEnvoyCases(t *testing.T) {
	tests := []struct {
		id     string
		node   *corev3.Node
		fields []string
	}{
		{"ctx-node-all", versioned(t), []string{
			"id", "cluster", "user_agent_name", "user_agent_version",
			"locality.region", "locality.zone", "locality.sub_zone", "metadata",
		}},
		{"ctx-node-build-version", built(t), []string{
			"user_agent_build_version.version", "user_agent_build_version.metadata",
		}},
	}
	cases := loadCases(t)
	for _, tt := range tests {
		t.Run(tt.id, func(t *testing.T) {
			want := cases[tt.id]
			if v, ok := want["xds.node.user_agent_version"]; ok && v == "<as given>" {
				want["xds.node.user_agent_version"] = "1.2.3"
			}
			got, err := Render(tt.node, tt.fields)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, toMap(got)); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRender(t *testing.T) {
	odd := &corev3.Node{Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
		"none":   nil,
		"null":   structpb.NewNullValue(),
		"html":   structpb.NewStringValue("<a&b>"),
		"nan":    structpb.NewNumberValue(math.NaN()),
		"half":   structpb.NewNumberValue(0.5),
		"list":   structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewBoolValue(false)}}),
		"struct": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"z": structpb.NewNumberValue(1), "a": structpb.NewStringValue("")}}),
		"x.y":    structpb.NewStringValue("dot"),
	}}}
	tests := []struct {
		what   string
		node   *corev3.Node
		fields []string
		want   []xdstp.Param
	}{
		{"nothing asked", versioned(t), nil, []xdstp.Param{}},
		{"in order, once", versioned(t), []string{"id", "cluster", "id"}, []xdstp.Param{
			{Key: "xds.node.cluster", Value: "some_cluster"}, {Key: "xds.node.id", Value: "some_id"},
		}},
		{"nil node", nil, []string{"id", "locality.zone", "metadata", "user_agent_build_version.version"}, []xdstp.Param{
			{Key: "xds.node.id"}, {Key: "xds.node.locality.zone"},
			{Key: "xds.node.user_agent_build_version.version", Value: "0.0.0"},
		}},
		{"one key", versioned(t), []string{"metadata.bar", "metadata.absent"}, []xdstp.Param{
			{Key: "xds.node.metadata.bar", Value: `"a"`},
		}},
		{"one key of the build", built(t), []string{"user_agent_build_version.metadata.baz"}, []xdstp.Param{
			{Key: "xds.node.user_agent_build_version.metadata.baz", Value: "42"},
		}},
		{"odd values", odd, []string{"metadata"}, []xdstp.Param{
			{Key: "xds.node.metadata.half", Value: "0.5"},
			{Key: "xds.node.metadata.html", Value: `"<a&b>"`},
			{Key: "xds.node.metadata.list", Value: "[false]"},
			{Key: "xds.node.metadata.nan", Value: `"NaN"`},
			{Key: "xds.node.metadata.none", Value: "null"},
			{Key: "xds.node.metadata.null", Value: "null"},
			{Key: "xds.node.metadata.struct", Value: `{"a":"","z":1}`},
			{Key: "xds.node.metadata.x.y", Value: `"dot"`},
		}},
		{"a key with a dot", odd, []string{"metadata.x.y", "metadata.struct.z"}, []xdstp.Param{
			{Key: "xds.node.metadata.x.y", Value: `"dot"`},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			got, err := Render(tt.node, tt.fields)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownField(t *testing.T) {
	for _, field := range []string{"", "ID", "locality", "metadata.", ".foo", "metadatafoo", "build_version", "xds.node.id", "user_agent_build_version"} {
		_, err := Render(versioned(t), []string{"id", field})
		if !errors.Is(err, ErrUnknownField) || !strings.Contains(err.Error(), `"`+field+`"`) {
			t.Errorf("Render of %q: error %v", field, err)
		}
		if err := Check([]string{field}); !errors.Is(err, ErrUnknownField) {
			t.Errorf("Check of %q: error %v", field, err)
		}
	}
	if err := Check([]string{"id", "metadata", "metadata.x"}); err != nil {
		t.Error(err)
	}
}
