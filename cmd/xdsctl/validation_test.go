package main_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/validation"
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
func judgeText(t *testing.T, o validation.Options, text string) (lines []string) {
	t.Helper()
	rs, err := resources.ReadFrom(strings.NewReader(short.Replace(text)), "x.yaml")
	if err != nil {
		t.Fatalf("%v of %s", err, text)
	}
	for _, f := range validation.Judge(rs, o) {
		lines = append(lines, fmt.Sprintf("%s %s %s", f.Severity, f.Rule, f.Path))
	}
	return lines
}

// Each rule of Envoy's is found where it is broken, and only there: not in a twin in which one text is another.
func TestEnvoy(t *testing.T) {
	const listener = `{"@type": LDS, name: l, address: {socketAddress: {address: a, portValue: 1}}, filterChains: `
	const eds = `{"@type": CDS, name: c, connectTimeout: 1s, type: EDS`
	const weights = `{"@type": RDS, name: r, virtualHosts: [{name: v, domains: [a], routes: [{match: {prefix: /}, route: {weightedClusters: {clusters: `
	const weighted = "virtualHosts[0].routes[0].route.weightedClusters.clusters"
	had, mended := map[string]bool{}, map[string]bool{}
	for _, c := range []struct {
		rule, path, text string
		mend             [2]string // a text of it, and the one in its place; "" for no twin
	}{
		{"", "", `{"@type": RDS, name: r, virtualHosts: [{name: v, domains: [a], requestHeadersToRemove: [x-host]}]}`, [2]string{}},
		{validation.RuleEnvoyDomain, "virtualHosts[1].domains[0]", `{"@type": RDS, name: r, virtualHosts: [{name: v, domains: [A.b]}, {name: w, domains: [a.B]}]}`, [2]string{`a.B`, `a.c`}},
		{validation.RuleEnvoyHeader, "requestHeadersToAdd[0].header.key", `{"@type": RDS, name: r, requestHeadersToAdd: [{header: {key: ":path", value: x}}]}`, [2]string{`":path"`, `"path"`}},
		{validation.RuleEnvoyHeader, "virtualHosts[0].responseHeadersToRemove[0]", `{"@type": RDS, name: r, virtualHosts: [{name: v, domains: [a], responseHeadersToRemove: [Host]}]}`, [2]string{}},
		{validation.RuleEnvoyRegex, "virtualHosts[0].routes[0].match.safeRegex.regex", `{"@type": RDS, name: r, virtualHosts: [{name: v, domains: [a], routes: [{match: {safeRegex: {regex: "("}}, nonForwardingAction: {}}]}]}`, [2]string{`"("`, `"a"`}},
		{validation.RuleEnvoyWeights, weighted, weights + `[{name: a, weight: 0}, {name: b, weight: 0}]}}}]}]}`, [2]string{`weight: 0`, `weight: 1`}},
		{validation.RuleEnvoyWeights, weighted, weights + `[{name: a, weight: 4294967295}, {name: b, weight: 1}]}}}]}]}`, [2]string{`4294967295`, `4294967294`}},
		{validation.RuleEnvoyWeights, weighted + "[1].weight", weights + `[{name: a, weight: 0}, {name: b}]}}}]}]}`, [2]string{`name: b`, `name: b, weight: 1`}},
		{validation.RuleEnvoyWeights, weighted + "[0].name", weights + `[{weight: 1}]}}}]}]}`, [2]string{`weight: 1`, `weight: 1, clusterHeader: h`}},
		{validation.RuleEnvoyWeights, weighted + "[0].name", weights + `[{weight: 1, name: a, clusterHeader: h}]}}}]}]}`, [2]string{`name: a, `, ``}},
		{validation.RuleEnvoyRouter, "filterChains[0].filters[0].typedConfig.httpFilters[0]", listener + `[{filters: [{name: h, typedConfig: {"@type": HCM, statPrefix: s, routeConfig: {}, httpFilters: [{name: r, typedConfig: {"@type": ROUTER}}, {name: x}]}}]}]}`, [2]string{`, {name: x}`, ``}},
		{validation.RuleEnvoyLast, "filterChains[0].filters[0].typedConfig.httpFilters[1]", listener + `[{filters: [{name: h, typedConfig: {"@type": HCM, statPrefix: s, routeConfig: {}, httpFilters: [{name: x}, {name: c, typedConfig: {"@type": CORS}}]}}]}]}`, [2]string{`, {name: c, typedConfig: {"@type": CORS}}`, ``}},
		{validation.RuleEnvoyLast, "filterChains[0].filters[0]", listener + `[{filters: [{name: h, typedConfig: {"@type": HCM, statPrefix: s, routeConfig: {}}}, {name: x}]}]}`, [2]string{}},
		{validation.RuleEnvoyLast, "filterChains[0].filters[0]", listener + `[{filters: [{name: e, typedConfig: {"@type": ECHO}}, {name: x}]}]}`, [2]string{}},
		{validation.RuleEnvoyLast, "filterChains[0].filters[0].typedConfig.httpFilters[0].disabled", listener + `[{filters: [{name: h, typedConfig: {"@type": HCM, statPrefix: s, routeConfig: {}, httpFilters: [{name: x, disabled: true}]}}]}]}`, [2]string{}},
		{validation.RuleEnvoyLast, "defaultFilterChain.filters[0]", listener + `[], defaultFilterChain: {filters: [{name: h, typedConfig: {"@type": SNI}}]}}`, [2]string{}},
		{"", "", listener + `[{filters: [{name: s, typedConfig: {"@type": SNI}}, {name: h, typedConfig: {"@type": HCM, statPrefix: s, routeConfig: {}, httpFilters: [{name: c, typedConfig: {"@type": CORS}}, {name: r, typedConfig: {"@type": ROUTER}}]}}]}]}`, [2]string{}},
		{validation.RuleEnvoyChains, "filterChains[1].filterChainMatch", listener + `[{filterChainMatch: {}}, {}]}`, [2]string{`{filterChainMatch: {}}`, `{filterChainMatch: {destinationPort: 1}}`}},
		{validation.RuleEnvoyChains, "filterChains[2].filterChainMatch", listener + `[{filterChainMatch: {serverNames: [a, b.c], prefixRanges: [{addressPrefix: 10.1.2.3, prefixLen: 8}]}}, {}, {filterChainMatch: {prefixRanges: [{addressPrefix: 10.0.0.0, prefixLen: 8}], serverNames: [B.c]}}]}`, [2]string{}},
		{"", "", listener + `[{filterChainMatch: {serverNames: [a]}}, {}]}`, [2]string{}},
		{"", "", listener + `[{filterChainMatch: {prefixRanges: [{addressPrefix: 10.0.0.0, prefixLen: 8}]}}, {filterChainMatch: {prefixRanges: [{addressPrefix: 10.0.0.0, prefixLen: 9}]}}, {filterChainMatch: {destinationPort: 1}}, {filterChainMatch: {sourcePorts: [1, 2]}}, {filterChainMatch: {sourcePorts: [3]}}]}`, [2]string{}},
		{validation.RuleEnvoyListener, "address", `{"@type": LDS, name: l, filterChains: [{}]}`, [2]string{`[{}]`, `[{}], internalListener: {}`}},
		{validation.RuleEnvoyListener, "filterChains", listener + `[]}`, [2]string{`[]`, `[], defaultFilterChain: {}`}},
		{validation.RuleEnvoyListener, "filterChains", listener + `[]}`, [2]string{`portValue`, `protocol: UDP, portValue`}},
		{validation.RuleEnvoyListener, "internalListener", `{"@type": LDS, name: l, internalListener: {}, apiListener: {}}`, [2]string{`internalListener: {}, `, ``}},
		{validation.RuleEnvoyAddress, "address", listener + "[{}]}\n---\n" + `{"@type": LDS, name: m, address: {socketAddress: {address: a, portValue: 1}}, filterChains: [{}]}`, [2]string{`name: m, address: {socketAddress: {address: a`, `name: m, address: {socketAddress: {address: b`}},
		{validation.RuleEnvoyAddress, "additionalAddresses[0].address", listener + "[{}]}\n---\n" + `{"@type": LDS, name: m, address: {socketAddress: {address: "b", portValue: 1}}, additionalAddresses: [{address: {socketAddress: {address: a, portValue: 1}}}], filterChains: [{}]}`, [2]string{}},
		{"", "", listener + "[{}]}\n---\n" + `{"@type": LDS, name: m, address: {socketAddress: {address: a, portValue: 1, protocol: UDP}}, filterChains: [{}]}`, [2]string{}},
		{"", "", listener + "[{}]}\n---\n" + `{"@type": LDS, name: m, address: {socketAddress: {address: a, portValue: 1}}, apiListener: {apiListener: {"@type": HCM, statPrefix: s, routeConfig: {}}}}`, [2]string{}},
		{"", "", `{"@type": LDS, name: l, address: {socketAddress: {address: a, portValue: 0}}, filterChains: [{}]}` + "\n---\n" + `{"@type": LDS, name: m, address: {socketAddress: {address: a, portValue: 0}}, filterChains: [{}]}`, [2]string{}},
		{validation.RuleEnvoyEDSConfig, "edsClusterConfig.edsConfig", eds + `}`, [2]string{`type: EDS`, `type: EDS, edsClusterConfig: {edsConfig: {path: /x}}`}},
		{validation.RuleEnvoyEDSEndpoints, "loadAssignment", eds + `, edsClusterConfig: {edsConfig: {path: /x}}, loadAssignment: {clusterName: c}}`, [2]string{`, loadAssignment: {clusterName: c}`, ``}},
		{validation.RuleEnvoyClusterProvided, "lbPolicy", `{"@type": CDS, name: c, type: ORIGINAL_DST}`, [2]string{`ORIGINAL_DST`, `ORIGINAL_DST, lbPolicy: CLUSTER_PROVIDED`}},
		{validation.RuleEnvoyClusterProvided, "lbPolicy", `{"@type": CDS, name: c, type: STATIC, lbPolicy: CLUSTER_PROVIDED}`, [2]string{}},
		{"", "", `{"@type": CDS, name: c, clusterType: {name: x}, lbPolicy: CLUSTER_PROVIDED}`, [2]string{}},
		{validation.RuleEnvoyLogicalDNS, "loadAssignment", `{"@type": CDS, name: c, type: LOGICAL_DNS}`, [2]string{`LOGICAL_DNS`, `LOGICAL_DNS, loadAssignment: {clusterName: c, endpoints: [{lbEndpoints: [{endpoint: {address: {socketAddress: {address: a, portValue: 1}}}}]}]}`}},
		{validation.RuleEnvoyLEDS, "endpoints[0].lbEndpoints", `{"@type": EDS_, clusterName: e, endpoints: [{lbEndpoints: [{endpointName: x}], loadBalancerEndpoints: {}}]}`, [2]string{`lbEndpoints: [{endpointName: x}], `, ``}},
		{validation.RuleEnvoyKeyPair, "tlsCertificate", `{"@type": SDS, name: s, tlsCertificate: {certificateChain: {inlineString: a}, privateKey: {inlineString: b}}}`, [2]string{`certificateChain: {inlineString: a}`, `certificateChain: {filename: a}`}},
		{"", "", `{"@type": SDS, name: s, tlsCertificate: {certificateChain: {inlineString: a}, privateKey: {inlineString: b}, password: {filename: p}}}`, [2]string{}},
		{"", "", `{"@type": SDS, name: s, tlsCertificate: {certificateChain: {inlineString: "[redacted]"}, privateKey: {inlineString: "[redacted]"}}}`, [2]string{}},
	} {
		want := []string(nil)
		if c.rule != "" {
			want = []string{"error " + c.rule + " " + c.path}
		}
		had[c.rule] = true
		mended[c.rule] = mended[c.rule] || c.mend[0] != ""
		elsewhere := func(line string) bool { return strings.Contains(line, validation.RuleReference) }
		if got := slices.DeleteFunc(judgeText(t, validation.Options{As: validation.AsEnvoy}, c.text), elsewhere); !slices.Equal(got, want) {
			t.Errorf("%s: found %q, want %q", c.text, got, want)
		}
		if twin := strings.ReplaceAll(c.text, c.mend[0], c.mend[1]); c.mend[0] != "" {
			if got := slices.DeleteFunc(judgeText(t, validation.Options{As: validation.AsEnvoy}, twin), elsewhere); twin == c.text || len(got) > 0 {
				t.Errorf("%s: found %q", twin, got)
			}
		}
		if got := slices.DeleteFunc(judgeText(t, validation.Options{}, c.text), elsewhere); len(got) > 0 {
			t.Errorf("%s: without Envoy found %q", c.text, got)
		}
	}
	page, err := os.ReadFile("../../docs/VALIDATION.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range validation.EnvoyRules() {
		if !had[r[0]] || !mended[r[0]] {
			t.Errorf("%s has no case, or none with a twin", r[0])
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
		o    validation.Options
		want []string
	}{
		{validation.Options{As: validation.AsGRPC}, []string{
			"error duplicate ", "warning reference name", "error grpc-cluster-type type",
			"error grpc-name clusterName", "warning grpc-locality-ignored endpoints[0]", "warning grpc-type ",
		}},
		{validation.Options{As: validation.AsGRPC, Closed: true}, []string{
			"error duplicate ", "error reference name", "error grpc-cluster-type type",
			"error grpc-name clusterName", "warning grpc-locality-ignored endpoints[0]", "warning grpc-type ",
		}},
		{validation.Options{}, []string{"error duplicate ", "error field connectTimeout", "warning reference name", "error field clusterName"}},
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
		if got := judgeText(t, validation.Options{As: validation.AsGRPC, Providers: c.providers}, text); len(got) != c.found {
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
	got := fmt.Sprint(validation.Broken("p", err))
	if want := "[{a    syntax one error} {a T n  syntax two error} {p    syntax three error}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
