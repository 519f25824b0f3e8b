package view

import (
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/ecds"
	"github.com/xdswatch/xdswatch/resource/eds"
)

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
		{(*clusterv3.Cluster)(nil), func(_ proto.Message, add func(Dependency)) { add(Dependency{cds.Type, "sub", nil, Required}) }},
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
	run("cds a 1 static:1.1.1.1", "+ cds extended")
	run("cds plugged 1 eds", "+ eds plugged")
	run("eds plugged 1 1.1.1.1")
	run("gone cds lazy")
	if d.core.snapshot != nil {
		t.Error("an extension's cluster is not waited for")
	}
	d.run("cds extended 1 static:1.1.1.1")
	s := d.core.snapshot
	for name, want := range map[string]Status{"a": StatusOK, "plugged": StatusOK, "lazy": StatusError, "hint": StatusWaiting, "extended": StatusOK} {
		c := s.Cluster(name)
		if c == nil || c.Status() != want || name != "a" && !slices.Equal(c.ReferencedBy(), []string{"hook"}) {
			t.Errorf("%s: %+v, want %v", name, c, want)
		}
	}
	if e := s.Cluster("plugged").Endpoints; e == nil || s.Routes[0].Note == nil || !strings.Contains(s.Routes[0].Note.Error(), `"e"`) {
		t.Errorf("endpoints %v, note %v", e, s.Routes[0].Note)
	}
	if note := s.Cluster("a").Note(); note == nil || !strings.Contains(note.Error(), `"sub"`) {
		t.Errorf("the note of a cluster is %v", note)
	}
	by := map[string][]Reference{}
	for _, w := range d.core.watched() {
		by[shortOf(w.Type)+" "+w.Name] = w.By
	}
	if len(by["cds extended"]) != 1 || by["cds extended"][0].Name != "x" || len(by["cds plugged"]) != 1 || by["cds plugged"][0].Name != "r" {
		t.Errorf("named by %v", by)
	}
}
