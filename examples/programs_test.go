// Package examples_test runs the examples as the programs that they are, and has the code that the recipes
// of docs/guide quote (guide_*_test.go).
package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/race"
)

// programs are built; those with tests in their own directories are not.
var programs = []string{"collection", "customtype", "failstatic", "federation", "grpcresolver", "mixed", "ondemand", "quickstart", "readme"}

// binaries is where the programs are, once a test has wanted one.
var binaries string

func TestMain(m *testing.M) {
	status := m.Run()
	if binaries != "" {
		os.RemoveAll(binaries)
	}
	os.Exit(status)
}

var built = sync.OnceValues(func() (said []byte, err error) {
	if binaries, err = os.MkdirTemp("", "examples"); err != nil {
		return nil, err
	}
	args := []string{"build", "-ldflags=-w", "-o", binaries + string(filepath.Separator)} // nobody debugs them
	if race.Enabled {
		args = append(args, "-race")
	}
	for _, name := range programs {
		args = append(args, "./"+name)
	}
	return exec.Command("go", args...).CombinedOutput()
})

// program builds all programs once, in one command, and gives one of them. The process is killed if the
// test ends or a minute goes by.
func program(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	if testing.Short() {
		t.Skip("long: builds and links each example")
	}
	t.Parallel()
	if said, err := built(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, filepath.Join(binaries, name), args...)
}

// output runs a program to its end, which has to be a good one.
func output(t *testing.T, name string) string {
	t.Helper()
	cmd := program(t, name)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), said.String())
	}
	return out.String()
}

func prints(t *testing.T, name, want string) {
	t.Helper()
	if got := output(t, name); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}

// Each example has a test, here or in its own directory.
func TestAll(t *testing.T) {
	mains, err := filepath.Glob("*/main.go")
	if err != nil || len(mains) < len(programs) {
		t.Fatal(mains, err)
	}
	for _, main := range mains {
		dir := filepath.Dir(main)
		tests, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil || slices.Contains(programs, dir) == (len(tests) > 0) {
			t.Errorf("%s: in the list of programs %v, %d files of tests, %v", dir, slices.Contains(programs, dir), len(tests), err)
		}
	}
	if !testing.Short() {
		watchSources(t)
	}
}

// watchSources opens the directories of all that the programs are made of: the go command repeats a result
// of this package only while they are as they were.
func watchSources(t *testing.T) {
	t.Helper()
	dirs, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dir := range strings.FieldsSeq(string(dirs)) {
		if _, err := os.ReadDir(dir); err != nil {
			t.Error(err)
		}
	}
}

func TestCollection(t *testing.T) {
	prints(t, "collection", `a is at 8080, b is at 8080, synced
b is at 9090, c is at 8080
a is gone, c is gone
b is gone
`)
}

func TestCustomType(t *testing.T) {
	prints(t, "customtype", `checkout updated: map[new-basket:true]
checkout updated: map[new-basket:false]
checkout ambient error: not a valid xdswatch.examples.v1.FeatureFlags: a flag has no name
checkout updated: map[dark-mode:true]
`)
}

// spec: LKG-5 LKG-9
func TestFailStatic(t *testing.T) {
	prints(t, "failstatic", `the server says: backend has 2 localities (version 1)
known from the last run: backend has 2 localities (version 1)
the server is down; requests go to what is known
the server says: backend has 3 localities (version 2)
`)
}

func TestFederation(t *testing.T) {
	prints(t, "federation", `east has a cluster: east hears updated to "1"
west has a cluster: west hears updated to "1"
west dies: west hears ambient error (connection)
east changes: east hears updated to "2"
west is back: west hears recovered
`)
}

func TestGRPCResolver(t *testing.T) {
	// One, two, one, and one more without the management server.
	if got := output(t, "grpcresolver"); strings.Count(got, "RPCs went to") != 5 {
		t.Errorf("%d lines of RPCs, want 5:\n%s", strings.Count(got, "RPCs went to"), got)
	}
}

func TestMixed(t *testing.T) {
	prints(t, "mixed", `clusters: backend connects within 1s, from rest:catalogue
listeners: ingress is at 0.0.0.0:443, from dns:///ADDRESS
its secret: certificate is 1.pem, from file://DIR/secrets.yaml
its endpoints: pods is at 10.0.0.1:8080, from dns:///ADDRESS
the listener moves: ingress is at 0.0.0.0:8443, from dns:///ADDRESS
the secret is renewed: certificate is 2.pem, from file://DIR/secrets.yaml
the cluster is slower: backend connects within 2s, from rest:catalogue
the endpoint moves: pods is at 10.0.0.2:8080, from dns:///ADDRESS
a stream of rest:catalogue, for envoy.config.cluster.v3.Cluster
a stream of dns:///ADDRESS, for all types
a stream of file://DIR/secrets.yaml, for all types
a stream of dns:///ADDRESS, for envoy.config.endpoint.v3.ClusterLoadAssignment
`)
}

func TestOnDemand(t *testing.T) {
	prints(t, "ondemand", `get: a has 0 localities
events: a updated with 0 localities
events: a updated with 2 localities
set: a
set: b
`)
}

// Quickstart ends well only if each of its chapters was seen.
func TestQuickstart(t *testing.T) {
	out := output(t, "quickstart")
	if n := strings.Count(out, "✓ "); n < 8 || strings.Contains(out, "✗ ") || strings.Contains(out, "- ") {
		t.Errorf("%d chapters were seen:\n%s", n, out)
	}
}

// A story that is interrupted was not seen, and does not end well.
func TestInterruptedQuickstart(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it is stopped by a signal, which Windows has not")
	}
	cmd := program(t, "quickstart")
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if out.Len() == 0 { // it has begun
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
		}
		out.WriteString(lines.Text() + "\n")
	}
	if err := cmd.Wait(); err == nil || out.Len() == 0 || !strings.Contains(out.String(), "✗ ") {
		t.Errorf("%v after\n%s", err, out.String())
	}
}
