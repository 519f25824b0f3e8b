package bootstrap_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xdswatch/xdswatch/bootstrap"
	"google.golang.org/grpc/credentials"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite testdata/cases.golden")

// aCase is one bootstrap of testdata/cases.yaml, which gathers what the tests of other
// clients ask of theirs.
type aCase struct {
	ID    string
	Scope string
	JSON  *string
	Valid bool
	// Suggest is set for probes, which no client's tests have.
	Suggest string
}

func readCases(t testing.TB) (cases, probes []aCase, checks []string) {
	t.Helper()
	data, err := os.ReadFile("testdata/cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases, Probes []aCase
		Checks        []struct{ ID string } `json:"envoy_config_checks"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Checks {
		checks = append(checks, c.ID)
	}
	if len(file.Cases) < 80 || len(file.Probes) < 8 || len(checks) < 20 {
		t.Fatalf("cases.yaml has %d cases, %d probes, %d checks: some are lost",
			len(file.Cases), len(file.Probes), len(checks))
	}
	return file.Cases, file.Probes, checks
}

// diverges are the cases whose cited client decides otherwise than this package.
var diverges = map[string]string{
	"go-src-both-empty":      "a missing bootstrap is an error when it is asked for, not when a client is made",
	"go-cert-bad-config":     "certificate providers are kept for the program, whose plugins judge their configs",
	"core-cert-unknown":      "certificate providers are kept for the program, which knows its plugins",
	"core-cert-plugin-error": "certificate providers are kept for the program, whose plugins judge their configs",
	"go-allowed-off":         "there is no switch: allowed_grpc_services is always read",

	// H-7: what a credential says and cannot be kept to is a fault.
	"go-tls-spiffe-reload":    "SPIFFE trust bundles are not supported",
	"go-tls-failing-provider": "SPIFFE trust bundles are not supported",
	"go-tls-ok-refresh-interval-ca-chain-private-key-certificate-chain-spiffe-bundle": "SPIFFE trust bundles are not supported",
}

// suggestions are the decisions about probes; the file suggests them.
var suggestions = map[string]bool{
	"probe-authority-null":         true,
	"probe-servers-null":           false,
	"probe-features-null":          true,
	"probe-creds-null-element":     true,
	"probe-empty-default-template": true,
	"probe-authority-name-slash":   true,
	"probe-duplicate-key":          false, // as in the C++ and Java clients
	"probe-bom":                    true,
}

// caseOptions know the types of credentials that the cited tests register.
func caseOptions() []bootstrap.Option {
	build := func(json.RawMessage) (credentials.Bundle, error) { return nil, nil }
	return []bootstrap.Option{
		bootstrap.WithChannelCreds("google_default", build),
		bootstrap.WithChannelCreds("fake", build),
	}
}

// wrap makes a whole bootstrap of the element that a case is about.
func wrap(t testing.TB, c aCase) string {
	const (
		insecure = `"channel_creds":[{"type":"insecure"}]`
		server   = `{"server_uri":"x:1",` + insecure + `}`
	)
	text := *c.JSON
	switch c.Scope {
	case "bootstrap", "":
		return text
	case "server":
		return `{"xds_servers":[` + text + `]}`
	case "node":
		return `{"xds_servers":[` + server + `],"node":` + text + `}`
	case "allowed_grpc_services":
		return `{"xds_servers":[` + server + `],"allowed_grpc_services":` + text + `}`
	case "tls-creds-config":
		return `{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"tls","config":` + text + `}]}]}`
	case "jwt-creds-config":
		return `{"xds_servers":[{"server_uri":"x:1",` + insecure +
			`,"call_creds":[{"type":"jwt_token_file","config":` + text + `}]}]}`
	}
	t.Fatalf("%s: scope %q is not covered", c.ID, c.Scope)
	return ""
}

// run gives the outcome of a case.
func run(t *testing.T, c aCase) (*bootstrap.Config, error) {
	if c.Scope == "delivery" {
		return deliver(t, c)
	}
	return bootstrap.Parse("case", []byte(wrap(t, c)), caseOptions()...)
}

// deliver puts the text where a case says it comes from, and asks for it.
func deliver(t *testing.T, c aCase) (*bootstrap.Config, error) {
	const other = `{"xds_servers":[{"server_uri":"wrong:1","channel_creds":[{"type":"insecure"}]}]}`
	file := filepath.Join(t.TempDir(), "bootstrap.json")
	if c.JSON != nil {
		if err := os.WriteFile(file, []byte(*c.JSON), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path, config := "", ""
	switch c.ID {
	case "go-src-file-missing", "go-src-file-empty":
		path, config = file, other
	case "go-src-both-set":
		path, config = file, other
	case "java-src-sysprop-path": // Go has no system properties: a path given by the program
		return bootstrap.Load(file, caseOptions()...)
	case "go-src-content-only", "java-src-env-config":
		config = *c.JSON
	case "go-src-both-empty", "java-src-none":
	default:
		t.Fatalf("delivery case %s is not covered", c.ID)
	}
	t.Setenv("GRPC_XDS_BOOTSTRAP", path)
	t.Setenv("GRPC_XDS_BOOTSTRAP_CONFIG", config)
	boot, err := bootstrap.FromEnv(caseOptions()...)
	if err != nil {
		err = fmt.Errorf("%s", strings.ReplaceAll(err.Error(), file, "FILE"))
	}
	return boot, err
}

// TestCases holds every case against the decision of the client that it comes from, and
// against testdata/cases.golden, which has what comes of it.
//
// spec: BOOT-1 BOOT-2 BOOT-3 BOOT-4 BOOT-5 BOOT-6 BOOT-7 BOOT-8
func TestCases(t *testing.T) {
	cases, probes, _ := readCases(t)
	got := map[string]string{}
	for _, c := range append(cases, probes...) {
		t.Run(c.ID, func(t *testing.T) {
			if strings.HasPrefix(c.Scope, "pair-of-") {
				got[c.ID] = pair(t, c)
				return
			}
			boot, err := run(t, c)
			got[c.ID] = outcome(boot, err)
			checkDecision(t, c, err)
			if err == nil && boot.Validate() != nil {
				t.Errorf("accepted, but Validate: %v", boot.Validate())
			}
		})
	}
	for id := range diverges {
		if got[id] == "" {
			t.Errorf("diverges has %q, which is no case", id)
		}
	}
	compareGolden(t, got)
}

func checkDecision(t *testing.T, c aCase, err error) {
	want := c.Valid
	if c.Suggest != "" {
		decided, ok := suggestions[c.ID]
		if !ok {
			t.Fatalf("no decision on probe %s (%s)", c.ID, c.Suggest)
		}
		want = decided
		if (c.Suggest == "error" && want) || (strings.HasPrefix(c.Suggest, "accept") && !want) {
			t.Errorf("decision %v is against the suggestion %q", want, c.Suggest)
		}
	}
	if diverges[c.ID] != "" {
		want = !want
	}
	if (err == nil) != want {
		t.Errorf("accepted: %v, want %v; error: %v", err == nil, want, err)
	}
}

// pair says whether two servers, alike but for what a case compares, are the same.
func pair(t *testing.T, c aCase) string {
	var keys []string
	if c.Scope == "pair-of-servers" {
		known := bootstrap.WithCallCreds("different",
			func(json.RawMessage) (credentials.PerRPCCredentials, error) { return nil, nil })
		boot, err := bootstrap.Parse("case", []byte(`{"xds_servers":`+*c.JSON+`}`), known)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range boot.Servers {
			keys = append(keys, s.Key())
		}
	} else {
		var list []bootstrap.CallCreds
		if err := json.Unmarshal([]byte(*c.JSON), &list); err != nil {
			t.Fatal(err)
		}
		for _, cc := range list {
			s := bootstrap.ManagementServer{URI: "x:1", CallCreds: []bootstrap.CallCreds{cc}}
			keys = append(keys, s.Key())
		}
	}
	if len(keys) != 2 {
		t.Fatalf("%d keys, want 2", len(keys))
	}
	if keys[0] == keys[1] {
		return "same"
	}
	return "different"
}

func compareGolden(t *testing.T, got map[string]string) {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(got)) {
		text := strings.ReplaceAll(strings.TrimSuffix(got[id], "\n"), "\n", "\n\t")
		fmt.Fprintf(&b, "%s\n\t%s\n", id, text)
	}
	if *update {
		if err := os.WriteFile("testdata/cases.golden", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/cases.golden")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("testdata/cases.golden, -want +got (go test -update rewrites it):\n%s", diff)
	}
}
