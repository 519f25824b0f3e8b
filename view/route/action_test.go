package route_test

import (
	"crypto/tls"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/xdswatch/xdswatch/view/route"
)

// compiled is the route of the given YAML.
func compiled(t *testing.T, text string) *route.Route {
	t.Helper()
	table := good(t, `virtual_hosts: [{name: v, domains: ["*"], retry_policy: {retry_on: 5xx, num_retries: 9}, routes: [`+text+`]}]`)
	return table.VirtualHosts()[0].Routes()[0]
}

func TestChoose(t *testing.T) {
	r := compiled(t, `{match: {prefix: /}, route: {weighted_clusters: {clusters: [
		{name: a, weight: 1}, {name: none, weight: 0}, {name: b, weight: 3, host_rewrite_literal: bee}, {cluster_header: x-c, weight: 4}]}}}`)
	got := map[string]int{}
	for n := range uint64(16) {
		req := route.Request{Host: "h", Random: func() uint64 { return n }, Header: map[string][]string{"X-C": {"byheader"}}}
		c := r.Choose(&req)
		got[c.Cluster+"@"+r.RewriteHost(&req, c.Entry, "")]++
		if c.ByHeader != (c.Cluster == "byheader") {
			t.Errorf("ByHeader of %q is %v", c.Cluster, c.ByHeader)
		}
	}
	if want := map[string]int{"a@h": 2, "b@bee": 6, "byheader@h": 8}; !maps.Equal(got, want) {
		t.Errorf("chosen %v, want %v", got, want)
	}
	if got, want := r.Clusters(), []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("Clusters are %v, want %v", got, want)
	}
}

func TestChooseByHeader(t *testing.T) {
	r := compiled(t, `{match: {prefix: /}, route: {cluster_header: x-cluster}}`)
	if c := r.Choose(&route.Request{Header: map[string][]string{"X-Cluster": {"a", "b"}}}); c.Cluster != "a" || !c.ByHeader {
		t.Errorf("chose %+v, want a", c)
	}
	if c := r.Choose(&route.Request{}); c.Cluster != "" {
		t.Errorf("chose %+v, want nothing", c)
	}
	// The random number of weighted clusters may come from a header too.
	r = compiled(t, `{match: {prefix: /}, route: {weighted_clusters: {header_name: x-random, clusters: [{name: a, weight: 1}, {name: b, weight: 1}]}}}`)
	for values, want := range map[string]string{"2": "a", "3": "b", "x": "b", "2 2": "b"} {
		req := route.Request{Random: func() uint64 { return 1 }, Header: map[string][]string{"X-Random": strings.Fields(values)}}
		if c := r.Choose(&req); c.Cluster != want {
			t.Errorf("%q chose %q, want %q", values, c.Cluster, want)
		}
	}
}

func TestRewritePath(t *testing.T) {
	tests := []struct{ match, rewrite, path, want string }{
		{`prefix: /a/`, `prefix_rewrite: /`, "/a/b", "/b"},
		{`prefix: /A, case_sensitive: false`, `prefix_rewrite: /x`, "/ab", "/xb"},
		{`path: /a`, `prefix_rewrite: /x`, "/a", "/x"},
		{`path_separated_prefix: /a`, `prefix_rewrite: /x`, "/a/b", "/x/b"},
		{`safe_regex: {regex: /.*}`, `prefix_rewrite: /x`, "/a/b", "/x"},
		{`prefix: /`, `regex_rewrite: {pattern: {regex: "^/service/([^/]+)(/.*)$"}, substitution: "\\2/instance/\\1"}`, "/service/foo/v1/api", "/v1/api/instance/foo"},
		{`prefix: /`, `regex_rewrite: {pattern: {regex: one}, substitution: two}`, "/xxx/one/yyy/one/zzz", "/xxx/two/yyy/two/zzz"},
		{`prefix: /`, `regex_rewrite: {pattern: {regex: "^(.*?)one(.*)$"}, substitution: "\\1two\\2"}`, "/xxx/one/yyy/one/zzz", "/xxx/two/yyy/one/zzz"},
		{`prefix: /`, `regex_rewrite: {pattern: {regex: "(?i)/xxx/"}, substitution: /yyy/}`, "/aaa/XxX/bbb", "/aaa/yyy/bbb"},
		{`prefix: /`, `regex_rewrite: {pattern: {regex: a}, substitution: "$1\\\\\\0"}`, "/a", `/$1\a`},
		{`prefix: /`, `path_rewrite: /whole`, "/a", "/whole"},
		{`prefix: /`, `timeout: 1s`, "/a", "/a"},
		{`prefix: /`, `timeout: 1s`, "/a%2Fb", "/a%2Fb"},
		// What is no escape any more would have the path taken for one that is malformed.
		{`prefix: /a/`, `prefix_rewrite: /100%/`, "/a/%2f%Ab", "/100%25/%2f%Ab"},
		{`prefix: /`, `regex_rewrite: {pattern: {regex: "2F"}, substitution: ""}`, "/a%2F/%2F1%2F", "/a%25/%251%25"},
	}
	for _, tt := range tests {
		r := compiled(t, `{match: {`+tt.match+`}, route: {cluster: c, `+tt.rewrite+`}}`)
		if got := r.RewritePath(&route.Request{Path: tt.path}); got != tt.want {
			t.Errorf("%s turns %q into %q, want %q", tt.rewrite, tt.path, got, tt.want)
		}
	}
}

