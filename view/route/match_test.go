package route_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/view/route"
)

// matches is whether a route with the given match, as YAML, takes a request.
func matches(t *testing.T, match string, r route.Request) bool {
	t.Helper()
	table := good(t, `virtual_hosts: [{name: v, domains: ["*"], routes: [{match: `+match+`, non_forwarding_action: {}}]}]`)
	_, err := table.Match(&r)
	if err != nil && !errors.Is(err, route.ErrNoRoute) {
		t.Fatal(err)
	}
	return err == nil
}

func TestPaths(t *testing.T) {
	tests := []struct {
		match string
		yes   []string
		no    []string
	}{
		{`{prefix: /a}`, []string{"/a", "/ab", "/a/b"}, []string{"/", "/A", ""}},
		{`{prefix: ""}`, []string{"/", "", "*"}, nil},
		{`{prefix: /a, case_sensitive: true}`, []string{"/a"}, []string{"/A"}},
		{`{prefix: /a, case_sensitive: false}`, []string{"/A/b", "/ab"}, []string{"/b"}},
		{`{path: /a}`, []string{"/a"}, []string{"/a/", "/A", "/ab"}},
		{`{path: /a, case_sensitive: false}`, []string{"/a", "/A"}, []string{"/a/"}},
		{`{path_separated_prefix: /api/dev}`, []string{"/api/dev", "/api/dev/", "/api/dev/v1"}, []string{"/api/developer", "/api", "/API/dev"}},
		{`{path_separated_prefix: /api, case_sensitive: false}`, []string{"/API/x"}, []string{"/APIx"}},
		{`{safe_regex: {regex: "/[ab]c?"}}`, []string{"/a", "/bc"}, []string{"/", "/ab", "x/a"}},
		{`{safe_regex: {regex: "/a|/b"}}`, []string{"/a", "/b"}, []string{"/ab", "/a/b"}},
		{`{safe_regex: {regex: "(?i)/a"}}`, []string{"/A"}, []string{"/A/"}},
		{`{safe_regex: {regex: "/a.*\\Q"}, case_sensitive: false}`, []string{"/abc"}, []string{"/A"}},
		{`{connect_matcher: {}}`, nil, []string{"/"}},
	}
	for _, tt := range tests {
		for _, path := range tt.yes {
			if !matches(t, tt.match, route.Request{Path: path, Query: "q=/a"}) {
				t.Errorf("%s does not match %q", tt.match, path)
			}
		}
		for _, path := range tt.no {
			if matches(t, tt.match, route.Request{Path: path, Query: "q=/a"}) {
				t.Errorf("%s matches %q", tt.match, path)
			}
		}
	}
	// HTTP/1.1's CONNECT has no path, and nothing but connect_matcher matches it.
	for match, want := range map[string]bool{`{connect_matcher: {}}`: true, `{prefix: ""}`: false, `{safe_regex: {regex: ".*"}}`: false} {
		if got := matches(t, match, route.Request{Method: "CONNECT"}); got != want {
			t.Errorf("%s matches CONNECT: %v, want %v", match, got, want)
		}
	}
	if !matches(t, `{prefix: /a}`, route.Request{Method: "CONNECT", Path: "/a"}) {
		t.Error("an extended CONNECT is not matched by its path")
	}
}

func TestPathParameters(t *testing.T) {
	table := good(t, `
ignore_path_parameters_in_path_matching: true
virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {path: /a}, non_forwarding_action: {}}]}]`)
	if _, err := table.Match(&route.Request{Path: "/a;v=1"}); err != nil {
		t.Error(err)
	}
	if matches(t, `{path: /a}`, route.Request{Path: "/a;v=1"}) {
		t.Error("path parameters are ignored unasked")
	}
}

