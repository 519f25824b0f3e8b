package bootstrap_test

import (
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
