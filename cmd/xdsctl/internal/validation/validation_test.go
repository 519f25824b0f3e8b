package validation

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
)

// Short forms of type URLs in the tests' resources.
var short = strings.NewReplacer(
	"LDS", "type.googleapis.com/envoy.config.listener.v3.Listener", "RDS", "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
	"CDS", "type.googleapis.com/envoy.config.cluster.v3.Cluster", "EDS_", "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
	"SDS", "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
	"HCM", "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
	"ECHO", "type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo",
	"CORS", "type.googleapis.com/envoy.extensions.filters.http.cors.v3.Cors",
	"SNI", "type.googleapis.com/envoy.extensions.filters.network.sni_cluster.v3.SniCluster",
	"ROUTER", "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
)

// judgeText judges resources in YAML and gives a line for each finding.
func judgeText(t *testing.T, o Options, text string) (lines []string) {
	t.Helper()
	rs, err := resources.ReadFrom(strings.NewReader(short.Replace(text)), "x.yaml")
	if err != nil {
		t.Fatalf("%v of %s", err, text)
	}
	for _, f := range Judge(rs, o) {
		lines = append(lines, fmt.Sprintf("%s %s %s", f.Severity, f.Rule, f.Path))
	}
	return lines
}

// Each rule of Envoy's is found where it is broken, and only there.
func TestEnvoy(t *testing.T) {
	const listener = `{"@type": LDS, name: l, address: {socketAddress: {address: a, portValue: 1}}, filterChains: `
	const eds = `{"@type": CDS, name: c, connectTimeout: 1s, type: EDS`
	had := map[string]bool{}
	for _, c := range []struct{ rule, path, text string }{
		{"", "", `{"@type": RDS, name: r, virtualHosts: [{name: v, domains: [a], requestHeadersToRemove: [x-host]}]}`},
		{RuleEnvoyDomain, "virtualHosts[1].domains[0]", `{"@type": RDS, name: r, virtualHosts: [{name: v, domains: [A.b]}, {name: w, domains: [a.B]}]}`},
		{RuleEnvoyHeader, "requestHeadersToAdd[0].header.key", `{"@type": RDS, name: r, requestHeadersToAdd: [{header: {key: ":path", value: x}}]}`},
		{RuleEnvoyHeader, "virtualHosts[0].responseHeadersToRemove[0]", `{"@type": RDS, name: r, virtualHosts: [{name: v, domains: [a], responseHeadersToRemove: [Host]}]}`},
		{RuleEnvoyRegex, "virtualHosts[0].routes[0].match.safeRegex.regex", `{"@type": RDS, name: r, virtualHosts: [{name: v, domains: [a], routes: [{match: {safeRegex: {regex: "("}}, nonForwardingAction: {}}]}]}`},
		{RuleEnvoyRouter, "filterChains[0].filters[0].typedConfig.httpFilters[0]", listener + `[{filters: [{name: h, typedConfig: {"@type": HCM, statPrefix: s, routeConfig: {}, httpFilters: [{name: r, typedConfig: {"@type": ROUTER}}, {name: x}]}}]}]}`},
		{RuleEnvoyLast, "filterChains[0].filters[0].typedConfig.httpFilters[1]", listener + `[{filters: [{name: h, typedConfig: {"@type": HCM, statPrefix: s, routeConfig: {}, httpFilters: [{name: x}, {name: c, typedConfig: {"@type": CORS}}]}}]}]}`},
		{RuleEnvoyLast, "filterChains[0].filters[0]", listener + `[{filters: [{name: h, typedConfig: {"@type": HCM, statPrefix: s, routeConfig: {}}}, {name: x}]}]}`},
		{RuleEnvoyLast, "filterChains[0].filters[0]", listener + `[{filters: [{name: e, typedConfig: {"@type": ECHO}}, {name: x}]}]}`},
		{RuleEnvoyLast, "filterChains[0].filters[0].typedConfig.httpFilters[0].disabled", listener + `[{filters: [{name: h, typedConfig: {"@type": HCM, statPrefix: s, routeConfig: {}, httpFilters: [{name: x, disabled: true}]}}]}]}`},
		{RuleEnvoyLast, "defaultFilterChain.filters[0]", listener + `[], defaultFilterChain: {filters: [{name: h, typedConfig: {"@type": SNI}}]}}`},
		{"", "", listener + `[{filters: [{name: s, typedConfig: {"@type": SNI}}, {name: h, typedConfig: {"@type": HCM, statPrefix: s, routeConfig: {}, httpFilters: [{name: c, typedConfig: {"@type": CORS}}, {name: r, typedConfig: {"@type": ROUTER}}]}}]}]}`},
		{RuleEnvoyChains, "filterChains[1].filterChainMatch", listener + `[{filterChainMatch: {}}, {}]}`},
		{RuleEnvoyChains, "filterChains[2].filterChainMatch", listener + `[{filterChainMatch: {serverNames: [a, b.c], prefixRanges: [{addressPrefix: 10.1.2.3, prefixLen: 8}]}}, {}, {filterChainMatch: {prefixRanges: [{addressPrefix: 10.0.0.0, prefixLen: 8}], serverNames: [B.c]}}]}`},
		{"", "", listener + `[{filterChainMatch: {serverNames: [a]}}, {}]}`},
		{"", "", listener + `[{filterChainMatch: {prefixRanges: [{addressPrefix: 10.0.0.0, prefixLen: 8}]}}, {filterChainMatch: {prefixRanges: [{addressPrefix: 10.0.0.0, prefixLen: 9}]}}, {filterChainMatch: {destinationPort: 1}}, {filterChainMatch: {sourcePorts: [1, 2]}}, {filterChainMatch: {sourcePorts: [3]}}]}`},
		{RuleEnvoyAddress, "address", listener + "[]}\n---\n" + `{"@type": LDS, name: m, address: {socketAddress: {address: a, portValue: 1}}}`},
		{RuleEnvoyAddress, "additionalAddresses[0].address", listener + "[]}\n---\n" + `{"@type": LDS, name: m, address: {socketAddress: {address: "b", portValue: 1}}, additionalAddresses: [{address: {socketAddress: {address: a, portValue: 1}}}]}`},
		{"", "", listener + "[]}\n---\n" + `{"@type": LDS, name: m, address: {socketAddress: {address: a, portValue: 1, protocol: UDP}}}`},
		{"", "", listener + "[]}\n---\n" + `{"@type": LDS, name: m, address: {socketAddress: {address: a, portValue: 1}}, apiListener: {apiListener: {"@type": HCM, statPrefix: s, routeConfig: {}}}}`},
		{"", "", `{"@type": LDS, name: l, address: {socketAddress: {address: a, portValue: 0}}}` + "\n---\n" + `{"@type": LDS, name: m, address: {socketAddress: {address: a, portValue: 0}}}`},
		{RuleEnvoyEDSConfig, "edsClusterConfig.edsConfig", eds + `}`},
		{RuleEnvoyEDSEndpoints, "loadAssignment", eds + `, edsClusterConfig: {edsConfig: {path: /x}}, loadAssignment: {clusterName: c}}`},
		{RuleEnvoyClusterProvided, "lbPolicy", `{"@type": CDS, name: c, type: ORIGINAL_DST}`},
		{RuleEnvoyClusterProvided, "lbPolicy", `{"@type": CDS, name: c, type: STATIC, lbPolicy: CLUSTER_PROVIDED}`},
		{"", "", `{"@type": CDS, name: c, clusterType: {name: x}, lbPolicy: CLUSTER_PROVIDED}`},
		{RuleEnvoyLogicalDNS, "loadAssignment", `{"@type": CDS, name: c, type: LOGICAL_DNS}`},
		{RuleEnvoyLEDS, "endpoints[0].lbEndpoints", `{"@type": EDS_, clusterName: e, endpoints: [{lbEndpoints: [{endpointName: x}], loadBalancerEndpoints: {}}]}`},
		{RuleEnvoyKeyPair, "tlsCertificate", `{"@type": SDS, name: s, tlsCertificate: {certificateChain: {inlineString: a}, privateKey: {inlineString: b}}}`},
		{"", "", `{"@type": SDS, name: s, tlsCertificate: {certificateChain: {inlineString: "[redacted]"}, privateKey: {inlineString: "[redacted]"}}}`},
	} {
		want := []string(nil)
		if c.rule != "" {
			want = []string{"error " + c.rule + " " + c.path}
		}
		had[c.rule] = true
		elsewhere := func(line string) bool { return strings.Contains(line, RuleReference) }
		if got := slices.DeleteFunc(judgeText(t, Options{As: AsEnvoy}, c.text), elsewhere); !slices.Equal(got, want) {
			t.Errorf("%s: found %q, want %q", c.text, got, want)
		}
		if got := slices.DeleteFunc(judgeText(t, Options{}, c.text), elsewhere); len(got) > 0 {
			t.Errorf("%s: without Envoy found %q", c.text, got)
		}
	}
	page, err := os.ReadFile("../../../../docs/VALIDATION.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range EnvoyRules() {
		if !had[r[0]] {
			t.Errorf("%s has no case", r[0])
		}
		if row := fmt.Sprintf("| `%s` | %s |\n", r[0], r[1]); !strings.Contains(string(page), row) {
			t.Errorf("docs/VALIDATION.md lacks %s", row)
		}
	}
}

