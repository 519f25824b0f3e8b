package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/validation"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
)

// judged runs validate, and gives a line for each finding.
func judged(t *testing.T, args ...string) (status int, lines []string) {
	t.Helper()
	status, out, errs := runOnce(t, append([]string{"validate", "-o", "json"}, args...)...)
	var fs []validation.Finding
	if err := json.Unmarshal([]byte(out), &fs); err != nil || errs != "" {
		t.Fatalf("status %d, %v, %s\n%s", status, err, errs, out)
	}
	for _, f := range fs {
		lines = append(lines, fmt.Sprintf("%s %s:%s %s %s", f.Severity, subscription.Short(f.Type), f.Name, f.Rule, f.Path))
	}
	return status, lines
}

// Every rule is found where it is broken, also in what an Any contains.
func TestValidate(t *testing.T) {
	t.Parallel()
	hcm := packed(&hcmv3.HttpConnectionManager{}) // without a prefix and routes
	chain := func(config *anypb.Any) *listenerv3.Listener {
		return &listenerv3.Listener{Name: "l", Address: address("0.0.0.0", 80), FilterChains: []*listenerv3.FilterChain{{
			Filters: []*listenerv3.Filter{{Name: "f", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: config}}},
		}}}
	}
	for _, tt := range []struct {
		name      string
		resources []proto.Message
		closed    bool
		status    int
		want      string
	}{
		{"all is well", changed(), true, 0, ""},
		{"no name", []proto.Message{&clusterv3.Cluster{}}, false, 3, "error cds: field name"},
		{"no name though no rule wants one", []proto.Message{&tlsv3.Secret{}}, false, 3, "error sds: name "},
		{"a name twice", []proto.Message{cluster("a"), cluster("a")}, false, 3, "error cds:a duplicate "},
		{"a field", []proto.Message{&clusterv3.Cluster{Name: "a", ConnectTimeout: durationpb.New(-1)}}, false, 3, "error cds:a field connectTimeout"},
		{"fields deep inside", []proto.Message{&routev3.RouteConfiguration{Name: "r", VirtualHosts: []*routev3.VirtualHost{
			{Name: "v", Domains: []string{"*"}, Routes: []*routev3.Route{{}}}, {Domains: []string{"x"}},
		}}}, false, 3, "error rds:r field virtualHosts[0].routes[0].action; error rds:r field virtualHosts[0].routes[0].match; error rds:r field virtualHosts[1].name"},
		{"a map", []proto.Message{&endpointv3.ClusterLoadAssignment{ClusterName: "e", NamedEndpoints: map[string]*endpointv3.Endpoint{"x": {
			Address: &corev3.Address{},
		}}}}, false, 3, "error eds:e field namedEndpoints[\"x\"].address.address"},
		{"in an Any", []proto.Message{chain(hcm)}, false, 3,
			"error lds:l field filterChains[0].filters[0].typedConfig.routeSpecifier; error lds:l field filterChains[0].filters[0].typedConfig.statPrefix"},
		{"an Any that does not parse", []proto.Message{chain(&anypb.Any{TypeUrl: hcm.GetTypeUrl(), Value: []byte("\xff")})}, false, 3,
			"error lds:l any filterChains[0].filters[0].typedConfig"},
		{"an extension that is not known", []proto.Message{chain(&anypb.Any{TypeUrl: "type.googleapis.com/no.such.Type"})}, false, 0,
			"warning lds:l unknown-type filterChains[0].filters[0].typedConfig"},
		{"references elsewhere", []proto.Message{proxyListener("l", "gone"), routesTo("r", "gone"), edsCluster("c")}, false, 0,
			"warning cds:c reference name; warning lds:l reference filterChains[0].filters[0].typedConfig.rds.routeConfigName; warning rds:r reference virtualHosts[0].routes[0].route.cluster"},
		{"references nowhere", []proto.Message{aggregate("a", "gone")}, true, 3, "error cds:a reference clusterType.typedConfig.clusters"},
	} {
		args := []string{resourceFile(t, "x.pb", tt.resources...)}
		if tt.closed {
			args = append(args, "--closed")
		}
		if status, lines := judged(t, args...); status != tt.status || strings.Join(lines, "; ") != tt.want {
			t.Errorf("%s: status %d, %s\nwant %s", tt.name, status, strings.Join(lines, "; "), tt.want)
		}
	}
}