func TestRewriteHost(t *testing.T) {
	for rewrite, want := range map[string]string{
		`host_rewrite_literal: l`:   "l",
		`host_rewrite: m`:           "m",
		`host_rewrite_header: x-h`:  "of-header",
		`host_rewrite_header: none`: "original",
		`auto_host_rewrite: true`:   "endpoint",
		`auto_host_rewrite: false`:  "original",
		`timeout: 1s`:               "original",
		`host_rewrite_path_regex: {pattern: {regex: "^/(.+)/.+$"}, substitution: "\\1"}`: "envoyproxy.io",
	} {
		r := compiled(t, `{match: {prefix: /}, route: {cluster: c, `+rewrite+`}}`)
		req := route.Request{Host: "original", Path: "/envoyproxy.io/some/path"[:19], Header: map[string][]string{"X-H": {"of-header"}}}
		if got := r.RewriteHost(&req, nil, "endpoint"); got != want {
			t.Errorf("%s makes the host %q, want %q", rewrite, got, want)
		}
	}
}

func TestRedirect(t *testing.T) {
	tests := []struct {
		redirect, url, want string
		code                int
	}{
		{`{}`, "http://h:81/a?q", "http://h:81/a?q", 301},
		{`{path_redirect: /new-path-1}`, "http://h/old?bar=1", "http://h/new-path-1?bar=1", 301},
		{`{path_redirect: /new-path-2, strip_query: true}`, "http://h/old?bar=1", "http://h/new-path-2", 301},
		{`{path_redirect: "/new-path-3?foo=1", strip_query: true}`, "http://h/old?bar=1", "http://h/new-path-3?foo=1", 301},
		{`{path_redirect: "/new-path-3?foo=1"}`, "http://h/old?bar=1", "http://h/new-path-3?foo=1", 301},
		{`{https_redirect: true}`, "http://h:80/a", "https://h/a", 301},
		{`{https_redirect: true}`, "http://h:8080/a", "https://h:8080/a", 301},
		{`{scheme_redirect: http}`, "https://h:443/a", "http://h/a", 301},
		{`{scheme_redirect: http, path_redirect: /b}`, "http://h:80/a", "http://h:80/b", 301},
		{`{host_redirect: other, response_code: FOUND}`, "http://h:81/a?q", "http://other/a?q", 302},
		{`{port_redirect: 8443, response_code: SEE_OTHER}`, "http://h:81/a", "http://h:8443/a", 303},
		{`{port_redirect: 8443, response_code: TEMPORARY_REDIRECT}`, "http://[::1]:81/a", "http://[::1]:8443/a", 307},
		{`{prefix_rewrite: /x/, response_code: PERMANENT_REDIRECT}`, "http://h/a", "http://h/x/a", 308},
		{`{regex_rewrite: {pattern: {regex: "/(.*)"}, substitution: "/v2/\\1"}}`, "http://h/a?q", "http://h/v2/a?q", 301},
		{`{path_rewrite: /x}`, "http://h/a?q", "http://h/x?q", 301},
	}
	for _, tt := range tests {
		r := compiled(t, `{match: {prefix: /}, redirect: `+tt.redirect+`}`)
		req := route.FromHTTP(httptest.NewRequest("GET", tt.url, nil))
		if location, code := r.Redirect(&req); location != tt.want || code != tt.code || r.Action() != route.ActionRedirect {
			t.Errorf("%s sends %s to %s (%d), want %s (%d)", tt.redirect, tt.url, location, code, tt.want, tt.code)
		}
	}
}

