package file_test

import (
	"os"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"sigs.k8s.io/yaml"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// cases are the scenarios of testdata/filesystem.yaml, which gathers what Envoy's tests ask
// of its subscriptions to files, as seen by the watches of a client.
var cases = map[string]func(*testing.T){
	"ev-file-initial": func(t *testing.T) {
		path := at(t, "cds.json")
		place(t, path, clusters("1", "a", "one"))
		p := start(t, path)
		p.watch(cds.Type, "a")
		p.want("updated a one@1")
	},
	"ev-file-bad-json": func(t *testing.T) {
		path := at(t, "cds.json")
		must(t, testutil.PlaceFile(path, []byte(";!@#badjso n")))
		p := start(t, path)
		p.watch(cds.Type, "a")
		p.want("failed a: ", "JSON, line 1:1: invalid character")
		place(t, path, clusters("1", "a", "one"))
		p.want("updated a one@1")
	},
	"ev-file-bad-watch": func(t *testing.T) {
		path := at(t, "cds.json")
		place(t, path, clusters("1", "a", "one"))
		p := start(t, path, func(s *sourceConfig, _ *carrierConfig) { s.WatchedDirectory = at(t, "none") })
		p.watch(cds.Type, "a")
		p.want("failed a: ", "no such file or directory")
	},
	"ev-file-generic": func(t *testing.T) {
		path := at(t, "cds.yaml")
		place(t, path, clusters("0", "a", "zero"))
		p := start(t, path)
		p.watch(cds.Type, "a")
		p.want("updated a zero@0")
		bad := answer("1")
		bad.Resources = append(bad.Resources, pack(&clusterv3.Cluster{Name: "a", ConnectTimeout: durationpb.New(-1)}))
		place(t, path, bad)
		p.want("ambient error a: ", "ConnectTimeout")
		if got := versionOf(t, p.client, "a"); got != "0" {
			t.Errorf("version %q after a version was refused, want 0", got)
		}
		place(t, path, clusters("2", "a", "two"))
		p.want("updated a two@2")
		if got := versionOf(t, p.client, "a"); got != "2" {
			t.Errorf("version %q, want 2", got)
		}
	},
	"ev-filecol-inline": func(t *testing.T) {
		path := at(t, "lds.yaml")
		url := "file://" + path
		place(t, path, listeners("system.1", "resource.1", "one"))
		p := start(t, path)
		p.watch(collections, url)
		p.want("updated "+url, "foo@resource.1 one@system.1")
		place(t, path, listeners("system.2", "resource.2", "two"))
		p.want("updated "+url, "foo@resource.2 two@system.2")
	},
	"ev-filecol-unknown-fields": func(t *testing.T) {
		path := at(t, "lds.yaml")
		must(t, testutil.PlaceFile(path, []byte(`
version: system.1
resource:
  "@type": type.googleapis.com/envoy.config.listener.v3.ListenerCollection
  entries:
  - inline_entry:
      name: foo
      version: resource.1
      resource:
        "@type": type.googleapis.com/envoy.config.listener.v3.Listener
        name: foo
        foo: bar
`)))
		p := start(t, path)
		p.watch(collections, "file://"+path)
		p.want("failed file://", `resource.entries[0].inline_entry.resource: an unknown field`)
	},
}

// collections are read as text: each entry and its body.
var collections = resource.Custom(collectionURL, resource.Options{}, decodeCollection)

func decodeCollection(src resource.Source, b []byte) (summary, error) {
	list, err := resource.Proto[*listenerv3.ListenerCollection](resource.Options{}).Decode(src, b)
	if err != nil {
		return "", err
	}
	var s summary
	for _, e := range list.(*listenerv3.ListenerCollection).GetEntries() {
		inline := e.GetInlineEntry()
		body := &listenerv3.Listener{}
		if err := inline.GetResource().UnmarshalTo(body); err != nil {
			return "", err
		}
		s += summary(inline.GetName() + "@" + inline.GetVersion() + " " + body.GetStatPrefix())
	}
	return s, nil
}

// summary is shown in events as a cluster's alt_stat_name is.
type summary string

func (s summary) GetAltStatName() string { return string(s) }

func versionOf(t *testing.T, c *client.Client, name string) string {
	t.Helper()
	for _, r := range c.Dump() {
		if r.Name == name {
			return r.Version
		}
	}
	t.Fatalf("%s is not in the dump", name)
	return ""
}

// Every scenario is a test.
func TestCases(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/filesystem.yaml")
	must(t, err)
	var listed struct{ Scenarios []struct{ ID string } }
	must(t, yaml.Unmarshal(data, &listed))
	var ids []string
	for _, s := range listed.Scenarios {
		ids = append(ids, s.ID)
		test := cases[s.ID]
		if test == nil {
			t.Errorf("%s is no test", s.ID)
			continue
		}
		t.Run(s.ID, test)
	}
	for id := range cases {
		if !slices.Contains(ids, id) {
			t.Errorf("%s is no scenario", id)
		}
	}
}
