package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/testutil"
)

// binaries is where the real program is, once a test has wanted it.
var binaries string

func TestMain(m *testing.M) {
	flag.Parse()
	beside := "32" // these tests wait and hardly compute
	if race.Enabled {
		beside = "8"
	}
	if err := flag.Set("test.parallel", beside); err != nil {
		panic(err)
	}
	if testing.Short() {
		silence = "2s" // the tests that wait for it are the last to end
	}
	status := m.Run()
	if binaries != "" {
		os.RemoveAll(binaries)
	}
	os.Exit(status)
}

var built = sync.OnceValues(func() (path string, err error) {
	if binaries, err = os.MkdirTemp("", "xdsctl"); err != nil {
		return "", err
	}
	path = filepath.Join(binaries, "xdsctl")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// build makes the real program, once for all tests.
func build(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("long: builds the program")
	}
	if runtime.GOOS == "windows" {
		t.Skip("it is stopped by signals, which Windows has not")
	}
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// process is the real program at work.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	pipe   io.Closer
	stderr *buffer
}

func launch(t *testing.T, path string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.CommandContext(patient(t), path, args...), stderr: &buffer{}}
	p.cmd.Env = append(os.Environ(), "GRPC_GO_LOG_SEVERITY_LEVEL=info")
	p.cmd.Stderr = p.stderr
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.pipe, p.stdout = out, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *process) line() string {
	p.t.Helper()
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%v; standard error:\n%s", err, p.stderr)
	}
	return line
}

func (p *process) ends(want int) {
	p.t.Helper()
	_ = p.cmd.Wait() // the status is looked at
	if got := p.cmd.ProcessState.ExitCode(); got != want || p.stderr.String() != "" {
		p.t.Errorf("%v, want %d; standard error:\n%s", p.cmd.ProcessState, want, p.stderr)
	}
}

func TestBinary(t *testing.T) {
	path := build(t)
	srv := server(t)
	flags := []string{"watch", "--server", srv.Target(), "--output", "json", "--stdin"}
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		p := launch(t, path, flags...)
		fmt.Fprintln(p.stdin, "watch cds:a")
		st := accept(t, srv)
		if line := p.line(); !strings.Contains(line, `"stream-up"`) {
			t.Errorf("printed %s", line)
		}
		send(t, st, testutil.SotW(clusters, "1", "n1", cluster("a")))
		if line := p.line(); !strings.Contains(line, `"resource":{"name":"a"}`) {
			t.Errorf("printed %s", line)
		}
		if err := p.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		p.ends(0)
	}
	p := launch(t, path, flags...)
	fmt.Fprintln(p.stdin, "quit")
	p.ends(0)

	// A reader that goes away.
	p = launch(t, path, flags...)
	p.pipe.Close()
	fmt.Fprintln(p.stdin, "dump")
	p.ends(1)

	p = launch(t, path, "watch", "--server", srv.Target(), "--once", "--resource-timeout", "50ms", "--variant", "delta", "cds:a")
	p.ends(3)
}

// The real program follows authorities, globs, lists and redirects.
func TestBinaryCollections(t *testing.T) {
	path := build(t)
	w := newWorld(t, delta)
	glob, list, x, y := at("east", "p/*"), listAt("west", "l"), at("east", "p/x"), at("west", "y")
	w.set(w.east, x, "1")
	w.list(w.west, list, located(y))
	w.redirect(w.west, y, x)
	flags := []string{"watch", "--bootstrap", w.bootstrap, "--output", "json", "--once"}
	p := launch(t, path, append(flags, glob, list)...)
	out, err := io.ReadAll(p.stdout)
	if err != nil {
		t.Fatal(err)
	}
	text := w.hide.Replace(plain(string(out)))
	for _, want := range []string{
		w.updated(x, "1", "EAST"), from(w.updated(y, "1", "EAST"), y, x), complete(glob), complete(list), up("EAST"), up("WEST"),
	} {
		if strings.Count(text, want[1:]) != 1 {
			t.Errorf("%s\nis not once in\n%s", want, text)
		}
	}
	p.ends(0)
	p = launch(t, path, append(flags, glob, at("north", "x"))...)
	if _, err := io.Copy(io.Discard, p.stdout); err != nil {
		t.Fatal(err)
	}
	p.ends(3)
}

// The real program gets, resolves and draws what a real server has.
func TestBinaryShop(t *testing.T) {
	path, m := build(t), managed(t, shop()...)
	all := func(status int, args ...string) string {
		p := launch(t, path, append(args, "--server", m.Addr())...)
		out, err := io.ReadAll(p.stdout)
		if err != nil {
			t.Fatal(err)
		}
		p.ends(status)
		return string(out)
	}
	if out := all(0, "get", "-o", "name", "cds"); out != "cds:backend\ncds:frontend\n" {
		t.Errorf("%s", out)
	}
	if out := all(0, "graph", "cds:backend"); out != "cds backend\n└── eds backend\n" {
		t.Errorf("%s", out)
	}
	p := launch(t, path, "resolve", "--server", m.Addr(), "-o", "json", "lds:ingress")
	for !strings.Contains(p.line(), `"event":"config"`) {
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.ends(0)
}
