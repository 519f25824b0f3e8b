package file_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// faults are what may take the place of a good file in YAML, and how that is told.
var faults = map[string]struct {
	put  func(t *testing.T, path string)
	want string
}{
	"directory": {func(t *testing.T, path string) {
		must(t, os.Remove(path))
		must(t, os.Mkdir(path, 0o755))
	}, "not a regular file"},
	"deleted":         {func(t *testing.T, path string) { must(t, os.Remove(path)) }, "no such file or directory"},
	"moved directory": {func(t *testing.T, path string) { must(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+".away")) }, "no such file or directory"},
	"loop": {func(t *testing.T, path string) {
		must(t, os.Symlink(filepath.Base(path), path+".new"))
		must(t, os.Rename(path+".new", path))
	}, "too many levels of symbolic links"},
	"GiB of zeros": {func(t *testing.T, path string) {
		must(t, os.WriteFile(path+".new", nil, 0o644))
		must(t, os.Truncate(path+".new", 1<<30))
		must(t, os.Rename(path+".new", path))
	}, "larger than the limit of 67108864 bytes"},
	"zeros": {bytesOf(make([]byte, 1<<20)), "control characters are not allowed"},
	"empty": {textOf(""), "the file is empty"},
	"bomb":  {textOf(laughs()), "excessive aliasing"},
	"torn":  {textOf("resources:\n- '@type': "), "YAML"},
}

// Whatever takes the place of a file, those who watch a name, a wildcard or the list in it
// hear of it once, hold what they held, and hear once that it is over.
// spec: FILE-4 FILE-5
func TestClientFaults(t *testing.T) {
	list := func(version string) proto.Message {
		return &discoveryv3.Resource{Version: version, Resource: pack(&clusterv3.ClusterCollection{
			Entries: &xdscorev3.CollectionEntry{ResourceSpecifier: &xdscorev3.CollectionEntry_InlineEntry_{
				InlineEntry: &xdscorev3.CollectionEntry_InlineEntry{Name: "a", Resource: pack(&clusterv3.Cluster{Name: "a", AltStatName: version})},
			}},
		})}
	}
	all := func(version string) proto.Message { return clusters(version, "a", version) }
	for kind, content := range map[string]func(version string) proto.Message{"name": all, "wildcard": all, "list": list} {
		for name, fault := range faults {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "xds", "c.yaml")
				must(t, os.Mkdir(filepath.Dir(path), 0o755))
				place(t, path, content("1"))
				p := start(t, path)
				whole, member := "*", "a"
				switch kind {
				case "name":
					whole = "a"
					p.watch(cds.Type, "a")
					p.wantExactly("updated a 1@1")
				case "list":
					whole, member = "file://"+path, "file://"+path+"#entry=a"
					fallthrough
				default:
					p.watchAll(cds.Type, whole)
					p.wantExactly("updated " + member + " 1@1")
					p.wantExactly("synced " + whole)
				}
				for _, version := range []string{"1", "2"} {
					fault.put(t, path)
					p.wantPast(fault.want, func(got string) bool {
						return strings.HasPrefix(got, "ambient error "+whole+": ") && strings.Contains(got, `file "`+path+`": `) && strings.Contains(got, fault.want)
					})
					must(t, os.RemoveAll(filepath.Dir(path)+".away"))
					restore(t, path, encode(t, path, content(version)))
					if version == "2" {
						p.wantPast("updated "+member, func(got string) bool { return got == "updated "+member+" 2@2" })
					}
					if version == "1" || kind != "name" { // the update of a name says that all is well
						p.wantPast("the end of trouble", func(got string) bool { return got == "recovered "+whole })
					}
				}
				p.wantQuiet()
			})
		}
	}
}

// restore puts a file in the place of whatever is there.
func restore(t *testing.T, path string, data []byte) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		must(t, os.Remove(path))
	}
	must(t, testutil.PlaceFile(path, data))
}

// wantPast waits for an event, past those of a path that is seen empty for a moment.
func (p *program) wantPast(want string, is func(got string) bool) {
	p.t.Helper()
	for got := p.next(want); !is(got); got = p.next(want) {
		if !strings.HasPrefix(got, "ambient error ") || !strings.HasSuffix(got, "no such file or directory") {
			p.t.Fatalf("event %q, want %q", got, want)
		}
	}
}