// A header that is missing fails each condition on its value, inverted or not, unless it counts
// as empty: the rows are HeaderMatcher's documentation.
func TestHeaders(t *testing.T) {
	const absent = "(absent)"
	tests := []struct {
		matcher string
		yes     []string
		no      []string
	}{
		{`{}`, []string{"", "x"}, []string{absent}},
		{`{present_match: true}`, []string{"", "x"}, []string{absent}},
		{`{present_match: false}`, []string{absent}, []string{"", "x"}},
		{`{present_match: true, invert_match: true}`, []string{absent}, []string{"", "x"}},
		{`{present_match: false, invert_match: true}`, []string{"", "x"}, []string{absent}},
		{`{present_match: true, treat_missing_header_as_empty: true}`, []string{"", absent}, nil},
		{`{exact_match: a}`, []string{"a"}, []string{"A", "ab", "", absent}},
		{`{exact_match: a, invert_match: true}`, []string{"A", "ab", ""}, []string{"a", absent}},
		{`{prefix_match: ab}`, []string{"ab", "abc"}, []string{"a", "xab", absent}},
		{`{suffix_match: bc}`, []string{"bc", "abc"}, []string{"c", "bcx", absent}},
		{`{contains_match: b}`, []string{"b", "abc"}, []string{"B", absent}},
		{`{safe_regex_match: {regex: "\\d{3}"}}`, []string{"123"}, []string{"1234", "x", absent}},
		{`{safe_regex_match: {regex: "\\d{3}"}, invert_match: true}`, []string{"1234"}, []string{"123", absent}},
		{`{range_match: {start: -10, end: 0}}`, []string{"-1", "-10"}, []string{"0", "somestring", "10.9", "-1somestring", "", absent}},
		{`{range_match: {start: 0, end: 10}}`, []string{"+5", "0"}, []string{"10", "-1", absent}},
		{`{range_match: {start: 0, end: 10}, invert_match: true}`, []string{"10", "x"}, []string{"5", absent}},
		{`{range_match: {start: 0, end: 10}, invert_match: true, treat_missing_header_as_empty: true}`, []string{absent, ""}, []string{"5"}},
		{`{string_match: {safe_regex: {regex: "^$"}}, treat_missing_header_as_empty: true}`, []string{absent, ""}, []string{"x"}},
		{`{string_match: {safe_regex: {regex: "^$"}}}`, []string{""}, []string{absent, "x"}},
		{`{string_match: {exact: aB, ignore_case: true}}`, []string{"Ab"}, []string{"abc", absent}},
		{`{string_match: {exact: "sé", ignore_case: true}}`, []string{"Sé"}, []string{"ſé", "sÉ"}}, // ASCII alone has cases
		{`{string_match: {prefix: aB, ignore_case: true}}`, []string{"AbC"}, []string{"xab"}},
		{`{string_match: {suffix: aB, ignore_case: true}}`, []string{"xAb"}, []string{"abx", "b"}},
		{`{string_match: {contains: aB, ignore_case: true}}`, []string{"xAbx", "ab"}, []string{"a", "ba", ""}},
	}
	for _, tt := range tests {
		match := `{prefix: /, headers: [{name: X-Test, ` + tt.matcher[1:] + `]}`
		for _, side := range []struct {
			values []string
			want   bool
		}{{tt.yes, true}, {tt.no, false}} {
			for _, value := range side.values {
				http, grpc := map[string][]string{}, map[string][]string{}
				if value != absent {
					http["X-Test"], grpc["x-test"] = []string{value}, []string{value}
				}
				if got := matches(t, match, route.Request{Path: "/", Header: http}); got != side.want {
					t.Errorf("%s matches %q: %v", tt.matcher, value, got)
				}
				// gRPC does not know treat_missing_header_as_empty.
				want := side.want && !(value == absent && strings.Contains(tt.matcher, "treat_missing"))
				if got := matches(t, match, route.Request{Path: "/", Header: grpc, GRPC: true}); got != want {
					t.Errorf("%s matches %q in gRPC's metadata: %v", tt.matcher, value, got)
				}
			}
		}
	}
}

