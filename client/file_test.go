package client_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport/file"
)

// desk is a client with a directory of files, of which one has the names of authority a.
type desk struct {
	t      *testing.T
	dir    string
	c      *client.Client
	events chan string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir(), events: make(chan string, 1000)}
	d.put("a.pb", &discoveryv3.DiscoveryResponse{})
	a := bootstrap.ManagementServer{URI: "a", Carrier: &bootstrap.File{Path: d.path("a.pb")}}
	c, err := client.New(client.Config{
		Bootstrap: &bootstrap.Config{
			Authorities: map[string]bootstrap.Authority{"a": {Servers: []bootstrap.ManagementServer{a}}}, Servers: []bootstrap.ManagementServer{a},
		},
		File: file.Config{Settle: 20 * time.Millisecond, Recheck: time.Hour},
	})
	must(t, err)
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
	})
	d.c = c
	return d
}

func (d *desk) path(name string) string { return filepath.Join(d.dir, name) }
func (d *desk) url(name string) string  { return "file://" + d.path(name) }

func (d *desk) put(name string, m proto.Message) {
	d.t.Helper()
	b, err := testutil.EncodeFile(name, m)
	must(d.t, err)
	d.write(name, string(b))
}

func (d *desk) write(name, text string) {
	d.t.Helper()
	must(d.t, testutil.PlaceFile(d.path(name), []byte(text)))
}

// puts has authority a hold clusters, by id and alt_stat_name.
func (d *desk) puts(version string, clusters ...string) {
	d.t.Helper()
	r := &discoveryv3.DiscoveryResponse{VersionInfo: version}
	for i := 0; i < len(clusters); i += 2 {
		body, err := anypb.New(cluster(clusters[i], clusters[i+1]))
		must(d.t, err)
		entry, err := anypb.New(&discoveryv3.Resource{Name: at("a", clusters[i]), Resource: body})
		must(d.t, err)
		r.Resources = append(r.Resources, entry)
	}
	d.put("a.pb", r)
}

func (d *desk) hear(ev client.Event[any]) {
	text, _, _ := strings.Cut(lines([]client.Event[any]{ev})[0], ": ") // but what the server says
	d.events <- shortNames.Replace(strings.ReplaceAll(text, d.dir, "DIR"))
}

func (d *desk) all(url string) *client.Watch {
	d.t.Helper()
	w, err := d.c.WatchAll(d.t.Context(), cds.Type, url, func(b client.Batch[any]) {
		for _, ev := range b.Events {
			d.hear(ev)
		}
	})
	must(d.t, err)
	return w
}

// heard compares the next events.
func (d *desk) heard(want ...string) {
	d.t.Helper()
	ctx := untilDone(d.t)
	for _, text := range want {
		select {
		case got := <-d.events:
			if got != text {
				d.t.Errorf("heard %q, want %q", got, text)
			}
		case <-ctx.Done():
			d.t.Fatalf("heard nothing, want %q", text)
		}
	}
}

func versioned(version string, list *anypb.Any) *discoveryv3.Resource {
	return &discoveryv3.Resource{Version: version, Resource: list}
}

// The list collection in a file is one like any other: inline entries, with names or without,
// and locators, which lead to who answers for them.
// spec: FILE-5 COLL-3 COLL-4 COLL-5
func TestFileList(t *testing.T) {
	d := newDesk(t)
	d.puts("1", "x", "")
	d.put("list.pb", versioned("10", listing(
		inline("e", "5", cluster("e", "")), inline("", "", cluster("unnamed", "")), member(at("a", "x")),
		&xdscorev3.CollectionEntry{ResourceSpecifier: &xdscorev3.CollectionEntry_Locator{
			Locator: &xdscorev3.ResourceLocator{Scheme: xdscorev3.ResourceLocator_FILE, Id: "etc/passwd"},
		}},
		inline("e2", "", redirect(at("a", "x"))),
	)))
	w := d.all(d.url("list.pb"))
	d.heard(
		"updated file://DIR/list.pb#entry=e 5", "updated file://DIR/list.pb#1 10", "failed file:///etc/passwd rejected",
		"updated file://DIR/list.pb#entry=e2 1 via a/x", "updated a/x 1", "synced file://DIR/list.pb",
	)
	must(t, d.c.Ready(t.Context()))

	d.put("list.pb", versioned("11", listing(inline("e", "5", cluster("e", "")), inline("", "", cluster("other", "")), member(at("a", "x")))))
	d.heard("updated file://DIR/list.pb#1 11", "does not exist file:///etc/passwd removed", "does not exist file://DIR/list.pb#entry=e2 removed")
	d.puts("2", "x", "2")
	d.heard("updated a/x 2")

	// Trouble with the file takes nothing away, and is told once, and its end too.
	must(t, os.Rename(d.path("list.pb"), d.path("old.pb")))
	d.heard("ambient error file://DIR/list.pb data")
	must(t, os.Symlink("old.pb", d.path("list.pb")))
	d.heard("recovered file://DIR/list.pb")
	d.put("next.pb", versioned("12", listing(inline("e", "5", cluster("e", "")))))
	must(t, os.Symlink("next.pb", d.path("link")))
	must(t, os.Rename(d.path("link"), d.path("list.pb")))
	d.heard("does not exist file://DIR/list.pb#1 removed", "does not exist a/x removed")
	d.write("list.pb", "what")
	d.heard("ambient error file://DIR/list.pb data")
	d.put("list.pb", versioned("13", listing()))
	d.heard("does not exist file://DIR/list.pb#entry=e removed", "recovered file://DIR/list.pb")
	w.Stop()
}

