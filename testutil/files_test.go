package testutil

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"
	"sigs.k8s.io/yaml"
)

func TestEncodeFile(t *testing.T) {
	body, err := anypb.New(&clusterv3.Cluster{Name: "a"})
	must(t, err)
	want := &discoveryv3.DiscoveryResponse{VersionInfo: "1", Resources: []*anypb.Any{body}}
	fromYAML := func(b []byte, m proto.Message) error {
		b, err := yaml.YAMLToJSON(b)
		must(t, err)
		return protojson.Unmarshal(b, m)
	}
	for path, decode := range map[string]func([]byte, proto.Message) error{
		"a.pb": proto.Unmarshal, "a": proto.Unmarshal, "a.json": protojson.Unmarshal,
		"a.pb_text": prototext.Unmarshal, "a.yaml": fromYAML,
	} {
		b, err := EncodeFile(path, want)
		must(t, err)
		got := &discoveryv3.DiscoveryResponse{}
		must(t, decode(b, got))
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", path, diff)
		}
	}
	unknown := &anypb.Any{TypeUrl: "type.googleapis.com/no.such.Type"}
	if _, err := EncodeFile("a.yaml", unknown); err == nil {
		t.Error("an unknown type is encoded as YAML")
	}
}

// A file that is moved into place is another, and leaves nothing beside it.
func TestPlaceFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	must(t, os.WriteFile(path, []byte("old"), 0o600))
	before, err := os.Stat(path)
	must(t, err)
	must(t, PlaceFile(path, []byte("new")))
	after, err := os.Stat(path)
	must(t, err)
	if os.SameFile(before, after) {
		t.Error("the file was written in place")
	}
	if got := content(t, path); got != "new" {
		t.Errorf("content %q", got)
	}
	must(t, os.Mkdir(filepath.Join(dir, "taken"), 0o755))
	if err := PlaceFile(filepath.Join(dir, "taken"), nil); err == nil {
		t.Error("a directory was replaced")
	}
	if got := entryNames(t, dir); !slices.Equal(got, []string{"f", "taken"}) {
		t.Errorf("files %q", got)
	}
}

func TestBeginFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	must(t, os.WriteFile(path, []byte("what was there"), 0o600))
	before, err := os.Stat(path)
	must(t, err)
	finish, err := BeginFile(path, []byte("half done"), 4)
	must(t, err)
	if got := content(t, path); got != "half" {
		t.Errorf("content %q", got)
	}
	must(t, finish())
	if got := content(t, path); got != "half done" {
		t.Errorf("content %q", got)
	}
	after, err := os.Stat(path)
	must(t, err)
	if !os.SameFile(before, after) {
		t.Error("the file was replaced")
	}
}

func TestConfigMap(t *testing.T) {
	dir := t.TempDir()
	m, err := NewConfigMap(dir, map[string][]byte{"a": []byte("a1"), "b": []byte("b1")})
	must(t, err)
	if got := content(t, m.Path("a")) + content(t, m.Path("b")); got != "a1b1" {
		t.Errorf("content %q", got)
	}
	link, err := os.Lstat(m.Path("a"))
	must(t, err)
	must(t, m.Set(map[string][]byte{"a": []byte("a2"), "c": []byte("c2")}))
	if got := content(t, m.Path("a")) + content(t, m.Path("c")); got != "a2c2" {
		t.Errorf("content %q", got)
	}
	same, err := os.Lstat(m.Path("a"))
	must(t, err)
	if !os.SameFile(link, same) || link.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link of a is another: %v, %v", link.Mode(), same.Mode())
	}
	want := []string{"..data", "a", "c"} // after the directory that has them
	if got := entryNames(t, dir); len(got) != 4 || !slices.Equal(got[1:], want) {
		t.Errorf("files %q, want %q", got, want)
	}
	if _, err := NewConfigMap(filepath.Join(dir, "none"), nil); err == nil {
		t.Error("a volume in no directory")
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

func entryNames(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