func TestHeadersOfTheirOwnKind(t *testing.T) {
	r := route.Request{
		Host: "h", Method: "GET", Scheme: "https", Path: "/p", Query: "q=1",
		Header: map[string][]string{"X-Twice": {"a", "b"}, "Content-Type": {"application/grpc+proto"}},
	}
	for _, match := range []string{
		`{prefix: /, headers: [{name: x-twice, exact_match: "a,b"}]}`,
		`{prefix: /, headers: [{name: ":authority", exact_match: h}, {name: host, exact_match: h}]}`,
		`{prefix: /, headers: [{name: ":method", exact_match: GET}, {name: ":scheme", exact_match: https}]}`,
		`{prefix: /, headers: [{name: ":path", exact_match: "/p?q=1"}]}`,
		`{prefix: /, grpc: {}}`,
	} {
		if !matches(t, match, r) {
			t.Errorf("%s does not match", match)
		}
	}
	if matches(t, `{prefix: /, headers: [{name: x-twice, exact_match: "a,b"}, {name: x, present_match: true}]}`, r) {
		t.Error("one condition of two is enough")
	}
	g := route.Request{GRPC: true, Path: "/", Header: map[string][]string{"x-bin": {"a"}, "content-type": {"x"}}}
	if matches(t, `{prefix: /, headers: [{name: x-bin, present_match: true}]}`, g) {
		t.Error("a binary header of gRPC matches")
	}
	if !matches(t, `{prefix: /, grpc: {}, headers: [{name: content-type, exact_match: application/grpc}]}`, g) {
		t.Error("gRPC's content type is not what it is")
	}
	if matches(t, `{prefix: /, grpc: {}}`, route.Request{Path: "/", Header: map[string][]string{"Content-Type": {"application/grpc-web"}}}) {
		t.Error("gRPC-Web is gRPC")
	}
}

func TestQueriesAndCookies(t *testing.T) {
	tests := []struct {
		match, query, cookie string
		want                 bool
	}{
		{`query_parameters: [{name: a}]`, "a", "", true},
		{`query_parameters: [{name: a}]`, "b=a", "", false},
		{`query_parameters: [{name: a, present_match: true}]`, "x&a=", "", true},
		{`query_parameters: [{name: a, present_match: false}]`, "b", "", true},
		{`query_parameters: [{name: a, present_match: false}]`, "a", "", false},
		{`query_parameters: [{name: a, string_match: {exact: "1"}}]`, "b=2&a=1", "", true},
		{`query_parameters: [{name: a, string_match: {exact: "1"}}]`, "a=2&a=1", "", false}, // the first counts
		{`query_parameters: [{name: a, string_match: {exact: "1"}}]`, "", "", false},
		{`query_parameters: [{name: a, string_match: {exact: "1"}}, {name: b}]`, "a=1", "", false},
		{`query_parameters: [{name: a, string_match: {exact: "x%20y"}}]`, "a=x%20y", "", true},
		{`cookies: [{name: a, string_match: {exact: "1"}}]`, "", `b=2; a="1"`, true},
		{`cookies: [{name: a, string_match: {exact: "1"}}]`, "", "b=1", false},
		{`cookies: [{name: a, string_match: {exact: "1"}}]`, "", `a=1"`, false}, // a quote of no pair
		{`cookies: [{name: a, string_match: {exact: "\""}}]`, "", `a="""`, true},
		{`cookies: [{name: a, string_match: {exact: ""}}]`, "", "a; b=1", false}, // no cookie without a value
		{`cookies: [{name: a, string_match: {exact: ""}}]`, "", "a=; b=1", true},
		{`cookies: [{name: a, string_match: {exact: "1"}, invert_match: true}]`, "", "b=1", true},
		{`cookies: [{name: a, string_match: {exact: "1"}, invert_match: true}]`, "", "a=1", false},
	}
	for _, tt := range tests {
		r := route.Request{Path: "/", Query: tt.query, Header: map[string][]string{"Cookie": {tt.cookie}}}
		if got := matches(t, `{prefix: /, `+tt.match+`}`, r); got != tt.want {
			t.Errorf("%s with %q and cookie %q: %v", tt.match, tt.query, tt.cookie, got)
		}
	}
}