// As gRPC, the rules of the messages do not count and gRPC's do; what it ignores is a warning, and
// references and names twice are found as ever.
func TestGRPC(t *testing.T) {
	const text = `{"@type": CDS, name: c, type: EDS, connectTimeout: -1s, edsClusterConfig: {edsConfig: {ads: {}}}}
---
{"@type": CDS, name: c, type: STATIC}
---
{"@type": EDS_, endpoints: [{locality: {}}]}
---
{"@type": SDS, name: s}
`
	for _, c := range []struct {
		o    Options
		want []string
	}{
		{Options{As: AsGRPC}, []string{
			"error duplicate ", "warning reference name", "error grpc-cluster-type type",
			"error grpc-name clusterName", "warning grpc-locality-ignored endpoints[0]", "warning grpc-type ",
		}},
		{Options{As: AsGRPC, Closed: true}, []string{
			"error duplicate ", "error reference name", "error grpc-cluster-type type",
			"error grpc-name clusterName", "warning grpc-locality-ignored endpoints[0]", "warning grpc-type ",
		}},
		{Options{}, []string{"error duplicate ", "error field connectTimeout", "warning reference name", "error field clusterName"}},
	} {
		got := judgeText(t, c.o, text)
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: found\n%q, want\n%q", c.o, got, c.want)
		}
	}
}

