package examples_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/testutil"
)

// The README's program prints each version of the cluster.
func TestReadme(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bootstrap.json")
	cmd := program(t, "readme", path)
	server, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	bootstrap := fmt.Appendf(nil, `{"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}]}]}`, server.Addr())
	if err := os.WriteFile(path, bootstrap, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	for _, seconds := range []int64{1, 2} {
		cluster := &clusterv3.Cluster{Name: "backend", ConnectTimeout: &durationpb.Duration{Seconds: seconds}}
		if err := server.Set(fmt.Sprint(seconds), cluster); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() {
			t.Fatalf("no line of version %d: %v", seconds, lines.Err())
		}
		if want := fmt.Sprintf("use backend with timeout %ds", seconds); lines.Text() != want {
			t.Errorf("printed %q, want %q", lines.Text(), want)
		}
	}
}
