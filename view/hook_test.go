package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/ecds"
	"github.com/xdswatch/xdswatch/resource/eds"
)

// What an extension configuration means for its filter.
//
// spec: VIEW-41
func TestNeedOfExtensions(t *testing.T) {
	for want, filters := range map[Need][]*hcmv3.HttpFilter{
		Essential: {extension(false, false, false), extension(false, false, true)},
		Required:  {extension(true, false, false), extension(false, true, false), extension(true, true, false)},
		Optional:  {extension(false, true, true), extension(true, true, true)},
	} {
		for i, f := range filters {
			var got []Dependency
			Extensions()[0].Find(f, func(d Dependency) { got = append(got, d) })
			if len(got) != 1 || got[0].Name != "f" || got[0].Need != want {
				t.Errorf("need %d, filter %d: %+v", want, i, got)
			}
		}
	}
}

// extension is a filter with an extension configuration.
func extension(optional, hasDefault, withoutWarming bool) *hcmv3.HttpFilter {
	d := &corev3.ExtensionConfigSource{ConfigSource: ads, ApplyDefaultConfigWithoutWarming: withoutWarming}
	if hasDefault {
		d.DefaultConfig = anyOf(&routerv3.Router{})
	}
	return &hcmv3.HttpFilter{Name: "f", IsOptional: optional, ConfigType: &hcmv3.HttpFilter_ConfigDiscovery{ConfigDiscovery: d}}
}

// With a host hooks see the chosen virtual host alone, and nothing of a listener's filter chains.
//
// spec: VIEW-3, VIEW-43
func TestHooksSeeWhatIsChosen(t *testing.T) {
	named := func(m proto.Message, name string) Hook {
		return Hook{m, func(m proto.Message, add func(Dependency)) {
			add(Dependency{ecds.Type, name + "-" + m.(interface{ GetName() string }).GetName(), nil, Required})
		}}
	}
	hooks := []Hook{named((*routev3.VirtualHost)(nil), "host"), named((*routev3.RouteConfiguration)(nil), "routes"), named((*listenerv3.Filter)(nil), "filter")}
	routes := buildRoutes("r", []string{"a.com=x", "b.com=y"})
	inline := &listenerv3.Listener{
		Name: "l",
		ApiListener: &listenerv3.ApiListener{ApiListener: anyOf(&hcmv3.HttpConnectionManager{
			RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: routes},
		})},
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{Name: "f"}}}},
	}
	for _, tt := range []struct {
		kind, host string
		message    proto.Message
		want       []string
	}{
		{"rds", "", routes, []string{"ecds host-a.com", "ecds host-b.com", "ecds routes-r"}},
		{"rds", "a.com", routes, []string{"ecds host-a.com", "ecds routes-r"}},
		{"lds", "", inline, []string{"ecds filter-f", "ecds host-a.com", "ecds host-b.com", "ecds routes-r"}},
		{"lds", "b.com", inline, []string{"ecds host-b.com", "ecds routes-r"}},
	} {
		name := tt.message.(interface{ GetName() string }).GetName()
		d := newDriver(t, []string{tt.kind, name, tt.host}[:2], nil)
		d.core.root.Host = tt.host
		d.core.hooks = newHooks(hooks, tt.host)
		d.run("start")
		d.event(tt.kind, name, client.Event[any]{Kind: client.EventUpdated, Value: tt.message})
		d.step()
		var got []string
		for w := range d.watched {
			if len(w) > 5 && w[:5] == "ecds " {
				got = append(got, w)
			}
		}
		if slices.Sort(got); !slices.Equal(got, tt.want) {
			t.Errorf("%s %q: %v are watched, want %v", tt.kind, tt.host, got, tt.want)
		}
	}
}

// Hooks see what stands in maps, as the filters' own configurations do.
//
// spec: VIEW-43
func TestHooksSeeMaps(t *testing.T) {
	routes := buildRoutes("r", []string{"a.com="})
	routes.VirtualHosts[0].TypedPerFilterConfig = map[string]*anypb.Any{"f": anyOf(wrapperspb.String("x"))}
	d := newDriver(t, []string{"rds", "r"}, nil)
	d.core.hooks = newHooks([]Hook{{(*wrapperspb.StringValue)(nil), func(m proto.Message, add func(Dependency)) {
		add(Dependency{ecds.Type, m.(*wrapperspb.StringValue).GetValue(), nil, Required})
	}}}, "")
	d.run("start")
	d.event("rds", "r", client.Event[any]{Kind: client.EventUpdated, Value: routes})
	d.step()
	if _, ok := d.watched["ecds x"]; !ok {
		t.Errorf("watched: %v", d.watched)
	}
}

