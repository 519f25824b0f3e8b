package xdstp

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type contextCase struct {
	ID     string            `json:"id"`
	Expect map[string]string `json:"expect"`
}

// The cases of Envoy's own test; the two that render a node are those of package
// nodeparams.
//
// spec: CTX-1
func TestContextCases(t *testing.T) {
	given := map[string]struct {
		context Context
		params  []Param
	}{
		"ctx-extra-resource": {context: Context{Attributes: []Param{Attribute("foo", "123")}}},
		"ctx-layering": {
			context: Context{
				Node:       []Param{{"xds.node.id", "some_id"}, {"xds.node.cluster", "some_cluster"}},
				Features:   []Param{ClientFeature("id")},
				Attributes: []Param{Attribute("cluster", "huh")},
			},
			params: []Param{{"id", "another_id"}, {"xds.node.cluster", "another_cluster"}},
		},
	}
	var cases []contextCase
	if err := json.Unmarshal(readSections(t)["context_params"], &cases); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, c := range cases {
		seen = append(seen, c.ID)
		g, ok := given[c.ID]
		if !ok {
			continue
		}
		n := g.context.Apply(Name{Authority: "a", Type: "T", ID: "*", Params: g.params})
		got := make(map[string]string)
		for _, p := range n.Params {
			got[p.Key] = p.Value
		}
		if diff := cmp.Diff(c.Expect, got); diff != "" {
			t.Errorf("%s: parameters (-want +got):\n%s", c.ID, diff)
		}
	}
	want := []string{"ctx-node-all", "ctx-node-build-version", "ctx-extra-resource", "ctx-layering"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("cases (-want +got):\n%s", diff)
	}
}

func TestContextOverrides(t *testing.T) {
	c := Context{
		Node:       []Param{{"k", "node"}, {"xds.resource.k", "node"}},
		Features:   []Param{{"xds.client_feature.k", "feature"}},
		Attributes: []Param{{"xds.resource.k", "attribute"}},
	}
	n := mustParse(t, "xdstp://a/T/x?z=1&k=name&xds.client_feature.k=name&xds.resource.k=name")
	before := n.String()
	got := c.Apply(n)
	want := "xdstp://a/T/x?k=name&xds.client_feature.k=feature&xds.resource.k=attribute&z=1"
	if got.String() != want {
		t.Errorf("name %s, want %s", got, want)
	}
	if n.String() != before || c.Node[0].Value != "node" {
		t.Errorf("the input was changed: %s, %v", n, c)
	}
	if again := c.Apply(got); !again.Equal(got) {
		t.Errorf("applied again: %s, want %s", again, got)
	}
	if same := (Context{}).Apply(n); !same.Equal(n) {
		t.Errorf("with nothing to add: %s, want %s", same, n)
	}
}

// What a context added must be in the answer as well.
//
// spec: CTX-4
func TestContextIsExact(t *testing.T) {
	glob := mustParse(t, "xdstp://a/T/foo/*")
	asked := Context{Node: []Param{{"xds.node.id", "n"}}}.Apply(glob)
	for text, want := range map[string]bool{
		"xdstp://a/T/foo/bar?xds.node.id=n":     true,
		"xdstp://a/T/foo/bar?xds.node.id=%6E":   true,
		"xdstp://a/T/foo/bar":                   false,
		"xdstp://a/T/foo/bar?xds.node.id=m":     false,
		"xdstp://a/T/foo/bar?xds.node.id=n&a=b": false,
	} {
		if got := asked.Matches(mustParse(t, text)); got != want {
			t.Errorf("%s matches %s = %v, want %v", asked, text, got, want)
		}
	}
}

// spec: CTX-3
func TestWellKnownAttributes(t *testing.T) {
	tests := []struct {
		got  Param
		want Param
	}{
		{VIP(netip.MustParseAddr("96.54.3.1")), Param{"xds.resource.vip", "96.54.3.1"}},
		{VIP(netip.MustParseAddr("::ffff:96.54.3.1")), Param{"xds.resource.vip", "96.54.3.1"}},
		{VIP(netip.MustParseAddr("2001:DB8::0:1")), Param{"xds.resource.vip", "2001:db8::1"}},
		{
			ListeningAddress(netip.MustParseAddrPort("10.1.1.3:8080")),
			Param{"xds.resource.listening_address", "10.1.1.3:8080"},
		},
		{
			ListeningAddress(netip.MustParseAddrPort("[::ffff:10.1.1.3]:8080")),
			Param{"xds.resource.listening_address", "10.1.1.3:8080"},
		},
		{
			ListeningAddress(netip.MustParseAddrPort("[::1]:80")),
			Param{"xds.resource.listening_address", "[::1]:80"},
		},
		{Attribute("foo", "1"), Param{"xds.resource.foo", "1"}},
		{ClientFeature("lb.least_loaded"), Param{"xds.client_feature.lb.least_loaded", "true"}},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %v, want %v", tt.got, tt.want)
		}
	}
	c := Context{Attributes: []Param{ListeningAddress(netip.MustParseAddrPort("[::1]:80"))}}
	got := c.Apply(mustParse(t, "xdstp://a/T/x")).String()
	if want := "xdstp://a/T/x?xds.resource.listening_address=%5B::1%5D:80"; got != want {
		t.Errorf("name %s, want %s", got, want)
	}
}

