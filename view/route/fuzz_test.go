package route_test

import (
	"fmt"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/view/route"
)

// Whatever a server sends, compiling and matching it ends, without a panic.
func FuzzCompile(f *testing.F) {
	for _, text := range []string{
		`virtual_hosts: [{name: v, domains: ["*.a", "b*", "*"], routes: [
			{match: {safe_regex: {regex: "/(a|b)+"}}, route: {cluster: c, regex_rewrite: {pattern: {regex: "(a)"}, substitution: "\\1"}}},
			{match: {prefix: /, headers: [{name: h, range_match: {start: 1, end: 2}}]}, redirect: {prefix_rewrite: /x, port_redirect: 1}},
			{match: {path_separated_prefix: /a}, direct_response: {status: 200}}]}]`,
		`virtual_hosts: [{name: v, domains: ["*"], retry_policy: {}, routes: [
			{match: {prefix: "", query_parameters: [{name: q}], cookies: [{name: c, string_match: {contains: x, ignore_case: true}}]},
			 route: {weighted_clusters: {clusters: [{name: a, weight: 1}, {cluster_header: h, weight: 2}]}, host_rewrite_header: h}}]}]`,
	} {
		data, err := proto.Marshal(configuration(f, text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "b.a:80", "/a/b", "q=1&r")
	}
	f.Fuzz(func(t *testing.T, data []byte, host, path, query string) {
		rc := &routev3.RouteConfiguration{}
		if proto.Unmarshal(data, rc) != nil {
			return
		}
		table := route.Compile(rc, nil)
		r := route.Request{Host: host, Path: path, Query: query, Header: map[string][]string{"H": {query}, "Cookie": {query}}}
		found, err := table.Match(&r)
		if err != nil {
			return
		}
		choice := found.Choose(&r)
		found.RewritePath(&r)
		found.RewriteHost(&r, choice.Entry, "")
		found.Redirect(&r)
		if found.Err() != nil {
			t.Errorf("a route in fault was given: %v", found.Err())
		}
		if again := route.Compile(proto.CloneOf(rc), table); len(again.VirtualHosts()) == 1 && again.VirtualHosts()[0] != table.VirtualHosts()[0] &&
			!strings.Contains(fmt.Sprint(table.Err()), "steps together") { // one that found no room is
			t.Error("an equal virtual host was compiled again")
		}
	})
}
