package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/testutil"
)

// asProgram makes the test's binary the program itself.
const asProgram = "XDSWATCH_README_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start runs the program with a bootstrap and gives its output, line by line.
func start(t *testing.T, bootstrap string) *bufio.Scanner {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(path, []byte(bootstrap), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := exec.CommandContext(t.Context(), self, path)
	program.Env = append(os.Environ(), asProgram+"=1")
	program.Stderr = os.Stderr
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	timeout := time.AfterFunc(time.Minute, func() { program.Process.Kill() })
	t.Cleanup(func() {
		timeout.Stop()
		program.Process.Kill()
		program.Wait()
	})
	return bufio.NewScanner(out)
}

func TestProgramPrintsTheCluster(t *testing.T) {
	server, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	lines := start(t, fmt.Sprintf(`{"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}]}]}`, server.Addr()))
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
