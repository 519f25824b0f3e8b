package route_test

import (
	"errors"
	"fmt"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/xdswatch/xdswatch/view/route"
)

// parse reads a message written as YAML.
func parse[M proto.Message](t testing.TB, text string, m M) M {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(data, m); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return m
}

func configuration(t testing.TB, text string) *routev3.RouteConfiguration {
	return parse(t, text, &routev3.RouteConfiguration{})
}

// good compiles a configuration that must have no fault.
func good(t testing.TB, text string) *route.Table {
	t.Helper()
	table := route.Compile(configuration(t, text), nil)
	if err := table.Err(); err != nil {
		t.Fatal(err)
	}
	return table
}

// host is a virtual host of the given domains with one route for everything.
func host(name string, domains ...string) *routev3.VirtualHost {
	return &routev3.VirtualHost{Name: name, Domains: domains, Routes: []*routev3.Route{{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		Action: &routev3.Route_NonForwardingAction{NonForwardingAction: &routev3.NonForwardingAction{}},
	}}}
}

// spec: VIEW-60
func TestDomains(t *testing.T) {
	rc := &routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{
		host("prefix", "www.example.*", "www.*"),
		host("suffix", "*.example.com", "*-bar.example.com", "*.com"),
		host("exact", "www.example.com", "Upper.Example.NET", "É.example"),
		host("port", "www.example.com:8080"),
		host("any", "*"),
	}}
	table := route.Compile(rc, nil)
	if err := table.Err(); err != nil {
		t.Fatal(err)
	}
	withPorts := proto.CloneOf(rc)
	withPorts.IgnorePortInHostMatching = true
	portless := route.Compile(withPorts, nil)
	tests := []struct {
		authority, want, ignoringPort string
	}{
		{"www.example.com", "exact", "exact"},
		{"WWW.example.COM", "exact", "exact"},
		{"upper.example.net", "exact", "exact"},
		{"É.EXAMPLE", "exact", "exact"}, // the case of letters that are not ASCII counts
		{"é.example", "any", "any"},
		{"api.example.com", "suffix", "suffix"},
		{"www.example.org", "prefix", "prefix"},
		{"www.x.com", "suffix", "suffix"}, // a suffix comes before a prefix, however long
		{"www.x", "prefix", "prefix"},
		{".example.com", "suffix", "suffix"}, // by *.com: an asterisk is at least one character
		{".com", "any", "any"},
		{"www.", "any", "any"},
		{"", "any", "any"},
		{"www.example.com:8080", "port", "exact"},
		{"www.example.com:81", "prefix", "exact"},
		{"[::1]:80", "any", "any"},
		{"example.com", "suffix", "suffix"},
	}
	for _, tt := range tests {
		if got := table.VirtualHost(tt.authority).Proto().GetName(); got != tt.want {
			t.Errorf("%q matches %s, want %s", tt.authority, got, tt.want)
		}
		if got := portless.VirtualHost(tt.authority).Proto().GetName(); got != tt.ignoringPort {
			t.Errorf("%q without its port matches %s, want %s", tt.authority, got, tt.ignoringPort)
		}
	}
}

// spec: VIEW-60
func TestLongestDomainWins(t *testing.T) {
	table := route.Compile(&routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{
		host("s1", "*.com"), host("s2", "*.example.com"), host("s3", "*-bar.example.com"),
		host("p1", "a.*"), host("p2", "a.b.*"), host("p3", "a.b-*"),
	}}, nil)
	for authority, want := range map[string]string{
		"x.com": "s1", "x.example.com": "s2", "foo-bar.example.com": "s3", "-bar.example.com": "s2",
		"a.x": "p1", "a.b.x": "p2", "a.b-x": "p3", "a.b.": "p1",
	} {
		if got := table.VirtualHost(authority).Proto().GetName(); got != want {
			t.Errorf("%q matches %q, want %q", authority, got, want)
		}
	}
	if h := table.VirtualHost("nobody"); h != nil {
		t.Errorf("nobody matches %q", h.Proto().GetName())
	}
	if _, err := table.Match(&route.Request{Host: "nobody", Path: "/"}); !errors.Is(err, route.ErrNoVirtualHost) {
		t.Errorf("Match has the error %v, want %v", err, route.ErrNoVirtualHost)
	}
}

