package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/testutil"
)

// A replayed server may have a certificate, and want one of its clients.
func TestReplayTLS(t *testing.T) {
	t.Parallel()
	ca, err := testutil.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.Issue(testutil.CertOptions{DNS: []string{"xds.example"}})
	if err != nil {
		t.Fatal(err)
	}
	files, err := cert.WriteFiles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := file(t, "a.yaml", `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a, connectTimeout: 1s}`)
	own := []string{"--cert", files.Cert, "--key", files.Key}
	_, open := startReplay(t, append(own, path)...)
	_, closed := startReplay(t, append(own, "--ca-cert", files.CA, path)...)
	trusting := []string{"--ca-cert", files.CA, "--server-name", "xds.example"}
	for _, c := range []struct {
		address string
		flags   []string
		status  int
	}{
		{open, trusting, 0},
		{open, nil, 1},
		{closed, trusting, 1},
		{closed, append(trusting, own...), 0},
	} {
		status, out, errs := runOnce(t, append([]string{"get", "-o", "name", "--server", c.address, "cds:a"}, c.flags...)...)
		if status != c.status || status == 0 && out != "cds:a\n" {
			t.Errorf("%s: status %d, %q, %s", c.flags, status, out, errs)
		}
	}
	for want, args := range map[string][]string{
		"--ca-cert belongs to --cert and --key":   {"--ca-cert", files.CA},
		"--cert and --key belong together":        {"--cert", files.Cert},
		"--key: stat " + filepath.Join("no", "p"): {"--cert", files.Cert, "--key", filepath.Join("no", "p")},
	} {
		if status, _, errs := runOnce(t, append([]string{"replay", path}, args...)...); status != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %s", args, status, errs)
		}
	}
}
