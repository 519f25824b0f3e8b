package testutil

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/xdstp"
)

// The life of a glob: members come, change and go; what it does not cover never comes.
func TestCollectionDeltaGlob(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	must(t, s.Set(
		named(clustersAt+"f/a?x=1&y=2", "1"), named(clustersAt+"f/b?y=2&x=1", "1"),
		named(clustersAt+"f/g/deep?x=1&y=2", "1"), named(clustersAt+"f/plain", "1"),
		named("xdstp://other/envoy.config.cluster.v3.Cluster/f/a?x=1&y=2", "1"), named("old", "1"),
	))
	p := newDeltaPeer(t, ctx, s, clusterURL)
	p.ask(clustersAt + "f/*?y=2&x=1")
	p.want(clustersAt+"f/a?x=1&y=2@1", clustersAt+"f/b?y=2&x=1@1")
	settle(t, ctx, s)
	if got, want := s.Subscribed(clusterURL), []string{clustersAt + "f/*?x=1&y=2"}; !slices.Equal(got, want) {
		t.Errorf("subscribed are %q, want %q", got, want)
	}

	must(t, s.Set(named(clustersAt+"f/c?x=1&y=2", "1"), named(clustersAt+"f/a?y=2&x=1", "2"),
		named(clustersAt+"f/b?x=1&y=2", "1"), named(clustersAt+"f/plain", "2")))
	p.want(clustersAt+"f/a?y=2&x=1@2", clustersAt+"f/c?x=1&y=2@1")
	s.Remove(clusterURL, clustersAt+"f/b?x=1&y=2", clustersAt+"f/plain", clustersAt+"f/none")
	p.want("-" + clustersAt + "f/b?y=2&x=1")

	p.ask(clustersAt + "f/*?x=1&y=2") // once more, so everything comes again
	p.want(clustersAt+"f/a?y=2&x=1@2", clustersAt+"f/c?x=1&y=2@1")
	p.leave(clustersAt + "f/*?x=1&y=2")
	settle(t, ctx, s)
	must(t, s.Set(named(clustersAt+"f/a?x=1&y=2", "3")))
	p.ask(clustersAt + "f/plain")
	p.want("-" + clustersAt + "f/plain")
}

// An empty glob is told by its own name, also when it becomes empty.
func TestCollectionDeltaEmptyGlob(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	p := newDeltaPeer(t, ctx, s, clusterURL)
	p.ask(clustersAt + "%66/*")
	p.want("-" + clustersAt + "%66/*")
	must(t, s.Set(named(clustersAt+"f/a", "1"), named(clustersAt+"f/b", "1")))
	p.want(clustersAt+"f/a@1", clustersAt+"f/b@1")
	s.Remove(clusterURL, clustersAt+"f/a")
	p.want("-" + clustersAt + "f/a")
	s.Remove(clusterURL, clustersAt+"f/b")
	p.want("-"+clustersAt+"%66/*", "-"+clustersAt+"f/b")
}

// Names are answered at once, existing or not, and anew for each time they are asked for.
func TestCollectionDeltaNames(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	must(t, s.Set(named("a", "1"), named(clustersAt+"x", "1")))
	p := newDeltaPeer(t, ctx, s, clusterURL)
	p.ask("a", "b", clustersAt+"x#fragment", clustersAt+"%78", "xdstp:bad")
	p.want("a@1", clustersAt+"x@1", "-b", "-"+clustersAt+"x#fragment", "-xdstp:bad")
	p.ask("a")
	p.want("a@1")
	p.ask("b")
	p.want("-b")
	must(t, s.Set(named("b", "1"), named("c", "1")))
	p.want("b@1")
	must(t, s.Set(named("b", "1"))) // nothing new
	s.Remove(clusterURL, "a", clustersAt+"x")
	p.want("-a", "-"+clustersAt+"%78")
	must(t, s.Set(named("a", "1"))) // as it was, but it had gone
	p.want("a@1")
	p.leave("a", "b", "never")
	settle(t, ctx, s)
	must(t, s.Set(named("a", "2"), named("b", "2"), named(clustersAt+"x", "2")))
	p.want(clustersAt + "x@2")
}