// Files of a directory are judged together, and a bad one hides no other. No finding quotes a value.
//
// spec: H-3
func TestValidateFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"a.yaml":       `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster` + "\nname: a\n",
		"b/again.json": `{"resources": [{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a"}, {"@type": "type.googleapis.com/no.such.Type", "name": "n", "value": "AA=="}]}`,
		"bad.yaml":     `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster` + "\nname: [MARK3R]\n",
		".hidden.yaml": "nonsense",
		"notes.md":     "nonsense",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	status, out, errs := runOnce(t, "validate", dir)
	want := []string{
		`bad.yaml: cds "" name: error: invalid value for string field name (syntax)`, "b/again.json: cds \"a\": error: the name is given before, in " + dir + "/a.yaml (duplicate)",
		"b/again.json: Type \"n\": warning: the type is not known here",
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("lacks %s:\n%s", w, out)
		}
	}
	if status != 3 || errs != "" || strings.Count(out, "\n") != len(want) || strings.Contains(out, "MARK3R") {
		t.Errorf("status %d, %s\n%s", status, errs, out)
	}
	var findings []struct{ File string }
	if _, out, _ := runOnce(t, "validate", "-o", "json", dir); json.Unmarshal([]byte(out), &findings) != nil || len(findings) != len(want) {
		t.Errorf("%s", out)
	}
	if !slices.IsSortedFunc(findings, func(a, b struct{ File string }) int { return strings.Compare(a.File, b.File) }) {
		t.Errorf("not by file: %v", findings)
	}
	if status, out, errs := runOnce(t, "validate", dir, "/does/not/exist"); status != 1 || out != "" || !strings.Contains(errs, "no such file") {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
	if status, _, errs := runOnce(t, "validate"); status != 2 || !strings.Contains(errs, "want a PATH") {
		t.Errorf("status %d, %s", status, errs)
	}
}

// An extension that is not known is a warning in JSON too, and all else of its resource is judged.
func TestValidateUnknown(t *testing.T) {
	t.Parallel()
	const text = `"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: l
address: {socket_address: {address: 10.0.0.1, port_value: 1}}
filter_chains:
- filters:
  - {name: a, typed_config: {"@type": type.googleapis.com/no.such.Type, of: [its, own]}}
  - {name: b, typed_config: {"@type": type.googleapis.com/no.such.Type, value: {x: 1}}}
  - {typed_config: {"@type": type.googleapis.com/no.such.Type}}
---
{"@type": type.googleapis.com/no.such.Type, name: q, x: 1}
---
{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: m, typo: 1, filter_chains: [{filters: [{typed_config: {"@type": type.googleapis.com/no.such.Type, x: 1}}]}]}
`
	path := file(t, "x.yaml", text)
	for as, want := range map[string]string{
		"envoy": "warning lds:l unknown-type filterChains[0].filters[0].typedConfig; warning lds:l unknown-type filterChains[0].filters[1].typedConfig; " +
			"error lds:l field filterChains[0].filters[2].name; warning lds:l unknown-type filterChains[0].filters[2].typedConfig; error lds:m syntax typo; warning Type:q unknown-type ",
		"grpc": "error lds:l grpc-chain-filters filterChains[0].filters[0].typedConfig; " +
			"error lds:l grpc-chain-filters filterChains[0].filters[1].typedConfig; error lds:l grpc-chain-filters filterChains[0].filters[2].name; " +
			"error lds:l grpc-chain-filters filterChains[0].filters[2].typedConfig; error lds:m syntax typo; warning Type:q unknown-type ",
	} {
		if status, lines := judged(t, "--as", as, path); status != 3 || strings.Join(lines, "; ") != want {
			t.Errorf("%s: status %d, %s\nwant %s", as, status, strings.Join(lines, "; "), want)
		}
	}
	if status, _, errs := runOnce(t, "replay", path); status != 1 || !strings.Contains(errs, "is not known here") {
		t.Errorf("replay: status %d, %s", status, errs)
	}
}