// spec: CTX-3
func TestContextCheck(t *testing.T) {
	good := Context{
		Node:       []Param{{"xds.node.id", "n"}, {"shard", "7"}},
		Features:   []Param{ClientFeature("x")},
		Attributes: []Param{VIP(netip.IPv6Loopback()), ListeningAddress(netip.MustParseAddrPort("1.2.3.4:5")), Attribute("x", "")},
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	tests := []struct {
		what    string
		context Context
		want    string
	}{
		{"a feature of the node", Context{Node: []Param{{"a", ""}, ClientFeature("x")}},
			`xdstp: Context.Node[1]: "xds.client_feature.x" begins with "xds.client_feature.", but is a parameter of the node`},
		{"a feature without a prefix", Context{Features: []Param{{"x", "true"}}},
			`xdstp: Context.Features[0]: "x" does not begin with "xds.client_feature."`},
		{"an attribute without a prefix", Context{Attributes: []Param{{"vip", "::1"}}},
			`xdstp: Context.Attributes[0]: "vip" does not begin with "xds.resource."`},
		{"no VIP", Context{Attributes: []Param{VIP(netip.Addr{})}},
			`xdstp: Context.Attributes[0]: "xds.resource.vip" has the value "invalid IP", which is no address`},
		{"no listening address", Context{Attributes: []Param{ListeningAddress(netip.AddrPort{})}},
			`xdstp: Context.Attributes[0]: "xds.resource.listening_address" has the value "invalid AddrPort", which is no address`},
		{"a listening address without a port", Context{Attributes: []Param{{keyListeningAddress, "::1"}}},
			`xdstp: Context.Attributes[0]: "xds.resource.listening_address" has the value "::1", which is no address`},
	}
	for _, tt := range tests {
		err := tt.context.Check()
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: error %v, want %s", tt.what, err, tt.want)
		}
	}
}

// A context belongs to a type; what of it changes makes another name.
func TestContextFunc(t *testing.T) {
	var hook ContextFunc = func(typeURL string) Context {
		if typeURL != listenerURL {
			return Context{}
		}
		return Context{Attributes: []Param{VIP(netip.MustParseAddr("10.0.0.1"))}}
	}
	n := mustParse(t, "xdstp://a/T/x")
	if got := hook(listenerURL).Apply(n); got.Equal(n) {
		t.Errorf("%s has no attribute", got)
	}
	if got := hook("other").Apply(n); !got.Equal(n) {
		t.Errorf("%s has an attribute of another type", got)
	}
}

// spec: CTX-1
func TestCheckReserved(t *testing.T) {
	tests := []struct {
		name   string
		offset int // -1 for a name that is good
	}{
		{"xdstp://a/T/x", -1},
		{"xdstp://a/T/x?xds=1&a=xds.b&xdsx.y=2", -1},
		{"xdstp://a/T/x?a=b@c&@d=e", -1},
		{"xdstp://a/T/x?a=b&xds.node.id=n", 18},
		{"xdstp://a/T/x?xds.=1", 14},
		{"xdstp://a/T/x?%78ds.bar=1", 14},
		{"xdstp://a/T/x?a%3Db=1&c=@ref", 24},
		{"xdstp://a/T/x?c=%40ref", 16},
		{"xdstp://a/T/%3F?c=@ref", 18},
	}
	for _, tt := range tests {
		n := mustParse(t, tt.name)
		err := n.CheckReserved()
		if tt.offset < 0 {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		checkFault(t, err, n.String(), PartParams, tt.offset, "")
		if received, err := ParseReceived(tt.name); err != nil || !received.Equal(n) {
			t.Errorf("received, %s is %s, %v", tt.name, received, err)
		}
	}
}

func TestLocatorCheckReserved(t *testing.T) {
	for url, bad := range map[string]string{
		"xdstp://a/T/x?a=1#entry=xds.y":                                    "",
		"xdstp://a/T/x?a=1#alt=xdstp://b/T/y":                              "",
		"xdstp://a/T/x?xds.a=1#alt=xdstp://b/T/y":                          "xdstp://a/T/x?xds.a=1",
		"xdstp://a/T/x#entry=e,alt=xdstp://b/T/y%23alt=xdstp:///T?xds.b=1": "xdstp:///T?xds.b=1",
	} {
		l, err := ParseLocator(url)
		if err != nil {
			t.Fatal(err)
		}
		err = l.CheckReserved()
		if bad == "" && err != nil || bad != "" && (err == nil || err.(*Error).Input != bad) {
			t.Errorf("%s: error %v, want one about %q", url, err, bad)
		}
	}
}

func TestParam(t *testing.T) {
	n := mustParse(t, "xdstp://a/T/x?k=&l=2")
	var got []string
	for _, key := range []string{"k", "l", "m", ""} {
		value, ok := n.Param(key)
		if ok {
			got = append(got, key+"="+value)
		}
	}
	if want := []string{"k=", "l=2"}; !slices.Equal(got, want) {
		t.Errorf("parameters %q, want %q", got, want)
	}
}