func TestResponse(t *testing.T) {
	r := compiled(t, `{match: {prefix: /}, direct_response: {status: 403, body: {inline_string: denied}}}`)
	if got := r.Response(); r.Action() != route.ActionRespond || got.Status != 403 || string(got.Body) != "denied" {
		t.Errorf("the response is %+v", got)
	}
	if c := r.Choose(&route.Request{}); c != (route.Choice{}) {
		t.Errorf("a response has the cluster %q", c.Cluster)
	}
}

// spec: VIEW-64
func TestRetry(t *testing.T) {
	tests := []struct {
		policy string
		want   route.Retry
	}{
		{`{retry_on: "5xx, connect-failure"}`, route.Retry{On: []string{"5xx", "connect-failure"}, Attempts: 2, Base: 25 * time.Millisecond, Max: 250 * time.Millisecond}},
		{`{num_retries: 0}`, route.Retry{On: []string{}, Attempts: 1, Base: 25 * time.Millisecond, Max: 250 * time.Millisecond}},
		{`{num_retries: 3, per_try_timeout: 1s, retriable_status_codes: [503]}`, route.Retry{
			On: []string{}, Attempts: 4, PerTry: time.Second, StatusCodes: []uint32{503}, Base: 25 * time.Millisecond, Max: 250 * time.Millisecond}},
		{`{num_retries: 4294967295}`, route.Retry{On: []string{}, Attempts: 5, Base: 25 * time.Millisecond, Max: 250 * time.Millisecond}},
		{`{retry_back_off: {base_interval: 0.0001s}}`, route.Retry{On: []string{}, Attempts: 2, Base: time.Millisecond, Max: 10 * time.Millisecond}},
		{`{retry_back_off: {base_interval: 1s, max_interval: 3s}}`, route.Retry{On: []string{}, Attempts: 2, Base: time.Second, Max: 3 * time.Second}},
	}
	for _, tt := range tests {
		r := compiled(t, `{match: {prefix: /}, route: {cluster: c, retry_policy: `+tt.policy+`}}`)
		got := *r.Retry()
		got.Proto = nil
		if diff := cmp.Diff(tt.want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.policy, diff)
		}
	}
	// A route without a policy has that of its virtual host.
	if got := compiled(t, `{match: {prefix: /}, route: {cluster: c}}`).Retry(); got.Attempts != 5 {
		t.Errorf("the virtual host's policy is %+v", got)
	}
}

func TestTimeouts(t *testing.T) {
	for text, want := range map[string][2]time.Duration{
		`timeout: 3s`: {3 * time.Second, 0},
		`timeout: 0s`: {0, 0},
		`max_stream_duration: {max_stream_duration: 5s}`:                              {15 * time.Second, 5 * time.Second},
		`max_stream_duration: {max_stream_duration: 5s, grpc_timeout_header_max: 2s}`: {15 * time.Second, 2 * time.Second},
	} {
		r := compiled(t, `{match: {prefix: /}, route: {cluster: c, `+text+`}}`)
		if got := [2]time.Duration{r.Timeout(), r.MaxStreamDuration()}; got != want {
			t.Errorf("%s: timeout and stream duration are %v, want %v", text, got, want)
		}
	}
}

func TestFromHTTP(t *testing.T) {
	server := httptest.NewRequest("POST", "/a%2Fb?q=1", nil)
	server.Host, server.TLS = "h:80", &tls.ConnectionState{}
	client, err := http.NewRequest("GET", "http://other/p", nil)
	if err != nil {
		t.Fatal(err)
	}
	client.Host = ""
	bare, err := http.NewRequest("", "http://other?q", nil)
	if err != nil {
		t.Fatal(err)
	}
	bare.Method = ""
	connect := httptest.NewRequest("CONNECT", "h:80", nil)
	for _, tt := range []struct {
		r    *http.Request
		want route.Request
	}{
		{server, route.Request{Host: "h:80", Method: "POST", Scheme: "https", Path: "/a%2Fb", Query: "q=1", Header: server.Header}},
		{client, route.Request{Host: "other", Method: "GET", Scheme: "http", Path: "/p", Header: client.Header}},
		{bare, route.Request{Host: "other", Method: "GET", Scheme: "http", Path: "/", Query: "q", Header: bare.Header}},
		{connect, route.Request{Host: "h:80", Method: "CONNECT", Scheme: "http", Header: connect.Header}},
	} {
		if diff := cmp.Diff(tt.want, route.FromHTTP(tt.r)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