// Of a recording what the server had in the end is judged, as it is compared.
func TestValidateRecording(t *testing.T) {
	t.Parallel()
	const frame = `{"time":"2026-01-01T00:00:00Z","direction":"response","server":"s","node":"n","stream":1,"method":"/m","variant":"sotw","type":"type.googleapis.com/envoy.config.cluster.v3.Cluster",` +
		`"message":{"versionInfo":"%s","typeUrl":"type.googleapis.com/envoy.config.cluster.v3.Cluster","resources":[{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","name":"%s","type":"ORIGINAL_DST"}]}}` + "\n"
	path := file(t, "r.jsonl", fmt.Sprintf(frame, "1", "before")+fmt.Sprintf(frame, "2", "after"))
	status, out, errs := runOnce(t, "validate", "--as", "envoy", path)
	if want := path + ": cds \"after\" lbPolicy: error: type and policy do not go together (envoy-cluster-provided)\n"; status != 3 || out != want || errs != "" {
		t.Errorf("status %d, %s%s, want %s", status, out, errs, want)
	}
	path = file(t, "broken.jsonl", fmt.Sprintf(frame, "1", "a")+"{\n"+fmt.Sprintf(frame, "2", "b"))
	status, out, errs = runOnce(t, "validate", path)
	if status != 3 || !strings.HasPrefix(out, path+": error: line 2 is no frame of a recording (syntax)") || errs != "" {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
}

// Where there is nothing to judge it is told, since it may be a mistake.
func TestValidateNothing(t *testing.T) {
	t.Parallel()
	for _, path := range []string{t.TempDir(), file(t, "x.json", "[]"), "-"} {
		status, out, errs := runOnce(t, "validate", path)
		if want := "xdsctl: " + path + ": there is no resource in it\n"; status != 0 || out != "" || errs != want {
			t.Errorf("status %d, %s%s, want %s", status, out, errs, want)
		}
	}
}

// What a server has is judged through a pipe.
func TestValidateStandardInput(t *testing.T) {
	t.Parallel()
	m := managed(t, shop()...)
	_, text, _ := runOnce(t, "get", "--server", m.Addr(), "-o", "yaml", "lds", "cds", "rds:shop", "eds:backend", "eds:frontend")
	var out bytes.Buffer
	if status := run(context.Background(), []string{"validate", "--closed", "-"}, strings.NewReader(text), &out, &out); status != 0 || out.String() != "" {
		t.Errorf("status %d, %s", status, out.String())
	}
}

// Files are judged as gRPC and as Envoy would; names of certificate providers by a bootstrap.
func TestValidateAs(t *testing.T) {
	t.Parallel()
	static := resourceFile(t, "x.yaml", &clusterv3.Cluster{
		Name: "a", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST}, ConnectTimeout: durationpb.New(-1),
	})
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "error cds:a field connectTimeout"},
		{[]string{"--as", "grpc"}, "error cds:a grpc-cluster-type type"},
		{[]string{"--as", "envoy"}, "error cds:a field connectTimeout; error cds:a envoy-cluster-provided lbPolicy"},
	} {
		if status, lines := judged(t, append(c.args, static)...); status != 3 || strings.Join(lines, "; ") != c.want {
			t.Errorf("%v: status %d, %q", c.args, status, lines)
		}
	}
	boot := grpcBootstrap(t, "127.0.0.1:1", "")
	if status, lines := judged(t, "--as", "grpc", "--bootstrap", boot, static); status != 3 || len(lines) != 1 {
		t.Errorf("status %d, %q", status, lines)
	}
	for _, args := range [][]string{{"--as", "istio", static}, {"--bootstrap", boot, static}, {"--as", "grpc", "--bootstrap", "no-such-file", static}} {
		if status, _, errs := runOnce(t, append([]string{"validate"}, args...)...); status != 2 {
			t.Errorf("%q: status %d, %s", args, status, errs)
		}
	}
}