// Certificate providers are judged if the bootstrap is known.
func TestProviders(t *testing.T) {
	const text = `{"@type": CDS, name: c, type: LOGICAL_DNS, loadAssignment: {endpoints: [{lbEndpoints: [{endpoint: {address: {socketAddress: {address: a, portValue: 1}}}}]}]}, transportSocket: {name: envoy.transport_sockets.tls, typedConfig: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, commonTlsContext: {validationContext: {caCertificateProviderInstance: {instanceName: p}}}}}}`
	for _, c := range []struct {
		providers map[string]bool
		found     int
	}{{nil, 0}, {map[string]bool{"p": true}, 0}, {map[string]bool{}, 1}} {
		if got := judgeText(t, Options{As: AsGRPC, Providers: c.providers}, text); len(got) != c.found {
			t.Errorf("%v: %q", c.providers, got)
		}
	}
}

// Each fault of a file is a finding, with the resource that it is in.
func TestBroken(t *testing.T) {
	err := errors.Join(
		&resources.FileError{File: "a", Err: errors.Join(errors.New("one"), fmt.Errorf("in it: %w", &resources.ResourceError{Type: "T", Name: "n", Err: errors.New("two")}))},
		errors.New("three"),
	)
	got := fmt.Sprint(Broken("p", err))
	if want := "[{a    syntax one error} {a T n  syntax two error} {p    syntax three error}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