// "*" is the old-style names, and needs no words in the first request of a type.
func TestCollectionDeltaWildcard(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	p := newDeltaPeer(t, ctx, s, clusterURL)
	p.ask()
	p.want()
	must(t, s.Set(named("a", "1"), named("b", "1"), named(clustersAt+"x", "1")))
	p.want("a@1", "b@1")
	p.ask("a")
	p.want("a@1")
	p.leave("a") // the client cannot know whether "*" has it
	p.want("a@1")
	p.ask("gone")
	p.want("-gone")
	p.leave("gone")
	p.want("-gone")
	p.ask("b")
	p.want("b@1")
	p.leave("*")
	settle(t, ctx, s)
	if got := s.Subscribed(clusterURL); !slices.Equal(got, []string{"b"}) {
		t.Errorf("subscribed are %q, want b", got)
	}
	must(t, s.Set(named("a", "2"), named("b", "2")))
	p.want("b@2")
	p.ask("*")
	p.want("a@2", "b@2")
}

// A stream that resumes is told what is new and what is gone, and nothing else.
func TestCollectionDeltaResume(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	must(t, s.Set(named("a", "1"), named("b", "2"), named(clustersAt+"f/a", "1"), named(clustersAt+"f/b", "2"),
		named(clustersAt+"g/a", "1")))
	held := map[string]string{
		"a": "1", "b": "1", "gone": "1", "stranger": "1",
		clustersAt + "%66/a": "1", clustersAt + "f/b": "1", clustersAt + "f/gone": "1",
		clustersAt + "g/a": "1", clustersAt + "h/gone": "1",
	}
	p := newDeltaPeer(t, ctx, s, clusterURL)
	p.resume(held, "a", "b", "gone", "none", clustersAt+"f/*", clustersAt+"h/*")
	p.want("b@2", clustersAt+"f/b@2", "-gone", "-none",
		"-"+clustersAt+"f/gone", "-"+clustersAt+"h/*", "-"+clustersAt+"h/gone")
	must(t, s.Set(named(clustersAt+"g/a", "2"), named(clustersAt+"f/a", "2")))
	p.want(clustersAt + "f/a@2")
	p.resume(map[string]string{"a": "1"}, "a") // only the first request may say versions
	p.want("a@1")

	// Names that are all held need no response; a collection is answered all the same.
	p = newDeltaPeer(t, ctx, s, clusterURL)
	p.resume(map[string]string{"a": "1"}, "a")
	settle(t, ctx, s)
	p.ask(clustersAt + "g/*")
	p.want(clustersAt + "g/a@2")
	p = newDeltaPeer(t, ctx, s, clusterURL)
	p.resume(map[string]string{clustersAt + "g/a": "2"}, clustersAt+"g/*")
	p.want()
	p = newDeltaPeer(t, ctx, s, clusterURL)
	p.resume(map[string]string{"a": "1", "b": "2", "gone": "1"})
	p.want("-gone")
}

// A resource is found by its aliases, sent once, and told to be gone by all its names.
func TestCollectionAliases(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	set := func(version string, aliases ...string) {
		t.Helper()
		r := named("a", version)
		r.Aliases = aliases
		must(t, s.Set(r))
	}
	set("1", "b", "c")
	p := newDeltaPeer(t, ctx, s, clusterURL)
	p.ask("b", "c", "d")
	p.want("a@1", "-d")
	set("1", "b", "d")
	p.want("a@1", "-c")
	set("2", "b", "d")
	p.want("a@2")
	p.leave("b")
	p.want("a@2")
	s.Remove(clusterURL, "a")
	p.want("-a", "-d")
	set("2", "b", "d")
	p.want("a@2")
	p.leave("c", "d")
	settle(t, ctx, s)
	must(t, s.Set(named("a", "3"), named("c", "1")))
	p.ask("e")
	p.want("-e")

	full := newSotWPeer(t, ctx, s, clusterURL)
	set("3", "z")
	full.ask("z", "a")
	full.want("[a]")
}

