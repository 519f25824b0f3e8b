package view

import (
	"slices"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/ecds"
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