// gRPC leaves routes out that it does not know, and looks at the next.
func TestLeftOutByGRPC(t *testing.T) {
	for _, left := range []string{
		`{match: {prefix: /, query_parameters: [{name: q, present_match: false}]}, route: {cluster: a}}`,
		`{match: {prefix: /}, route: {cluster_header: x-cluster}}`,
		`{match: {prefix: /}, route: {timeout: 1s}}`,
		`{match: {prefix: /}, route: {inline_cluster_specifier_plugin: {extension: {name: p}}}}`,
	} {
		table := route.Compile(configuration(t, `virtual_hosts: [{name: v, domains: ["*"], routes: [`+left+`, {match: {prefix: /}, route: {cluster: b}}]}]`), nil)
		for grpc, want := range map[bool]int{false: 0, true: 1} {
			r := route.Request{Path: "/", GRPC: grpc}
			if found, _ := table.Match(&r); found != table.VirtualHosts()[0].Routes()[want] {
				t.Errorf("gRPC %v: %s: another route than %d", grpc, left, want)
			}
		}
	}
}

// gRPC leaves out routes with a plugin that it may do without. One that it may not do without is in fault.
func TestOptionalPlugin(t *testing.T) {
	compile := func(old *route.Table, optional bool) *route.Table {
		return route.Compile(configuration(t, fmt.Sprintf(`{cluster_specifier_plugins: [{extension: {name: p}, is_optional: %v}],
virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster_specifier_plugin: p}}, {match: {prefix: /}, route: {cluster: b}}]}]}`, optional)), old)
	}
	table := compile(nil, true)
	if found, err := table.Match(&route.Request{Path: "/", GRPC: true}); err != nil || found != table.VirtualHosts()[0].Routes()[1] {
		t.Errorf("the route of an optional plugin is not left out: %v", err)
	}
	if _, err := table.Match(&route.Request{Path: "/"}); err == nil {
		t.Error("in Envoy the route of an optional plugin is no fault")
	}
	if _, err := compile(table, false).Match(&route.Request{Path: "/", GRPC: true}); err == nil {
		t.Error("the route of a plugin that is not optional is no fault")
	}
}

// gRPC ignores conditions and rewrites that it does not know.
func TestIgnoredByGRPC(t *testing.T) {
	for _, ignored := range []string{
		`{match: {prefix: /, tls_context: {presented: true}}, route: {cluster: a}}`,
		`{match: {prefix: /, dynamic_metadata: [{filter: f}]}, route: {cluster: a}}`,
		`{match: {prefix: /, filter_state: [{key: k}]}, route: {cluster: a}}`,
		`{match: {prefix: /, cookies: [{name: c, string_match: {exact: v}}]}, route: {cluster: a}}`,
		`{match: {prefix: /, cookies: [{name: c}]}, route: {cluster: a}}`,
		`{match: {prefix: /, headers: [{name: h, treat_missing_header_as_empty: true, invert_match: true}]}, route: {cluster: a}}`,
		`{match: {prefix: /}, route: {cluster: a, path_rewrite: "/%REQ(x)%"}}`,
		`{match: {prefix: /}, route: {cluster: a, host_rewrite_path_regex: {pattern: {regex: "("}}}}`,
	} {
		table := route.Compile(configuration(t, `virtual_hosts: [{name: v, domains: ["*"], routes: [`+ignored+`, {match: {prefix: /}, route: {cluster: b}}]}]`), nil)
		found, err := table.Match(&route.Request{Path: "/", GRPC: true})
		if err != nil || found != table.VirtualHosts()[0].Routes()[0] {
			t.Errorf("%s: another route than the first, or %v", ignored, err)
		}
	}
	table := route.Compile(configuration(t, `virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /, tls_context: {}, headers: [{name: h, string_match: {}}]}, route: {cluster: a}}]}]`), nil)
	if _, err := table.Match(&route.Request{Path: "/", GRPC: true}); err == nil {
		t.Error("a fault beside an ignored condition is no error")
	}
}