// What routes cannot do without is an error of the root also where they are the root.
//
// spec: VIEW-43
func TestEssentialOfRoutes(t *testing.T) {
	d := newDriver(t, []string{"rds", "r"}, nil)
	d.core.hooks = newHooks([]Hook{{(*routev3.VirtualHost)(nil), func(_ proto.Message, add func(Dependency)) {
		add(Dependency{ecds.Type, "x", nil, Essential})
	}}}, "")
	for _, line := range []string{"start", "rds r 1 *=", "gone ecds x"} {
		d.run(line)
	}
	if s := d.core.snapshot; s == nil || !errors.Is(s.Err, client.ErrDoesNotExist) {
		t.Errorf("the root has no error: %v", s)
	}
	if d.run("ecds x 1 text"); d.core.snapshot.Err != nil {
		t.Error(d.core.snapshot.Err)
	}
}

// A hook may name clusters, as a cluster specifier plugin or an extension's configuration does. Of other
// types that the view knows it may not: nothing would ever answer for them.
//
// spec: VIEW-43
func TestHooksNameClusters(t *testing.T) {
	d := newDriver(t, []string{"lds", "l"}, nil)
	d.core.hooks = newHooks(append(Extensions(), []Hook{
		{(*routev3.VirtualHost)(nil), func(_ proto.Message, add func(Dependency)) {
			add(Dependency{cds.Type, "plugged", nil, Required})
			add(Dependency{resource.LazyOf(cds.Type), "lazy", nil, Essential})
			add(Dependency{cds.Type, "hint", nil, Optional})
			add(Dependency{eds.Type, "e", nil, Required})
		}},
		{(*routerv3.Router)(nil), func(_ proto.Message, add func(Dependency)) { add(Dependency{cds.Type, "extended", nil, Required}) }},
		{(*clusterv3.Cluster)(nil), func(m proto.Message, add func(Dependency)) {
			if m.(*clusterv3.Cluster).GetName() == "a" {
				add(Dependency{cds.Type, "sub", nil, Required})
			}
		}},
	}...), "")
	run := func(input string, want ...string) {
		t.Helper()
		if got := d.run(input); !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", input, got, want)
		}
	}
	run("start", "+ lds l")
	run("lds l 1 rds:r ecds:x", "+ ecds x", "+ rds r")
	run("rds r 1 *=a", "+ cds a", "+ cds hint", "+ cds lazy", "+ cds plugged")
	d.event("ecds", "x", client.Event[any]{Kind: client.EventUpdated, Value: &corev3.TypedExtensionConfig{Name: "x", TypedConfig: anyOf(&routerv3.Router{})}})
	run("cds a 1 static:1.1.1.1", "+ cds extended", "+ cds sub")
	run("cds sub 1 static:2.2.2.2")
	run("cds plugged 1 eds", "+ eds plugged")
	run("eds plugged 1 1.1.1.1")
	run("gone cds lazy")
	if d.core.snapshot != nil {
		t.Error("an extension's cluster is not waited for")
	}
	d.run("cds extended 1 static:1.1.1.1")
	s := d.core.snapshot
	for name, want := range map[string]Status{"a": StatusOK, "plugged": StatusOK, "lazy": StatusError, "hint": StatusWaiting, "extended": StatusOK, "sub": StatusOK} {
		c := s.Cluster(name)
		if c == nil || c.Status() != want || name != "a" && !slices.Equal(c.ReferencedBy(), []string{"hook"}) {
			t.Errorf("%s: %+v, want %v", name, c, want)
		}
	}
	if e := s.Cluster("plugged").Endpoints; e == nil || s.Routes[0].Note == nil || !strings.Contains(s.Routes[0].Note.Error(), `"e"`) {
		t.Errorf("endpoints %v, note %v", e, s.Routes[0].Note)
	}
	by := map[string][]Reference{}
	for _, w := range d.core.watched() {
		by[shortOf(w.Type)+" "+w.Name] = w.By
	}
	if len(by["cds extended"]) != 1 || by["cds extended"][0].Name != "x" || len(by["cds plugged"]) != 1 || by["cds plugged"][0].Name != "r" {
		t.Errorf("named by %v", by)
	}
}