// A TTL needs the wrapper in state of the world, and none does in delta.
func TestCollectionTTL(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	r := named("a", "")
	must(t, s.Set(r))
	p := newDeltaPeer(t, ctx, s, clusterURL)
	p.ask("a")
	without := p.take().GetResources()[0]
	r.Ttl = durationpb.New(time.Minute)
	must(t, s.Set(r))
	with := p.take().GetResources()[0]
	if with.GetTtl().AsDuration() != time.Minute || with.GetVersion() == without.GetVersion() || without.GetVersion() == "" {
		t.Errorf("delta gave TTL %v, versions %q and %q", with.GetTtl(), without.GetVersion(), with.GetVersion())
	}
	full := newSotWPeer(t, ctx, s, clusterURL)
	full.ask("a")
	full.want("[a]")
}

// So do cache control and metadata.
func TestCollectionAttributes(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	for _, change := range []func(*discoveryv3.Resource){
		func(r *discoveryv3.Resource) { r.CacheControl = &discoveryv3.Resource_CacheControl{DoNotCache: true} },
		func(r *discoveryv3.Resource) { r.Metadata = &corev3.Metadata{} },
	} {
		r := named("a", "")
		change(r)
		must(t, s.Set(r))
		p := newSotWPeer(t, ctx, s, clusterURL)
		p.ask("a")
		p.want("[a]")
	}
}