const listYAML = `
version: "1"
resource:
  "@type": type.googleapis.com/envoy.config.cluster.v3.ClusterCollection
  entries:
  - inline_entry: {name: e, resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: e}}
  - locator: {resource_type: envoy.config.cluster.v3.Cluster, id: x, authority: a}
`

// A collection of Clusters may have any number of entries in words too, though Envoy's message
// has room for one, which may be written as Envoy would read it.
// spec: FILE-5 COLL-2
func TestFileListInWords(t *testing.T) {
	const text = `version: "1" resource { [type.googleapis.com/envoy.config.cluster.v3.ClusterCollection] {
		entries { inline_entry { name: "e" resource { [type.googleapis.com/envoy.config.cluster.v3.Cluster] { name: "e" } } } }
		entries { locator { resource_type: "envoy.config.cluster.v3.Cluster" id: "x" authority: "a" } } } }`
	const one = `{"version":"1","resource":{"@type":"type.googleapis.com/envoy.config.cluster.v3.ClusterCollection",
		"entries":{"inline_entry":{"name":"e","resource":{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","name":"e"}}}}}`
	for name, content := range map[string]string{"list.yaml": listYAML, "list.txtpb": text, "one.json": one} {
		d := newDesk(t)
		d.puts("1", "x", "")
		d.write(name, content)
		d.all(d.url(name))
		d.heard("updated file://DIR/" + name + "#entry=e 1")
		if name != "one.json" {
			d.heard("updated a/x 1")
		}
		d.heard("synced file://DIR/" + name)
	}
}

// One entry of a file's list may be watched, or had, by itself, with an alternative for while
// the file is away.
// spec: FILE-5 ENTRY-1 ALT-1
func TestFileEntry(t *testing.T) {
	d := newDesk(t)
	d.puts("1", "x", "alternative")
	name := withAlt(d.url("list.pb"), at("a", "x")) + ",entry=e"
	_, err := d.c.Watch(t.Context(), cds.Type, name, d.hear)
	must(t, err)
	d.heard("updated file://DIR/list.pb#alt=a/x,entry=e 1 via a/x",
		"ambient error file://DIR/list.pb#alt=a/x,entry=e connection via a/x")
	d.put("list.pb", versioned("7", listing(inline("e", "", cluster("e", "")))))
	d.c.ResetBackoff()
	d.heard("updated file://DIR/list.pb#alt=a/x,entry=e 7")
	ev, err := d.c.Get(untilDone(t), cds.Type, d.url("list.pb")+"#entry=e")
	must(t, err)
	if ev.Version != "7" || ev.Server != d.url("list.pb") {
		t.Errorf("got %+v", ev)
	}
	d.put("list.pb", versioned("8", listing(inline("f", "", cluster("f", "")))))
	d.heard("does not exist file://DIR/list.pb#alt=a/x,entry=e not-found")

	_, err = d.c.Watch(t.Context(), cds.Type, d.url("none.pb")+"#entry=e", func(ev client.Event[any]) { d.events <- fmt.Sprint(ev.Err) })
	must(t, err)
	url := d.url("none.pb")
	d.heard(fmt.Sprintf(`xds: %s "%s#entry=e" of server %q for node "": the server cannot be reached: management server %q: no stream: file %q: no such file or directory`,
		clusterName, url, url, url, d.path("none.pb")))
}

