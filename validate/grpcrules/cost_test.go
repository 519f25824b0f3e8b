package grpcrules

import (
	"runtime"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/xdswatch/xdswatch/internal/race"
)

// Regular expressions of a few bytes that repeat much cost no more than reading them.
//
// spec: H-5
func TestCostOfRegexes(t *testing.T) {
	race.SkipCost(t)
	long := &matcherv3.RegexMatcher{Regex: strings.Repeat(".{1000}", 3000)}
	route := &routev3.Route{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_SafeRegex{SafeRegex: long}},
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: "c"}}},
	}
	rc := &routev3.RouteConfiguration{Name: "r", VirtualHosts: []*routev3.VirtualHost{{Name: "v", Domains: []string{"*"}, Routes: []*routev3.Route{route, route}}}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found := (Options{}).Judge(rc)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 || len(found) > 0 {
		t.Errorf("found %v, and allocated %d bytes", found, took)
	}
}
