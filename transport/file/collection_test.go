package file_test

import (
	"net/url"
	"strings"
	"testing"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport/file"
)

const collectionURL = "type.googleapis.com/envoy.config.listener.v3.ListenerCollection"

// listeners is a list collection with one inline entry.
func listeners(version, entryVersion, statPrefix string) *discoveryv3.Resource {
	return &discoveryv3.Resource{Version: version, Resource: pack(&listenerv3.ListenerCollection{
		Entries: []*xdscorev3.CollectionEntry{{
			ResourceSpecifier: &xdscorev3.CollectionEntry_InlineEntry_{InlineEntry: &xdscorev3.CollectionEntry_InlineEntry{
				Name: "foo", Version: entryVersion,
				Resource: pack(&listenerv3.Listener{Name: "foo", StatPrefix: statPrefix}),
			}},
		}},
	})}
}

// A collection is one resource, which the URL of the file names.
// spec: FILE-5
func TestCollection(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{".pb", ".pb_text", ".json", ".yaml", ".conf"} {
		t.Run(suffix, func(t *testing.T) {
			path := at(t, "lds"+suffix)
			place(t, path, listeners("system.1", "resource.1", "one"))
			url := "file://" + path
			r := open(t, path)
			r.ask(collectionURL, url)
			r.wantCollection(url, listeners("system.1", "resource.1", "one"))
			place(t, path, listeners("system.2", "resource.2", "two"))
			r.wantCollection(url, listeners("system.2", "resource.2", "two"))
			r.wantNothingTold()

			got, err := file.ReadCollection(url, file.Config{})
			must(t, err)
			if got.Name != url || got.Version != "system.2" {
				t.Errorf("collection %q of version %q", got.Name, got.Version)
			}
			want := listeners("system.2", "resource.2", "two").Resource
			if diff := cmp.Diff(want, got.Resource, protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func (r *rig) wantCollection(name string, want *discoveryv3.Resource) {
	r.t.Helper()
	resp := r.response()
	if resp.Version != want.Version || resp.TypeURL != collectionURL || len(resp.Resources) != 1 {
		r.t.Fatalf("response %+v", resp)
	}
	e := resp.Resources[0]
	if string(e.Name) != name {
		r.t.Errorf("name %q, want %q", e.Name, name)
	}
	got := &anypb.Any{TypeUrl: string(e.TypeURL), Value: e.Payload}
	if diff := cmp.Diff(want.Resource, got, protocmp.Transform()); diff != "" {
		r.t.Errorf("(-want +got)\n%s", diff)
	}
}

// Which name a collection has: the one that was asked for, if that is a URL of the file; or
// the one that it gives itself; or the file's.
func TestCollectionName(t *testing.T) {
	t.Parallel()
	path := at(t, "lds.pb")
	local := (&url.URL{Scheme: "file", Path: path}).String()
	host := (&url.URL{Scheme: "file", Host: "localhost", Path: path}).String()
	tests := []struct{ own, asked, want string }{
		{"", local, local},
		{"own", host, host},
		{"own", "file:///elsewhere", "own"},
		{"own", "own", "own"},
		{"", "*", local},
	}
	for _, tt := range tests {
		list := listeners("1", "1", "one")
		list.Name = tt.own
		place(t, path, list)
		r := open(t, path)
		r.ask(collectionURL, tt.asked)
		r.want("1|" + tt.want)
		got, err := file.ReadCollection(path, file.Config{})
		must(t, err)
		if want := tt.own; want == "" && got.Name != local || want != "" && got.Name != want {
			t.Errorf("read as %q", got.Name)
		}
	}
}

// A Resource of another type keeps its name, and all that it says.
func TestSingleResource(t *testing.T) {
	t.Parallel()
	path := at(t, "one.yaml")
	place(t, path, &discoveryv3.Resource{
		Name: "c", Version: "7", Resource: pack(&clusterv3.Cluster{Name: "x"}), Aliases: []string{"d"},
		CacheControl: &discoveryv3.Resource_CacheControl{DoNotCache: true},
		Metadata:     &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"k": {}}},
	})
	r := open(t, path)
	r.ask(clusterURL, "c")
	e := r.response().Resources[0]
	if string(e.Name) != "c" || len(e.Attributes.Aliases) != 1 || !e.Attributes.DoNotCache || len(e.Attributes.Metadata) == 0 {
		t.Errorf("%s has %+v", e.Name, e.Attributes)
	}
}

func TestReadCollectionFails(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.yaml")
	place(t, path, answer("1", "a"))
	_, err := file.ReadCollection(path, file.Config{})
	wantIs(t, err, file.ErrNotCollection)
	must(t, testutil.PlaceFile(path, []byte("what")))
	_, err = file.ReadCollection(path, file.Config{})
	if err == nil || !strings.Contains(err.Error(), `"`+path+`": YAML: want an object`) {
		t.Errorf("error %v", err)
	}
	_, err = file.ReadCollection("file:///no/such/file", file.Config{})
	if err == nil || err.Error() != `file "/no/such/file": no such file or directory` {
		t.Errorf("error %v", err)
	}
}

// Resources in a wrapper have its name, whatever the format.
// spec: FILE-4
func TestWrapped(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{".pb", ".pb_text", ".json", ".yaml"} {
		path := at(t, "cds"+suffix)
		resp := &discoveryv3.DiscoveryResponse{VersionInfo: "1"}
		for _, name := range []string{"one", "two"} {
			resp.Resources = append(resp.Resources, pack(&discoveryv3.Resource{Name: name, Resource: pack(&clusterv3.Cluster{})}))
		}
		place(t, path, proto.CloneOf(resp))
		r := open(t, path)
		r.ask(clusterURL)
		r.want("1|one|two")
	}
}

// Without a version of its own a file has one that is made of its content.
func TestOwnVersion(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.yaml")
	place(t, path, answer("", "a"))
	r := open(t, path)
	r.ask(clusterURL)
	one := r.response()
	place(t, path, answer("", "b"))
	two := r.response()
	if len(one.Version) != 16 || len(two.Version) != 16 || one.Version == two.Version {
		t.Errorf("versions %q and %q", one.Version, two.Version)
	}
}

// A file of a list collection that becomes one without any is a bad file: what is held stays.
//
// spec: C-2 FILE-4 FILE-5
func TestCollectionIsLost(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{}`, `{"resources":[]}`, `{"version_info":"2"}`, `{"type_url":"` + collectionURL + `","resources":[]}`} {
		path := at(t, "lds.json")
		name := "file://" + path
		place(t, path, listeners("1", "1", "one"))
		r := open(t, path)
		r.ask(collectionURL, name)
		r.want("1|" + name)
		must(t, testutil.PlaceFile(path, []byte(text)))
		r.wantTold("not a Resource with a list collection")
		resp := r.response()
		if len(resp.Resources) != 0 || len(resp.Errors) != 1 || string(resp.Errors[0].Name) != name || !strings.Contains(resp.Errors[0].Message, "not a Resource") {
			t.Errorf("%s: response %+v, want an error of the collection", text, resp)
		}
		place(t, path, listeners("2", "2", "two"))
		r.wantTold("")
		r.want("2|" + name)
		if _, err := file.ReadCollection(path, file.Config{}); err != nil {
			t.Error(err)
		}
	}
}