func TestFraction(t *testing.T) {
	const match = `{prefix: /, runtime_fraction: {default_value: {numerator: 5, denominator: TEN_THOUSAND}, runtime_key: k}}`
	at := func(n uint64, runtime func(string) (route.Fraction, bool)) bool {
		return matches(t, match, route.Request{Path: "/", Random: func() uint64 { return n }, Runtime: runtime})
	}
	if !at(4, nil) || at(5, nil) || !at(10_004, nil) {
		t.Error("the share is not 5 of 10,000")
	}
	unset := func(string) (route.Fraction, bool) { return route.Fraction{Numerator: 1, Denominator: 1}, false }
	half := func(key string) (route.Fraction, bool) {
		return route.Fraction{Numerator: 50, Denominator: 100}, key == "k"
	}
	if at(5, unset) || !at(49, half) || at(50, half) {
		t.Error("the runtime's value is not followed")
	}
}

func TestFirstRouteWins(t *testing.T) {
	table := good(t, `
virtual_hosts:
- name: v
  domains: ["*"]
  routes:
  - {name: one, match: {prefix: /a, headers: [{name: x}]}, non_forwarding_action: {}}
  - {name: two, match: {prefix: /}, non_forwarding_action: {}}
  - {name: three, match: {path: /a}, non_forwarding_action: {}}`)
	for name, header := range map[string]map[string][]string{"one": {"X": {""}}, "two": nil} {
		found, err := table.Match(&route.Request{Path: "/a", Header: header})
		if err != nil || found.Proto().GetName() != name || found.Action() != route.ActionNone {
			t.Errorf("found %v, %v, want %s", found.Proto(), err, name)
		}
	}
}