// What hooks find in virtual hosts on demand holds nothing back, and its error is no error of the root.
//
// spec: VHDS-2, VIEW-43
func TestHooksOfHostsOnDemand(t *testing.T) {
	d := newDriver(t, []string{"rds", "r"}, nil)
	d.core.hooks = newHooks([]Hook{{(*routev3.VirtualHost)(nil), func(m proto.Message, add func(Dependency)) {
		if name := m.(*routev3.VirtualHost).GetName(); name != "own.org" {
			add(Dependency{ecds.Type, name, nil, Essential})
		}
	}}}, "")
	for _, input := range []string{"start", "rds r 1 own.org=a vhds", "cds a 1 static:1.1.1.1", "synced vhds *", "vhost r/v late.org=a"} {
		d.run(input)
	}
	if s := d.core.snapshot; len(s.Routes[0].OnDemand()) != 1 {
		t.Errorf("a virtual host waits for what a hook found: %v", show(s))
	}
	d.run("gone ecds late.org")
	if s := d.core.snapshot; s.Err != nil || s.Resource(ecds.Type.TypeURL(), "late.org").Err == nil {
		t.Errorf("the view of the root: %v", show(s))
	}
}

// Resources of one name and type from two sources are two resources.
//
// spec: VIEW-43
func TestHooksOfTwoSources(t *testing.T) {
	d := newDriver(t, []string{"rds", "r"}, nil)
	other := &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: "/x"}}}
	d.core.hooks = newHooks([]Hook{{(*clusterv3.Cluster)(nil), func(m proto.Message, add func(Dependency)) {
		d := Dependency{Type: ecds.Type, Name: "x", Need: Required}
		if m.(*clusterv3.Cluster).GetName() == "b" {
			d.Source = other
		}
		add(d)
	}}}, "")
	d.run("start")
	d.run("rds r 1 *=a")
	d.run("cds a 1 static:1.1.1.1")
	d.run("ecds x 1 one")
	delete(d.watched, "ecds x")
	d.run("rds r 2 *=a,b")
	d.run("cds b 1 static:1.1.1.1")
	d.run("bad ecds x")
	if n := count(show(d.core.snapshot), "  ecds x ok"); n != 1 {
		t.Errorf("the resource of the first source is gone: %v", show(d.core.snapshot))
	}
	d.run("rds r 3 *=a")
	if s := d.core.snapshot; s.Resource(ecds.Type.TypeURL(), "x") == nil || s.Resource(ecds.Type.TypeURL(), "x").Message == nil {
		t.Errorf("the resource of the first source went with that of the second: %v", show(s))
	}
}

// A server that names ever new sources leaves nothing behind, whether or not there is room for what they have.
//
// spec: VIEW-16
func TestSourcesOfThePast(t *testing.T) {
	for _, option := range []string{"names=10", "names=2"} {
		d := newDriver(t, []string{"rds", "r"}, []string{"grace=-1s", option})
		d.run("start")
		d.run("rds r 1 *=a")
		for i := range 100 {
			d.run("cds a 1 static:1.1.1.1")
			d.run(fmt.Sprintf("cds a %d eds path:/%d", i, i))
			d.run("bad eds a")
			d.run("cds a 1 static:1.1.1.1")
			d.run(fmt.Sprintf("cds a %d eds within:%ds", i, i+1))
			d.run("bad eds a")
		}
		d.run("cds a 1 static:1.1.1.1")
		for key := range d.core.feeds {
			if strings.ContainsRune(key, ' ') {
				t.Errorf("%s: the source %q is left", option, key)
			}
		}
	}
}

// What a hook finds that is not needed is not listed as what a snapshot waits for.
func TestHintsDoNotBlock(t *testing.T) {
	d := newDriver(t, []string{"rds", "r"}, []string{"composite"})
	for _, line := range []string{"start", "rds r 1 *=a,b", "cds a 1 static:1.1.1.1 alt:?x", "cds b 1 static:1.1.1.1 alt:+y"} {
		d.run(line)
	}
	got := map[string]bool{}
	for _, w := range d.core.watched() {
		for _, by := range w.By {
			got[by.Name+" "+w.Name] = by.Blocking
		}
	}
	want := map[string]bool{"r a": true, "r b": true, "a x": false, "b y": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
