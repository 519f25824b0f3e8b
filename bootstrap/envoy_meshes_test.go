package bootstrap_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// Bootstraps as service meshes and gateways write them for their Envoys load: of testdata/meshes,
// shaped like Consul's, Kuma's, Istio's, Cilium's, Envoy Gateway's and that of go-control-plane's
// example. testdata/meshes.golden has what comes of each.
//
// spec: BOOTE-1 BOOTE-2 BOOTE-3
func TestMeshes(t *testing.T) {
	files, err := filepath.Glob("testdata/meshes/*")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d bootstraps of meshes, want 6 (%v)", len(files), err)
	}
	var b strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		boot, err := bootstrap.Parse(name, data)
		if err != nil {
			t.Error(err)
		}
		text := strings.TrimSuffix(outcome(boot, err), "\n")
		if err == nil {
			for _, s := range boot.Servers {
				text += fmt.Sprintf("\nnames=%q headers=%d", names(s), len(s.Headers))
			}
		}
		fmt.Fprintf(&b, "%s\n\t%s\n", name, strings.ReplaceAll(text, "\n", "\n\t"))
	}
	const golden = "testdata/meshes.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s, -want +got (go test -update rewrites it):\n%s", golden, diff)
	}
}

// names are those that a server's certificate may be for.
func names(s bootstrap.ManagementServer) []string {
	if s.ChannelCreds.TLS == nil {
		return nil
	}
	return append([]string{s.ChannelCreds.TLS.ServerName}, s.ChannelCreds.TLS.SubjectAltNames...)
}

// A message alone stands for a list of one wherever an Envoy bootstrap has a list of messages.
//
// spec: BOOTE-1
func TestMessagesAlone(t *testing.T) {
	var root any
	if err := json.Unmarshal([]byte(everythingDoc), &root); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(alone(root))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(everythingDoc, "[{") - strings.Count(string(text), "[{"); n < 8 {
		t.Errorf("%d lists of one, want 8", n)
	}
	want, got := parse(t, everythingDoc), parse(t, string(text))
	if diff := cmp.Diff(want, got, sameConfig); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// alone has the only element of a list of one message in place of the list.
func alone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, in := range v {
			v[key] = alone(in)
		}
	case []any:
		for i, in := range v {
			v[i] = alone(in)
		}
		if m, ok := v[0].(map[string]any); ok && len(v) == 1 {
			return m
		}
	}
	return v
}

// Names of enums may be written in any case.
//
// spec: BOOTE-1
func TestEnumsInAnyCase(t *testing.T) {
	want := parse(t, everythingDoc)
	for _, name := range []string{"GRPC", "REST", "STATIC", "AGGREGATED_GRPC", "AGGREGATED_DELTA_GRPC", "DNS", "V3"} {
		text := strings.ReplaceAll(everythingDoc, `"`+name+`"`, `"`+strings.ToLower(name)+`"`)
		if text == everythingDoc {
			t.Errorf("the bootstrap has no %s", name)
		}
		if diff := cmp.Diff(want, parse(t, text), sameConfig); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
