package main_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
)

const (
	clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	mine     = "type.googleapis.com/example.Thing"
)

func TestParseSubscription(t *testing.T) {
	for _, tt := range []struct {
		text string
		want subscription.Subscription
	}{
		{"cds", subscription.Subscription{TypeURL: clusters, Name: "*", Collection: true}},
		{"cds:*", subscription.Subscription{TypeURL: clusters, Name: "*", Collection: true, Explicit: true}},
		{"cds:foo", subscription.Subscription{TypeURL: clusters, Name: "foo"}},
		{"cds:a:b|c/d", subscription.Subscription{TypeURL: clusters, Name: "a:b|c/d"}},
		{"cds:", subscription.Subscription{TypeURL: clusters}},
		{clusters, subscription.Subscription{TypeURL: clusters, Name: "*", Collection: true}},
		{clusters + ":*", subscription.Subscription{TypeURL: clusters, Name: "*", Collection: true, Explicit: true}},
		{mine + ":outbound|80||x.local", subscription.Subscription{TypeURL: mine, Name: "outbound|80||x.local"}},
		{"xdstp://a/example.Thing/x", subscription.Subscription{TypeURL: mine, Name: "xdstp://a/example.Thing/x"}},
		{"xdstp://a/example.Thing/x?b=2&a=1", subscription.Subscription{TypeURL: mine, Name: "xdstp://a/example.Thing/x?a=1&b=2"}},
		{"xdstp://a/example.Thing/x/*", subscription.Subscription{TypeURL: mine, Name: "xdstp://a/example.Thing/x/*", Collection: true}},
		{"xdstp://a/example.ThingCollection/x", subscription.Subscription{TypeURL: mine, Name: "xdstp://a/example.ThingCollection/x", Collection: true}},
		{"xdstp://a/example.ThingCollection/x#entry=y", subscription.Subscription{TypeURL: mine, Name: "xdstp://a/example.ThingCollection/x#entry=y"}},
		{"xdstp://a/example.Thing/x?b=&a=#alt=xdstp://%2562/example.Thing/x", subscription.Subscription{TypeURL: mine, Name: "xdstp://a/example.Thing/x?a=&b=#alt=xdstp://b/example.Thing/x"}},
		{"xdstp://a/example.Thing/x#y", subscription.Subscription{TypeURL: mine, Name: "xdstp://a/example.Thing/x#y"}},
		{"xdstp://a/example.Thing/x?a=1&a=2", subscription.Subscription{TypeURL: mine, Name: "xdstp://a/example.Thing/x?a=1&a=2"}},
		{"xdstp://a/example.ThingCollection/x?a=1&a=2#y", subscription.Subscription{TypeURL: mine, Name: "xdstp://a/example.ThingCollection/x?a=1&a=2#y"}},
		{"xdstp://a/example.Thing#x?y", subscription.Subscription{TypeURL: mine, Name: "xdstp://a/example.Thing#x?y"}},
		{"xdstp://a#y", subscription.Subscription{Name: "xdstp://a#y"}},
		{"cds:xdstp://a/envoy.config.cluster.v3.ClusterCollection/x", subscription.Subscription{
			TypeURL: clusters, Name: "xdstp://a/envoy.config.cluster.v3.ClusterCollection/x", Collection: true}},
		{clusters + "Collection:xdstp://a/envoy.config.cluster.v3.ClusterCollection/x", subscription.Subscription{
			TypeURL: clusters, Name: "xdstp://a/envoy.config.cluster.v3.ClusterCollection/x", Collection: true}},
		{"cds:xdstp://a/example.ThingCollection/x", subscription.Subscription{
			TypeURL: clusters, Name: "xdstp://a/example.ThingCollection/x", Collection: true}},
		{"cds:file:///etc/x.yaml", subscription.Subscription{TypeURL: clusters, Name: "file:///etc/x.yaml", Collection: true}},
		{mine + ":file:///etc/x.yaml#entry=y", subscription.Subscription{TypeURL: mine, Name: "file:///etc/x.yaml#entry=y"}},
		{"cds:file:x", subscription.Subscription{TypeURL: clusters, Name: "file:x"}},
		{"xdstp://a", subscription.Subscription{Name: "xdstp://a"}},
		{"cds:xdstp://a/envoy.config.cluster.v3.Cluster/*", subscription.Subscription{
			TypeURL: clusters, Name: "xdstp://a/envoy.config.cluster.v3.Cluster/*", Collection: true}},
	} {
		got, err := subscription.Parse(tt.text)
		if err != nil || got.Subscription != tt.want || got.Text != tt.text {
			t.Errorf("%s: %+v, %v, want %+v", tt.text, got, err, tt.want)
		}
	}
}

func TestParseFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "it has no type",
		":foo":                             "it has no type",
		"CDS":                              `"CDS" is neither a short type name (lds rds`,
		"clusters:foo":                     `"clusters" is neither`,
		"envoy.config.cluster.v3.Cluster":  `a type URL begins with "type.googleapis.com/"`,
		"type.googleapis.com/":             "is neither",
		"/x":                               "is neither",
		"type.googleapis.com/a b":          "is neither",
		"envoy.config.cluster.v3.Cluster:": "a type URL begins",
	} {
		if got, err := subscription.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want an error that says %s", text, got, err, want)
		}
	}
}

func TestShort(t *testing.T) {
	for url, want := range map[string]string{clusters: "cds", mine: "Thing", "x": "x", "": ""} {
		if got := subscription.Short(url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

func TestKinds(t *testing.T) {
	var kinds subscription.Kinds
	if got := kinds.Of(clusters); got != resource.AnyType(cds.Type) {
		t.Error("a well-known type is not itself")
	}
	unknown := kinds.Of(mine)
	if unknown != kinds.Of(mine) {
		t.Error("a type is made twice")
	}
	if unknown.NameField() != 1 || unknown.FullState() {
		t.Errorf("name field %d, full state %v", unknown.NameField(), unknown.FullState())
	}
	if g, ok := unknown.(interface{ NameGuessed() bool }); !ok || !g.NameGuessed() { // P-12
		t.Error("the name field of an unknown type is no guess")
	}
	if v, err := unknown.Decode(resource.Source{}, []byte("no message")); v != nil || err != nil {
		t.Errorf("an unknown payload is %v, %v", v, err)
	}
}

func TestLinkedKinds(t *testing.T) {
	var kinds subscription.Kinds
	rbac := kinds.Of("type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC")
	if rbac.NameField() != 0 {
		t.Errorf("a message without a name has it in field %d", rbac.NameField())
	}
	b, err := proto.Marshal(&rbacv3.RBAC{RulesStatPrefix: "x"})
	if err != nil {
		t.Fatal(err)
	}
	v, err := rbac.Decode(resource.Source{}, b)
	if m, ok := v.(*rbacv3.RBAC); err != nil || !ok || m.GetRulesStatPrefix() != "x" {
		t.Errorf("decoded %v, %v", v, err)
	}
	if v, err := rbac.Decode(resource.Source{}, []byte{0xff}); err == nil {
		t.Errorf("decoded %v of nonsense", v)
	}
	route := kinds.Of("type.googleapis.com/envoy.config.route.v3.Route")
	if route.NameField() != 14 {
		t.Errorf("the name of a Route is in field %d, want 14", route.NameField())
	}
	if v, err := route.Decode(resource.Source{Validate: true}, nil); err == nil {
		t.Errorf("decoded %v, which has no match", v)
	}
}

func TestHasDirectives(t *testing.T) {
	for text, want := range map[string]bool{
		"cds:a#b":                                     false,
		"xdstp://a/example.Thing/x":                   false,
		"xdstp://a/example.Thing/x?y=%23":             false,
		"xdstp://a/example.ThingCollection/x#entry=y": true,
		"xdstp://a/example.Thing/x#bad":               true,
	} {
		sub, err := subscription.Parse(text)
		if err != nil || sub.HasDirectives() != want {
			t.Errorf("%s: %v, %v, want %v", text, sub.HasDirectives(), err, want)
		}
	}
}