// spec: VIEW-60
func TestBadDomainsHurtNobody(t *testing.T) {
	table := route.Compile(&routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{
		host("first", "a.com", "in*side", "**"), host("second", "a.com", "b.com"), host("none"),
	}}, nil)
	for authority, want := range map[string]string{"a.com": "first", "b.com": "second"} {
		if got := table.VirtualHost(authority).Proto().GetName(); got != want {
			t.Errorf("%q matches %q, want %q", authority, got, want)
		}
	}
	if h := table.VirtualHost("in*side"); h != nil {
		t.Errorf("a malformed domain matches")
	}
	const want = `virtual host "first": domains: "in*side" is neither a name, *suffix, prefix* nor *
virtual host "first": domains: "**" is neither a name, *suffix, prefix* nor *
virtual host "second": domains: "a.com" is a domain of a virtual host before it
virtual host "none": domains: empty, so that no request matches`
	if got := fmt.Sprint(table.Err()); got != want {
		t.Errorf("Err is\n%s\nwant\n%s", got, want)
	}
}

// spec: VIEW-60
func TestHostHeader(t *testing.T) {
	table := good(t, `
vhost_header: x-tenant
virtual_hosts: [{name: a, domains: [a], routes: [{match: {prefix: /}, non_forwarding_action: {}}]}]`)
	if _, err := table.Match(&route.Request{Host: "b", Path: "/", Header: map[string][]string{"X-Tenant": {"A"}}}); err != nil {
		t.Error(err)
	}
	if _, err := table.Match(&route.Request{Host: "a", Path: "/"}); !errors.Is(err, route.ErrNoVirtualHost) {
		t.Errorf("without the header Match has the error %v", err)
	}
	if _, err := table.Match(&route.Request{Host: "a", Path: "/", GRPC: true}); err != nil {
		t.Errorf("gRPC, which does not know vhost_header: %v", err)
	}
	any := func(domains string) *route.Table {
		return good(t, `
vhost_header: x-tenant
virtual_hosts: [{name: a, domains: [`+domains+`], routes: [{match: {prefix: /}, non_forwarding_action: {}}]}]`)
	}
	if _, err := any(`"*"`).Match(&route.Request{Path: "/"}); err != nil {
		t.Errorf("where all domains are *: %v", err)
	}
	if _, err := any(`"*", a`).Match(&route.Request{Path: "/"}); !errors.Is(err, route.ErrNoVirtualHost) {
		t.Errorf("where not all domains are *: %v", err)
	}
	if _, err := any(`"*", a`).Match(&route.Request{Path: "/", Header: map[string][]string{"X-Tenant": {""}}}); err != nil {
		t.Errorf("with an empty header: %v", err)
	}
}

func TestVHDSTakesPrecedence(t *testing.T) {
	rc := &routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{host("own", "a", "b")}}
	table := route.Compile(rc, nil, host("vhds", "a"))
	if a, b := table.VirtualHost("a").Proto().GetName(), table.VirtualHost("b").Proto().GetName(); a != "vhds" || b != "own" {
		t.Errorf("a is of %q and b of %q, want vhds and own", a, b)
	}
}

func TestEqualVirtualHostsAreShared(t *testing.T) {
	rc := &routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{host("a", "a"), host("b", "b")}}
	old := route.Compile(rc, nil)
	if route.Compile(rc, old) != old || route.Compile(rc, old, host("c", "c")) == old {
		t.Error("the table is not the old one just if the messages are the same")
	}
	next := proto.CloneOf(rc)
	next.VirtualHosts[1].Routes[0].Name = "changed"
	table := route.Compile(next, old)
	if old.VirtualHost("a") != table.VirtualHost("a") {
		t.Error("an equal virtual host was compiled again")
	}
	if old.VirtualHost("b") == table.VirtualHost("b") {
		t.Error("a changed virtual host was not compiled again")
	}
	// How paths are matched belongs to the configuration, and so a virtual host is not shared
	// across a change of it.
	next = proto.CloneOf(rc)
	next.IgnorePathParametersInPathMatching = true
	if table := route.Compile(next, old); old.VirtualHost("a") == table.VirtualHost("a") {
		t.Error("a virtual host matches paths as before")
	}
}
