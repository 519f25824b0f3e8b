package route_test

import (
	"slices"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/view/route"
)

// The regular expressions of a configuration have room together, whatever a few bytes repeat. One that finds none is
// a fault of its route alone, and has room once others have left.
//
// spec: H-5
func TestCostOfRegexes(t *testing.T) {
	race.SkipCost(t)
	long := &matcherv3.RegexMatcher{Regex: "/.{1000}.{1000}"}
	// Two such hosts have room, a third has not.
	many := func(name string, one func(*routev3.Route)) *routev3.VirtualHost {
		h := host(name, name)
		one(h.Routes[0])
		h.Routes = slices.Repeat(h.Routes, 220)
		return h
	}
	match := func(name string) *routev3.VirtualHost {
		return many(name, func(r *routev3.Route) {
			r.Match.PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: long}
		})
	}
	rewrite := func(name string) *routev3.VirtualHost {
		return many(name, func(r *routev3.Route) {
			r.Action = &routev3.Route_Route{Route: &routev3.RouteAction{
				ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: "c"},
				RegexRewrite:     &matcherv3.RegexMatchAndSubstitute{Pattern: long, Substitution: "/"},
			}}
		})
	}
	header := func(name string) *routev3.VirtualHost {
		return many(name, func(r *routev3.Route) {
			r.Match.Headers = []*routev3.HeaderMatcher{{Name: "h", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
				StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: long}},
			}}}
		})
	}
	check := func(table *route.Table, want string) {
		t.Helper()
		var good []string
		for _, h := range table.VirtualHosts() {
			if h.Err() == nil {
				good = append(good, h.Proto().GetName())
			} else if text := h.Err().Error(); !strings.Contains(text, "1048576 steps") || strings.Contains(text, ".{1000}") {
				t.Errorf("%s: %s", h.Proto().GetName(), text)
			}
		}
		if got := strings.Join(good, " "); got != want {
			t.Errorf("good are %q, want %q", got, want)
		}
	}
	all := []*routev3.VirtualHost{match("a"), rewrite("b"), match("c"), rewrite("d"), header("e"), host("plain", "plain")}
	first := route.Compile(&routev3.RouteConfiguration{VirtualHosts: all}, nil)
	check(first, "a b plain")
	again := route.Compile(proto.CloneOf(first.Proto()), first)
	check(again, "a b plain")
	if again.VirtualHosts()[1] != first.VirtualHosts()[1] {
		t.Error("an equal virtual host was compiled again")
	}
	check(route.Compile(&routev3.RouteConfiguration{VirtualHosts: all[1:4]}, again), "b c")
}

// One expression has bounded room too: it takes the time of each request that it is matched with.
//
// spec: H-5
func TestCostOfOneRegex(t *testing.T) {
	for expr, good := range map[string]bool{
		"/[^?]{0,1000}":                           true,
		"/[^/]{1,255}/[^/]{1,255}":                true,
		"/(" + strings.Repeat("ab|c", 5000) + ")": true, // as long as it is written
		"(.?){1000}":                              false,
		"/" + strings.Repeat(".{0,1000}", 2):      false,
	} {
		h := host("a", "*")
		h.Routes[0].Match.PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: expr}}
		table := route.Compile(&routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{h, host("plain", "plain")}}, nil)
		err := table.Err()
		if good != (err == nil) || err != nil && !strings.Contains(err.Error(), "2048 steps") {
			t.Errorf("%.40s: %v", expr, err)
		}
		if err := table.VirtualHosts()[1].Err(); err != nil {
			t.Errorf("%.40s: %v at the other host", expr, err)
		}
	}
}