// The scopes of a process do not see one another: a name in two of them is none given twice.
func TestScopes(t *testing.T) {
	t.Parallel()
	process := func(contents ...string) string {
		resp := &statusv3.ClientStatusResponse{}
		for i, content := range contents {
			resp.Config = append(resp.Config, &statusv3.ClientConfig{ClientScope: "s\n" + strconv.Itoa(i), GenericXdsConfigs: []*statusv3.ClientConfig_GenericXdsConfig{
				{TypeUrl: cds.Type.TypeURL(), Name: "a", ClientStatus: adminv3.ClientResourceStatus_ACKED, XdsConfig: packed(&clusterv3.Cluster{Name: "a", AltStatName: content})},
			}})
		}
		return "csds:" + serveProcess(t, saying(resp))
	}
	same, other := process("x", "x"), process("x", "y")
	alone := resourceFile(t, "a.yaml", &clusterv3.Cluster{Name: "a", AltStatName: "x"})
	for _, tt := range []struct {
		args   []string
		status int
		stderr string
	}{
		{[]string{"validate", other}, 0, ""},
		{[]string{"diff", same, alone}, 0, ""},
		{[]string{"diff", alone, other}, 1, `cds "a" is not the same in the scopes "s\n0" and "s\n1" of the process`},
	} {
		if status, out, errs := runOnce(t, tt.args...); status != tt.status || out != "" || !strings.Contains(errs, tt.stderr) || tt.stderr == "" && errs != "" {
			t.Errorf("%s: status %d, %s%s", tt.args, status, out, errs)
		}
	}
	for _, format := range []string{"yaml", "json"} {
		_, out, _ := runOnce(t, "csds", "-o", format, strings.TrimPrefix(other, "csds:"))
		read := file(t, "csds."+format, out)
		if status, out, errs := runOnce(t, "validate", read); status != 0 || out+errs != "" {
			t.Errorf("%s: status %d, %s%s", format, status, out, errs)
		}
		if status, _, errs := runOnce(t, "diff", read, alone); status != 1 || !strings.Contains(errs, "is not the same in the scopes") {
			t.Errorf("%s: status %d, %s", format, status, errs)
		}
	}
	typed := func(name, url, more string) string {
		return fmt.Sprintf("resources: [{\"@type\": %s, name: %s%s}]\n", url, name, more)
	}
	clusterA := typed("a", cds.Type.TypeURL(), ", type: EDS, eds_cluster_config: {eds_config: {ads: {}}}")
	endpoints := fmt.Sprintf("resources: [{\"@type\": %s, cluster_name: a}]\n", eds.Type.TypeURL())
	mark := "# xdsctl scope: \"s\"\n"
	for name, files := range map[string][]string{
		"what no scope has is seen in each":   {mark + clusterA, endpoints},
		"what a scope has is seen in none":    {clusterA, mark + endpoints},
		"another's comment says no scope":     {"# scope: \"of the team\"\n" + clusterA + "---\n" + endpoints},
		"other comments may stand before":     {"# read this\n" + mark + clusterA + "---\n" + mark + endpoints},
		"another's field may be called scope": {"- {\"@type\": " + cds.Type.TypeURL() + ", name: z}\n- {name: a, type: x, scope: [1]}\n"},
	} {
		args := []string{"validate", "--closed"}
		for _, text := range files {
			args = append(args, file(t, "a.yaml", text))
		}
		if status, out, errs := runOnce(t, args...); status != 0 || out+errs != "" {
			t.Errorf("%s: status %d, %s%s", name, status, out, errs)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"own.yaml": mark + clusterA, "shared.yaml": typed("a", cds.Type.TypeURL(), "")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if status, out, errs := runOnce(t, "diff", dir, dir); status != 0 {
		t.Errorf("files that share a name: status %d, %s%s", status, out, errs)
	}
	twice := file(t, "twice.yaml", "# xdsctl scope: \"s\"\nresources: [{\"@type\": "+cds.Type.TypeURL()+", name: a}, {\"@type\": "+cds.Type.TypeURL()+", name: a}]\n---\n# scope: \"t\"\nresources: []\n")
	if status, out, errs := runOnce(t, "validate", twice); status != 3 || !strings.Contains(out, "given before") {
		t.Errorf("twice in a scope: status %d, %s%s", status, out, errs)
	}
}

// What a file costs is bounded by its size, and what is listed of it too.
//
// spec: H-5
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	many := func(entry string, n int) string { return `{"resources":[` + strings.Repeat(entry+",", n) + "{}]}" }
	binary := resourceFile(t, "many.pb")
	if err := os.WriteFile(binary, bytes.Repeat([]byte{0x12, 0}, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"entries": file(t, "a.json", many("{}", 1_600_000)), "a list": file(t, "a.json", "["+strings.Repeat("1,", 2<<20)+"1]"),
		"documents": file(t, "a.yaml", strings.Repeat("--- {}\n", 1<<20)), "YAML": file(t, "a.yaml", strings.Repeat("- {}\n", 1<<20)),
		"text": file(t, "a.txtpb", "resources:["+strings.Repeat("{},", 1<<20)+"{}]"), "binary": binary,
	} {
		for _, command := range []string{"validate", "diff"} {
			args := []string{command, path}
			if command == "diff" {
				args = append(args, path)
			}
			want := map[string]int{"validate": 3, "diff": 1}[command]
			if status, out, errs := runOnce(t, args...); status != want || !strings.Contains(out+errs, "parts, and of") || len(out+errs) > 1000 {
				t.Errorf("%s, %s: status %d, %.500s%.500s", command, name, status, errs, out)
			}
		}
	}
	bad := file(t, "bad.json", many("{}", 2499))
	if status, out, _ := runOnce(t, "validate", bad); status != 3 || strings.Count(out, "\n") != 1001 || !strings.HasSuffix(out, bad+": error: 1500 more findings (more)\n") {
		t.Errorf("status %d, %d findings", status, strings.Count(out, "\n"))
	}
	var named []proto.Message // each names what is not there
	for i := range 1100 {
		named = append(named, edsCluster(fmt.Sprint("b", i)))
	}
	last := append(named, &routev3.RouteConfiguration{Name: "r", VirtualHosts: []*routev3.VirtualHost{{}}})
	if status, out, _ := runOnce(t, "validate", resourceFile(t, "last.yaml", last...)); status != 3 || !strings.Contains(out, "virtualHosts[0].name") || !strings.Contains(out, "warning: ") || !strings.Contains(out, "more findings") {
		t.Errorf("status %d; an error is left out behind warnings: %.300s", status, out)
	}
	if status, _, errs := runOnce(t, "diff", bad, bad); status != 1 || strings.Count(errs, "\n") != 1001 || !strings.HasSuffix(errs, "also: and 1500 more\n") {
		t.Errorf("status %d, %d lines", status, strings.Count(errs, "\n"))
	}
}