// Other spellings of a path are the same file, and each is answered.
// spec: FILE-5
func TestFileSpelledOtherwise(t *testing.T) {
	d := newDesk(t)
	d.put("l ist.pb", versioned("1", listing(inline("e", "", cluster("e", "")))))
	d.all(d.url("l%20ist.pb"))
	d.heard("updated file://DIR/l ist.pb#entry=e 1", "synced file://DIR/l ist.pb")
	d.all("file://" + d.dir + "/.//l ist.pb")
	d.heard("updated file://DIR/.//l ist.pb#entry=e 1", "synced file://DIR/.//l ist.pb")
	d.put("l ist.pb", versioned("2", listing(inline("e", "", cluster("f", "")))))
	d.heard("updated file://DIR/.//l ist.pb#entry=e 2", "updated file://DIR/l ist.pb#entry=e 2")
}

// A file of another type, or of no list, is no collection.
// spec: FILE-5
func TestFileOfOtherType(t *testing.T) {
	d := newDesk(t)
	d.put("list.pb", versioned("1", listing(inline("e", "", cluster("e", "")))))
	_, err := d.c.WatchAll(t.Context(), lds.Type, d.url("list.pb"), func(b client.Batch[any]) {
		for _, ev := range b.Events {
			d.events <- fmt.Sprint(ev.Kind, " ", ev.Err)
		}
	})
	must(t, err)
	select {
	case got := <-d.events:
		if !strings.HasPrefix(got, "failed ") || !strings.Contains(got, "ClusterCollection\" and was asked for") {
			t.Errorf("heard %q", got)
		}
	case <-untilDone(t).Done():
		t.Error("heard nothing")
	}
}

// spec: FILE-5 XDSTP-6
func TestFileNamesRefused(t *testing.T) {
	d := newDesk(t)
	watch := func(name string) error {
		_, err := d.c.Watch(t.Context(), cds.Type, name, d.hear)
		return err
	}
	all := func(name string) error {
		_, err := d.c.WatchAll(t.Context(), cds.Type, name, func(client.Batch[any]) {})
		return err
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{watch(d.url("x") + "#alt=xdstp://a/" + clusterName + "/x"), "the file holds a list collection"},
		{watch(d.url("x") + "#what=x"), "neither alt= nor entry="},
		{watch(withAlt(at("a", "x"), d.url("x")+"#entry=e")), "the alternative: locator \"file://"},
		{watch(withAlt(d.url("x"), d.url("y")+"#entry=e") + ",entry=e"), "the alternative: locator \"file://"},
		{all(d.url("x") + "#entry=e"), "an inline entry is one resource"},
		{all("file:///"), "is empty"},
		{all("file://host/x"), "it is no collection"},
	} {
		if re := (*client.ResourceError)(nil); !errors.As(c.err, &re) || re.Kind != client.ErrorConfig || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("error %v, want %q", c.err, c.want)
		}
	}
}

// An Envoy bootstrap may have nothing but files of lists.
// spec: BOOTE-2 FILE-5
func TestStartupOfFileList(t *testing.T) {
	d := newDesk(t)
	d.write("list.yaml", strings.Replace(listYAML, "  - locator", "# - locator", 1))
	boot, err := bootstrap.Parse("envoy", []byte(`{"node":{"id":"a","cluster":"b"},"dynamic_resources":{"cds_resources_locator":"`+d.url("list.yaml")+`"}}`))
	must(t, err)
	c, err := client.New(client.Config{Bootstrap: boot})
	must(t, err)
	defer c.Close()
	for _, s := range boot.Startup {
		_, err := c.WatchAll(t.Context(), cds.Type, s.Collection, func(b client.Batch[any]) {
			for _, ev := range b.Events {
				d.hear(ev)
			}
		}, client.AtStartup(s))
		must(t, err)
	}
	d.heard("updated file://DIR/list.yaml#entry=e 1", "synced file://DIR/list.yaml")
}

// A wildcard that begins after names of a file were watched has all of the file, and those that come later.
// spec: FILE-3 WILD-1
func TestFileAllAfterName(t *testing.T) {
	d := newDesk(t)
	hold := func(names ...string) {
		r := &discoveryv3.DiscoveryResponse{VersionInfo: "1"}
		for _, name := range names {
			body, err := anypb.New(cluster(name, "1"))
			must(t, err)
			r.Resources = append(r.Resources, body)
		}
		d.put("a.pb", r)
	}
	hold("x", "y")
	one, err := d.c.Watch(t.Context(), cds.Type, "x", d.hear)
	must(t, err)
	d.heard("updated x 1")
	all := d.all("*")
	d.heard("updated x 1", "updated y 1", "synced *")
	hold("x", "y", "z")
	d.heard("updated z 1")
	all.Stop()
	hold("z")
	d.heard("does not exist x absent")
	one.Stop()
}