// A route in fault is an error of the requests that reach it, and of no others.
func TestFaults(t *testing.T) {
	tests := []struct{ route, want string }{
		{`{match: {safe_regex: {regex: "("}}, route: {cluster: c}}`, "match.safe_regex: error parsing regexp: missing closing ): `(`"},
		{`{match: {safe_regex: {regex: "a)|(b"}}, route: {cluster: c}}`, "match.safe_regex: error parsing regexp: unexpected ): `a)|(b`"},
		{`{match: {safe_regex: {}}, route: {cluster: c}}`, "match.safe_regex: empty regular expression"},
		{`{match: {}, route: {cluster: c}}`, "match: no path specifier"},
		{`{match: {path_match_policy: {name: t}}, route: {cluster: c}}`, "match.path_match_policy: not supported"},
		{`{match: {prefix: /, headers: [{name: h, safe_regex_match: {regex: "["}}]}, route: {cluster: c}}`, "match.headers: \"h\": error parsing regexp: missing closing ]: `[`"},
		{`{match: {prefix: /, headers: [{name: h, string_match: {custom: {name: t}}}]}, route: {cluster: c}}`, `match.headers: "h": not supported`},
		{`{match: {prefix: /, headers: [{name: h, string_match: {}}]}, route: {cluster: c}}`, `match.headers: "h": no pattern`},
		{`{match: {prefix: /, query_parameters: [{name: q, string_match: {safe_regex: {regex: "*"}}}]}, route: {cluster: c}}`, "match.query_parameters: \"q\": error parsing regexp: missing argument to repetition operator: `*`"},
		{`{match: {prefix: /, cookies: [{name: q}]}, route: {cluster: c}}`, `match.cookies: "q": no pattern`},
		{`{match: {prefix: /, tls_context: {}}, route: {cluster: c}}`, "match.tls_context: not supported"},
		{`{match: {prefix: /, dynamic_metadata: [{}]}, route: {cluster: c}}`, "match.dynamic_metadata: not supported"},
		{`{match: {prefix: /, filter_state: [{}]}, route: {cluster: c}}`, "match.filter_state: not supported"},
		{`{match: {prefix: /, runtime_fraction: {default_value: {denominator: 7}}}, route: {cluster: c}}`, "match.runtime_fraction: unknown denominator 7"},
		{`{match: {prefix: /}}`, "action: none that is supported"},
		{`{match: {prefix: /}, route: {}}`, "route: no cluster specifier"},
		{`{match: {prefix: /}, route: {cluster: ""}}`, "route.cluster: empty"},
		{`{match: {prefix: /}, route: {cluster_header: ""}}`, "route.cluster_header: empty"},
		{`{match: {prefix: /}, route: {cluster_specifier_plugin: p}}`, "route.cluster_specifier_plugin: not supported"},
		{`{match: {prefix: /}, route: {weighted_clusters: {}}}`, "route.weighted_clusters: the sum of the weights is 0"},
		{`{match: {prefix: /}, route: {weighted_clusters: {clusters: [{weight: 1}]}}}`, "route.weighted_clusters: entry 0 needs either a name or a cluster_header"},
		{`{match: {prefix: /}, route: {weighted_clusters: {clusters: [{name: a, weight: 4294967295}, {name: b, weight: 1}]}}}`, "route.weighted_clusters: the sum of the weights is over 4294967295"},
		{`{match: {prefix: /}, route: {cluster: c, regex_rewrite: {pattern: {regex: "("}}}}`, "route.regex_rewrite: error parsing regexp: missing closing ): `(`"},
		{`{match: {prefix: /}, route: {cluster: c, regex_rewrite: {pattern: {regex: "(a)"}, substitution: "\\2"}}}`, `route.regex_rewrite: substitution has \2, and the expression has 1 groups`},
		{`{match: {prefix: /}, route: {cluster: c, regex_rewrite: {pattern: {regex: a}, substitution: "\\"}}}`, `route.regex_rewrite: substitution ends in a backslash`},
		{`{match: {prefix: /}, route: {cluster: c, regex_rewrite: {pattern: {regex: a}, substitution: "\\x"}}}`, `route.regex_rewrite: substitution has \x`},
		{`{match: {prefix: /}, route: {cluster: c, path_rewrite: "/%REQ(x)%"}}`, "route.path_rewrite: format specifiers are not supported"},
		{`{match: {prefix: /}, route: {cluster: c, path_rewrite_policy: {name: t}}}`, "route.path_rewrite_policy: not supported"},
		{`{match: {prefix: /}, route: {cluster: c, retry_policy: {retry_back_off: {}}}}`, "route.retry_policy.retry_back_off.base_interval: 0s is not positive"},
		{`{match: {prefix: /}, route: {cluster: c, retry_policy: {retry_back_off: {base_interval: 2s, max_interval: 1s}}}}`, "route.retry_policy.retry_back_off.max_interval: 1s is below the base interval, 2s"},
		{`{match: {prefix: /}, redirect: {response_code: 9}}`, "redirect.response_code: unknown code 9"},
		{`{match: {prefix: /}, direct_response: {status: 99}}`, "direct_response.status: 99 is not between 200 and 599"},
		{`{match: {prefix: /}, direct_response: {status: 200, body: {filename: /etc/passwd}}}`, "direct_response.body: files and environment variables are not supported"},
		{`{match: {prefix: /}, direct_response: {status: 200, body_format: {}}}`, "direct_response.body_format: not supported"},
	}
	for _, tt := range tests {
		table := route.Compile(configuration(t, `virtual_hosts: [{name: v, domains: ["*"], routes: [
			{match: {prefix: /good}, route: {cluster: c}}, `+tt.route+`, {match: {prefix: /}, route: {cluster: c}}]}]`), nil)
		if _, err := table.Match(&route.Request{Path: "/good"}); err != nil {
			t.Errorf("%s: a route before it has the error %v", tt.route, err)
		}
		_, err := table.Match(&route.Request{Path: "/other"})
		var fault *route.Fault
		if !errors.As(err, &fault) || fault.Error() != `virtual host "v", route 1: `+tt.want {
			t.Errorf("%s\nhas the error %v\nwant %s", tt.route, err, tt.want)
		}
		if table.Err() == nil {
			t.Errorf("%s: the table has no error", tt.route)
		}
	}
}