func TestCollectionRedirect(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	url := "xdstp://b/envoy.config.cluster.v3.Cluster/t?k=v#alt=xdstp://c/envoy.config.cluster.v3.Cluster/u%23entry=x,entry=e%2Cf"
	must(t, s.Redirect(clustersAt+"f/a", url))
	p := newDeltaPeer(t, ctx, s, clusterURL)
	p.ask(clustersAt + "f/*")
	got := p.take().GetResources()
	if len(got) != 1 || got[0].GetResource().GetTypeUrl() != locatorURL {
		t.Fatalf("got %v", got)
	}
	l := new(xdscorev3.ResourceLocator)
	must(t, got[0].GetResource().UnmarshalTo(l))
	want := &xdscorev3.ResourceLocator{
		Authority: "b", ResourceType: "envoy.config.cluster.v3.Cluster", Id: "t",
		ContextParamSpecifier: &xdscorev3.ResourceLocator_ExactContext{
			ExactContext: &xdscorev3.ContextParams{Params: map[string]string{"k": "v"}},
		},
		Directives: []*xdscorev3.ResourceLocator_Directive{
			{Directive: &xdscorev3.ResourceLocator_Directive_Alt{Alt: &xdscorev3.ResourceLocator{
				Authority: "c", ResourceType: "envoy.config.cluster.v3.Cluster", Id: "u",
				Directives: []*xdscorev3.ResourceLocator_Directive{
					{Directive: &xdscorev3.ResourceLocator_Directive_Entry{Entry: "x"}},
				},
			}}},
			{Directive: &xdscorev3.ResourceLocator_Directive_Entry{Entry: "e,f"}},
		},
	}
	if diff := cmp.Diff(want, l, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	must(t, s.Set(named(clustersAt+"f/a", "1"))) // the resource itself takes its place
	p.want(clustersAt + "f/a@1")

	full := newSotWPeer(t, ctx, s, clusterURL)
	must(t, s.Redirect(clustersAt+"f/b", "file:///some/path"))
	full.ask(clustersAt + "f/*")
	full.want(clustersAt+"f/a", "["+clustersAt+"f/b]")
}

func TestCollectionList(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	const list = "xdstp://au/envoy.config.cluster.v3.ClusterCollection/all"
	must(t, s.List(list,
		ListEntry{Locator: clustersAt + "a"},
		ListEntry{Locator: "http://h/envoy.config.cluster.v3.Cluster/b"},
		ListEntry{Name: "c", Version: "7", Resource: cluster("inline")}))
	p := newDeltaPeer(t, ctx, s, "type.googleapis.com/envoy.config.cluster.v3.ClusterCollection")
	p.ask(list)
	resp := p.take()
	if got := deltaText(resp); len(got) != 1 || !strings.HasPrefix(got[0], list+"@") {
		t.Fatalf("got %q", got)
	}
	want := []*xdscorev3.CollectionEntry{
		{ResourceSpecifier: &xdscorev3.CollectionEntry_Locator{Locator: &xdscorev3.ResourceLocator{
			Authority: "au", ResourceType: "envoy.config.cluster.v3.Cluster", Id: "a",
		}}},
		{ResourceSpecifier: &xdscorev3.CollectionEntry_Locator{Locator: &xdscorev3.ResourceLocator{
			Scheme: xdscorev3.ResourceLocator_HTTP, Authority: "h", ResourceType: "envoy.config.cluster.v3.Cluster", Id: "b",
		}}},
		{ResourceSpecifier: &xdscorev3.CollectionEntry_InlineEntry_{InlineEntry: &xdscorev3.CollectionEntry_InlineEntry{
			Name: "c", Version: "7", Resource: toAny(cluster("inline")),
		}}},
	}
	if diff := cmp.Diff(want, entries(t, resp.GetResources()[0].GetResource()), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	must(t, s.List(list))
	if got := entries(t, p.take().GetResources()[0].GetResource()); len(got) != 0 {
		t.Errorf("the empty list has %v", got)
	}
	s.Remove("type.googleapis.com/envoy.config.cluster.v3.ClusterCollection", list)
	p.want("-" + list)
}

// entries reads the members of a list by the message that the API has for it, one by one,
// because its field is declared to be singular.
func entries(t *testing.T, a *anypb.Any) []*xdscorev3.CollectionEntry {
	t.Helper()
	must(t, a.UnmarshalTo(new(clusterv3.ClusterCollection)))
	var out []*xdscorev3.CollectionEntry
	for b := a.GetValue(); len(b) > 0; {
		size := int(b[1]) // entries of this test are shorter than 128 bytes
		e := new(xdscorev3.CollectionEntry)
		must(t, proto.Unmarshal(b[2:2+size], e))
		out = append(out, e)
		b = b[2+size:]
	}
	return out
}

func TestCollectionFaults(t *testing.T) {
	s := StartCollectionServer(t)
	list := "xdstp://au/envoy.config.cluster.v3.ClusterCollection/all"
	for name, tt := range map[string]struct {
		err  error
		want error
	}{
		"no name":          {s.Set(named("", "1")), ErrBadResource},
		"wildcard":         {s.Set(named("*", "1")), ErrBadResource},
		"no payload":       {s.Set(Wrapped("a", "1", nil)), ErrBadResource},
		"bad name":         {s.Set(named("good", "1"), named("xdstp://au", "1")), ErrBadResource},
		"glob":             {s.Set(named(clustersAt+"*", "1")), ErrBadResource},
		"old redirect":     {s.Redirect("a", clustersAt+"b"), ErrBadResource},
		"old list":         {s.List("a"), ErrBadResource},
		"list of no list":  {s.List(clustersAt + "a"), ErrBadResource},
		"empty entry":      {s.List(list, ListEntry{}), ErrBadResource},
		"two in one entry": {s.List(list, ListEntry{Locator: clustersAt + "a", Resource: cluster("a")}), ErrBadResource},
	} {
		if !errors.Is(tt.err, tt.want) {
			t.Errorf("%s: %v, want %v", name, tt.err, tt.want)
		}
	}
	for _, err := range []error{s.Redirect(clustersAt+"a", "nowhere"), s.List(list, ListEntry{Locator: "xdstp://x"})} {
		var parse *xdstp.Error
		if !errors.As(err, &parse) {
			t.Errorf("bad URL: %v", err)
		}
	}
	if _, err := ListenServer(s.Addr()); err == nil {
		t.Error("two servers listen on one port")
	}
	// Nothing of all that is served.
	ctx := testContext(t)
	p := newDeltaPeer(t, ctx, s, clusterURL)
	p.ask("good", clustersAt+"*")
	p.want("-good", "-"+clustersAt+"*")
}
