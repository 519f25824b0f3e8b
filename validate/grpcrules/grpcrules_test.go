package grpcrules

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	roundrobinv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	localityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/rulecases"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
)

func cases(t *testing.T) []rulecases.Case {
	t.Helper()
	return rulecases.Read(t, "testdata/cases.yaml")
}

// Each rule has a case that breaks it and no other, at a path, and whose mended twin breaks none.
//
// spec: ADS-3
func TestRules(t *testing.T) {
	about, had := map[Rule]About{}, map[Rule]bool{"": true}
	for _, a := range Rules() {
		about[a.Rule] = a
	}
	for i, c := range cases(t) {
		o := Options{Providers: map[string]bool{"there": true}, SNI: c.Options == "sni", HTTPConnect: c.Options == "connect", GCPAuthentication: c.Options == "authn", SystemRoots: c.Options == "roots"}
		m, rule := c.Message(t), Rule(c.Rule)
		var want []string
		if rule != "" {
			want = append(want, fmt.Sprintf("%s %s %t", rule, c.Path, about[rule].Ignored))
		}
		var got []string
		for _, f := range o.Judge(m) {
			got = append(got, fmt.Sprintf("%s %s %t", f.Rule, f.Path, f.Ignored))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("case %d: found %q, want %q", i+1, got, want)
		}
		err := o.Check(m)
		if refused := rule != "" && !about[rule].Ignored; (err != nil) != refused {
			t.Errorf("case %d: %v", i+1, err)
		}
		had[rule] = true
		if twin := c.Twin(t); twin != nil {
			if found := o.Judge(twin); len(found) > 0 {
				t.Errorf("case %d, mended: found %v", i+1, found)
			}
		} else if rule != "" && c.Path != "" {
			t.Errorf("case %d has no mended twin", i+1)
		}
	}
	for _, a := range Rules() {
		if !had[a.Rule] {
			t.Errorf("%s has no case", a.Rule)
		}
	}
}

// Without a bootstrap names of certificate providers are not judged, and with an empty one none is
// right.
func TestProviders(t *testing.T) {
	for _, c := range cases(t) {
		if Rule(c.Rule) != RuleTLSBootstrap {
			continue
		}
		if err := (Options{}).Check(c.Message(t)); err != nil {
			t.Error(err)
		}
		if err := (Options{Providers: map[string]bool{}}).Check(c.Message(t)); err == nil {
			t.Error("accepted")
		}
	}
}

// The system's roots count where that is turned on, for clients.
func TestSystemRoots(t *testing.T) {
	c := &tlsv3.CommonTlsContext{ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
		SystemRootCerts: &tlsv3.CertificateValidationContext_SystemRootCerts{},
	}}}
	for _, on := range []bool{false, true} {
		for _, server := range []bool{false, true} {
			j := judge{Options: Options{SystemRoots: on}}
			j.commonTLS("", c, server)
			if (len(j.findings) == 0) != (on && !server) {
				t.Errorf("on %t, server %t: %v", on, server, j.findings)
			}
		}
	}
}

// Policies may stand in each other, but not without end.
func TestPolicyDepth(t *testing.T) {
	list := &clusterv3.LoadBalancingPolicy{}
	for depth := range maxPolicyDepth + 1 {
		inner, err := anypb.New(&localityv3.WrrLocality{EndpointPickingPolicy: list})
		if depth == 0 {
			inner, err = anypb.New(&roundrobinv3.RoundRobin{})
		}
		if err != nil {
			t.Fatal(err)
		}
		list = &clusterv3.LoadBalancingPolicy{Policies: []*clusterv3.LoadBalancingPolicy_Policy{{TypedExtensionConfig: &corev3.TypedExtensionConfig{TypedConfig: inner}}}}
		var j judge
		if j.policyList("", list, 0); (len(j.findings) > 0) != (depth == maxPolicyDepth) {
			t.Errorf("%d policies in each other: %v", depth+1, j.findings)
		}
	}
}

// A program's own policies are known.
func TestPolicies(t *testing.T) {
	j := judge{Options: Options{Policies: []string{"mine"}}}
	if !j.custom("", "x/mine", nil) || j.custom("", "x/other", nil) || len(j.findings) > 0 {
		t.Error(j.findings)
	}
}

// docs/VALIDATION.md has each rule, with its text.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/VALIDATION.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range Rules() {
		row := fmt.Sprintf("| `%s` | %s |", a.Rule, a.Text)
		if a.Ignored {
			row = fmt.Sprintf("| `%s` | %s (a warning) |", a.Rule, a.Text)
		}
		if !strings.Contains(string(text), row+"\n") {
			t.Errorf("not in the document: %s", row)
		}
	}
	if n := len(regexp.MustCompile("(?m)^\\| `grpc-").FindAll(text, -1)); n != len(Rules()) {
		t.Errorf("the document has %d rules of gRPC, want %d", n, len(Rules()))
	}
}

// A guard refuses a response with one resource that gRPC would refuse, and quotes nothing of it.
func TestGuard(t *testing.T) {
	bad, good := &clusterv3.Cluster{Name: "b", AltStatName: "MARK3R"}, &clusterv3.Cluster{
		Name: "a", ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
			Name: "envoy.clusters.aggregate", TypedConfig: &anypb.Any{Value: []byte("\x0a\x01a")},
		}},
	}
	guard := (Options{}).Guard()
	if err := guard(&client.Proposal{Changed: []client.Change{{Name: "a", Value: good}, {Name: "x", Value: 7}}}); err != nil {
		t.Error(err)
	}
	err := guard(&client.Proposal{Changed: []client.Change{{Name: "a", Value: good}, {Name: "b", Value: bad}}})
	refused, ok := errors.AsType[*Error](err)
	if !ok || refused.Findings[0].Rule != RuleClusterType || strings.Contains(err.Error(), "MARK3R") {
		t.Error(err)
	}
	raw, err := proto.Marshal(bad)
	if err != nil {
		t.Fatal(err)
	}
	lazy, err := resource.LazyOf(cds.Type).Decode(resource.Source{}, raw)
	if err != nil {
		t.Fatal(err)
	}
	err = guard(&client.Proposal{Changed: []client.Change{{Name: "b", Value: lazy}}})
	if refused, ok := errors.AsType[*Error](err); !ok || refused.Findings[0].Rule != RuleClusterType {
		t.Errorf("a lazy value: %v", err)
	}
	typ := resource.With(cds.Type, func(c *clusterv3.Cluster) error { return (Options{}).Check(c) })
	for m, ok := range map[*clusterv3.Cluster]bool{good: true, bad: false} {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := typ.Decode(resource.Source{}, b); (err == nil) != ok {
			t.Errorf("%s: %v", m.GetName(), err)
		}
	}
}