func TestMatchTreesAreFaults(t *testing.T) {
	table := route.Compile(configuration(t, `virtual_hosts: [{name: v, domains: ["*"], matcher: {}}]`), nil)
	_, err := table.Match(&route.Request{Path: "/"})
	if err == nil || err.Error() != `virtual host "v": matcher: not supported` {
		t.Errorf("Match has the error %v", err)
	}
}

// A condition that is not in fault still keeps requests from a route in fault.
func TestFaultsOfOneCondition(t *testing.T) {
	table := route.Compile(configuration(t, `virtual_hosts: [{name: v, domains: ["*"], routes: [
		{match: {safe_regex: {regex: "("}, headers: [{name: x}]}, route: {cluster: c}}, {match: {prefix: /}, route: {cluster: c}}]}]`), nil)
	if _, err := table.Match(&route.Request{Path: "/"}); err != nil {
		t.Error(err)
	}
	if _, err := table.Match(&route.Request{Path: "/", Header: map[string][]string{"X": {""}}}); err == nil {
		t.Error("the request that reaches the fault has no error")
	}
}

// thousand has 1,000 virtual hosts of ten routes each, the last of which takes everything.
func thousand(t testing.TB) *route.Table {
	rc := &routev3.RouteConfiguration{}
	for i := range 1000 {
		text := `{name: v, domains: [HOST.example.com, "*.HOST.example.com"], routes: [`
		for range 9 {
			text += `{match: {prefix: /service, headers: [{name: x-canary, exact_match: "1"}]}, route: {cluster: c}}, `
		}
		vh := parse(t, text+`{match: {prefix: /}, route: {cluster: last}}]}`, &routev3.VirtualHost{})
		name := "host-" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
		vh.Name, vh.Domains = name, []string{name + ".example.com", "*." + name + ".example.com"}
		rc.VirtualHosts = append(rc.VirtualHosts, vh)
	}
	return route.Compile(rc, nil)
}

func lastOfThousand(t testing.TB, table *route.Table) route.Request {
	hosts := table.VirtualHosts()
	return route.Request{
		Host: hosts[len(hosts)-1].Proto().GetName() + ".example.com", Method: "GET", Path: "/service/x",
		Header: map[string][]string{"X-Canary": {"0"}, "Accept": {"*/*"}},
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("long: many matches")
	}
	table := thousand(t)
	last := lastOfThousand(t, table)
	for _, host := range []string{last.Host, "x." + last.Host, strings.ToUpper(last.Host)} {
		allocated := testing.AllocsPerRun(100, func() {
			r := last // on the stack, as in a handler
			r.Host = host
			found, err := table.Match(&r)
			if err != nil || found.Choose(&r).Cluster != "last" {
				t.Fatal(found, err)
			}
		})
		if allocated != 0 {
			t.Errorf("a match of %s allocates %v times", host, allocated)
		}
	}
}

// A match among 1,000 virtual hosts of ten routes, of which the last one takes the request.
func BenchmarkMatch(b *testing.B) {
	table := thousand(b)
	r := lastOfThousand(b, table)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := table.Match(&r); err != nil {
			b.Fatal(err)
		}
	}
}

// One virtual host of 1,000 has changed.
func BenchmarkCompileChange(b *testing.B) {
	table := thousand(b)
	rc := table.Proto()
	b.ReportAllocs()
	for b.Loop() {
		rc = &routev3.RouteConfiguration{VirtualHosts: slices.Clone(rc.VirtualHosts)}
		rc.VirtualHosts[500] = host("changed", string(rune('a'+rand.IntN(26))))
		route.Compile(rc, table)
	}
}
