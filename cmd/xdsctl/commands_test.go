package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/testutil"
)

func TestCommands(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "--stdin")
	p.enter("watch cds:a")
	st := accept(t, srv)
	p.expect(streamUp)
	send(t, st, testutil.SotW(clusters, "1", "n1", cluster("a")))
	p.expect(update("a", "1", `{"name":"a"}`), ack("1", "n1"))
	p.enter("  watch   cds:b \r")
	ask(t, st, "a b")
	p.enter("")
	p.enter("unwatch " + clusters + ":a")
	ask(t, st, "b")
	// What is let go gives no more events.
	send(t, st, testutil.SotW(clusters, "2", "n2", cluster("b")))
	p.expect(update("b", "2", `{"name":"b"}`), ack("2", "n2"))

	p.enter("quit")
	p.ends(0)
	if p.stderr.String() != "" {
		t.Errorf("standard error:\n%s", p.stderr)
	}
}

func TestBadCommands(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "--stdin", "cds:a", "cds:a")
	p.expect(streamUp)
	p.complains(`cds "a" is given twice`)
	for line, want := range map[string]string{
		"jump":            `unknown command "jump"; want watch SUBSCRIPTION`,
		"watch":           `subscription "": it has no type`,
		"watch nonsense":  `"nonsense" is neither a short type name`,
		"watch cds:a":     `"cds:a" is subscribed to already`,
		"unwatch cds:b":   `"cds:b" is not subscribed to`,
		"unwatch foo:bar": `"foo" is neither`,
		"dump cds:a":      `unknown command "dump cds:a"`,
		"quit now":        `unknown command "quit now"`,
	} {
		p.enter(line)
		p.complains(want)
	}
	before := len(p.stderr.String())
	for _, word := range []string{"jump ", "watch ", "unwatch cds:"} {
		p.enter(word + strings.Repeat("x", 1<<20))
	}
	p.complains(`cds:xxx`)
	if n := len(p.stderr.String()) - before; n > 2000 {
		t.Errorf("%d bytes are said of long lines", n)
	}
	p.enter("watch xdstp://bad.example/envoy.config.cluster.v3.Cluster/a")
	p.skipTo(`"kind":"config"`)
	p.stdin.Close() // which is not quit
	st := accept(t, srv)
	send(t, st, testutil.SotW(clusters, "1", "n1", cluster("a")))
	p.expect(update("a", "1", `{"name":"a"}`))
	p.stop()
	p.ends(0)
}

func TestDump(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "--stdin")
	p.enter("dump")
	p.expect(`{"event":"dump","subscriptions":[]}`)
	p.enter("watch cds")
	st := accept(t, srv)
	p.enter("watch cds:b")
	p.enter("watch xdstp://x.example/envoy.config.cluster.v3.Cluster/a")
	p.skipTo(`"kind":"config"`)
	send(t, st, testutil.SotW(clusters, "1", "n1", cluster("a")))
	// The name was maybe not asked for yet when the response came: then its absence is told a moment later.
	for synced, absent := false, false; !synced || !absent; {
		line := p.next()
		synced = synced || strings.Contains(line, `"event":"synced"`)
		absent = absent || strings.Contains(line, `"event":"does-not-exist"`)
	}
	p.enter("dump")
	got := updated.ReplaceAllString(p.skipTo(`"event":"dump"`), `"updated":"TIME"`)
	entry := func(name, state, version, updated string) string {
		return fmt.Sprintf(`{"type":%q,"name":%q,"authority":null,"status":%q,"version":%q,"server":"SERVER","updated":%s,"error":null}`, clusters, name, state, version, updated)
	}
	want := `{"event":"dump","subscriptions":[` + strings.Join([]string{
		entry("*", "ACKED", "", "null"), entry("a", "ACKED", "1", `"TIME"`), entry("b", "DOES_NOT_EXIST", "", "null"),
		`{"type":"` + clusters + `","name":"xdstp://x.example/envoy.config.cluster.v3.Cluster/a","authority":"x.example","status":"UNKNOWN","version":"","server":"","updated":null,` +
			`"error":{"kind":"config","message":"`,
	}, ",")
	if !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s…", got, want)
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p := watchServer(t, srv.Target(), "cds:a")
	p.expect(streamUp)
	p.stop()
	p.ends(0)
	if log := p.stderr.String(); log != "" {
		t.Errorf("standard error:\n%s", log)
	}
}

// brokenWriter is a standard output that fails.
type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestBrokenOutput(t *testing.T) {
	t.Parallel()
	srv := server(t)
	for err, want := range map[error]string{
		io.ErrClosedPipe:           "",
		errors.New("disk is full"): "xdsctl: standard output: disk is full\n",
	} {
		var stderr buffer
		args := []string{"watch", "--server", srv.Target(), "--output", "json", "cds:a"}
		if got := run(patient(t), args, strings.NewReader(""), brokenWriter{err}, &stderr); got != 1 {
			t.Errorf("%v: status %d, want 1", err, got)
		}
		if got := stderr.String(); got != want {
			t.Errorf("standard error %q, want %q", got, want)
		}
	}
}

// A completion script that cannot be written is a failure, and no bad usage.
func TestBrokenCompletion(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		syscall.EPIPE: "",
		&fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}: "xdsctl: write /dev/stdout: no space left on device\n",
	} {
		var stderr buffer
		if got := run(patient(t), []string{"completion", "bash"}, strings.NewReader(""), brokenWriter{err}, &stderr); got != 1 {
			t.Errorf("%v: status %d, want 1", err, got)
		}
		if got := stderr.String(); got != want {
			t.Errorf("standard error %q, want %q", got, want)
		}
	}
}

// runOnce runs the command to its end.
func runOnce(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out bytes.Buffer
	errs := &buffer{}
	status = run(ctx, args, strings.NewReader(""), &out, errs)
	return status, out.String(), errs.String()
}

// words are those of a command. A space of the directory for temporary files ends none.
func words(command string) []string {
	const space = "\x00"
	dir := os.TempDir()
	all := strings.Fields(strings.ReplaceAll(command, dir, strings.ReplaceAll(dir, " ", space)))
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], space, " ")
	}
	return all
}

// What no server can be reached for has failed. With watch and resolve it is an error like others that they print, so with
// --once it is the answer; without it they go on, and so does what runs until it is told to end.
func TestStatusWithoutServer(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), file(t, "state.json", `{"@type": "`+clusters+`", "name": "a"}`)
	for args, want := range map[string]int{
		"get --server ADDR cds:a":                                 1,
		"get --server ADDR cds":                                   1,
		"graph --server ADDR cds:a":                               1,
		"graph --server ADDR all":                                 1,
		"diff server:ADDR FILE":                                   1,
		"diff csds:ADDR FILE":                                     1,
		"validate csds:ADDR":                                      1,
		"status ADDR":                                             1,
		"status --check ADDR":                                     1,
		"status http://ADDR":                                      1,
		"csds ADDR":                                               1,
		"dump ADDR":                                               1,
		"watch --once --server ADDR cds:a":                        3,
		"resolve --once --server ADDR cds:a":                      3,
		"resolve --once --server ADDR all":                        3,
		"watch --for 100ms --server ADDR cds:a":                   0,
		"resolve --for 100ms --server ADDR cds:a":                 0,
		"record --for 100ms --server ADDR --to DIR/rec.jsonl cds": 0,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			args := strings.NewReplacer("ADDR", "127.0.0.1:1", "FILE", state, "DIR", dir).Replace(args)
			if status, out, errs := runOnce(t, words(args)...); status != want {
				t.Errorf("status %d, want %d: %s\n%s", status, want, errs, out)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	t.Setenv(bootstrap.EnvPath, "")
	t.Setenv(bootstrap.EnvConfig, "")
	for _, tt := range []struct{ args, want string }{
		{"--bogus", "unknown flag: --bogus"},
		{"--server x:1", "nothing to watch: --server asks for nothing by itself; give a SUBSCRIPTION"},
		{"--server x:1 nonsense", `subscription "nonsense"`},
		{"--server x:1 --output xml cds", `invalid argument "xml" for "-o, --output" flag: want text or json`},
		{"--server x:1 --variant both cds", "want sotw or delta"},
		{"--server x:1 --streams many cds", "want ads or per-type"},
		{"--server x:1 --log-level loud cds", "want debug, info, warn or error"},
		{"--server x:1 --for soon cds", `invalid argument "soon" for "--for" flag`},
		{"--server x:1 --for -1s cds", "--for -1s is negative"},
		{"--server x:1 --keepalive -1s --resource-timeout -2s cds", "--resource-timeout -2s is negative\n  also: --keepalive -1s is negative"},
		{"--server x:1 --keepalive-timeout 0s cds", "--keepalive-timeout is 0"},
		{"--server x:1 --keepalive-timeout -1s cds", "--keepalive-timeout -1s is negative"},
		{"--server x:1 --bootstrap y cds", "--server and --bootstrap are both given"},
		{"--bootstrap y --node-id z cds", "--node-id belongs to --server"},
		{"--server= cds", "--server is empty"},
		{"--bootstrap= cds", "--bootstrap is empty"},
		{"--server x:1 --node-id a\xff cds", `--node-id "a\xff" is not UTF-8`},
		{"cds", "no bootstrap: neither GRPC_XDS_BOOTSTRAP nor GRPC_XDS_BOOTSTRAP_CONFIG is set; give --bootstrap FILE or --server HOST:PORT"},
		{"--bootstrap /does/not/exist cds", "open /does/not/exist: no such file or directory"},
	} {
		status, stdout, stderr := runOnce(t, append([]string{"watch"}, strings.Fields(tt.args)...)...)
		if status != 2 || stdout != "" || !strings.HasPrefix(stderr, "xdsctl: ") || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: status %d, standard output %q, standard error %q, want %q", tt.args, status, stdout, stderr, tt.want)
		}
	}
	if status, _, stderr := runOnce(t, "bogus"); status != 2 || !strings.Contains(stderr, `unknown command "bogus"`) {
		t.Errorf("status %d, %s", status, stderr)
	}
}

func TestBadBootstraps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"empty object", `{}`, "FILE: xds_servers: required"},
		{"no JSON", `{"xds_servers": [`, "FILE: line 1"},
		{"no URI", `{"xds_servers": [{"channel_creds": [{"type": "insecure"}]}]}`, "FILE: xds_servers[0].server_uri: required"},
		{"two faults", `{"xds_servers": [{"channel_creds": []}]}`, "FILE: xds_servers[0].server_uri: required"},
		{"google_default", `{"xds_servers": [{"server_uri": "x", "channel_creds": [{"type": "google_default"}]}]}`,
			"xdsctl is built without google_default"},
		{"creds that cannot work", `{"xds_servers": [{"server_uri": "x", "channel_creds": [{"type": "insecure"}],
			"call_creds": [{"type": "jwt_token_file", "config": {"jwt_token_file": "/t"}}]}]}`, `FILE: management server "x": call_creds "jwt_token_file"`},
		{"Envoy without a node", `{"dynamic_resources": {}}`, "FILE: node.id: required"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := file(t, "bootstrap.json", tt.text)
			status, stdout, stderr := runOnce(t, "watch", "--bootstrap", path, "cds")
			first, _, _ := strings.Cut(stderr, "\n")
			if tt.name == "google_default" {
				first = stderr
			}
			if status != 2 || stdout != "" || !strings.Contains(first, strings.Replace(tt.want, "FILE", path, 1)) {
				t.Errorf("status %d, standard output %q, standard error\n%s", status, stdout, stderr)
			}
		})
	}
}

func TestBootstrapOfEnvironment(t *testing.T) {
	srv := server(t)
	t.Setenv(bootstrap.EnvPath, grpcBootstrap(t, srv.Target(), ""))
	p := start(t, srv.Target(), "--output", "json", "cds:a")
	if _, r := acceptFirst(t, srv); r.Node().GetId() != "me" {
		t.Errorf("node %v", r.Node())
	}
	p.expect(streamUp)
	t.Setenv(bootstrap.EnvPath, "")
	t.Setenv(bootstrap.EnvConfig, "{}")
	status, _, stderr := runOnce(t, "watch", "cds")
	if status != 2 || !strings.HasPrefix(stderr, "xdsctl: GRPC_XDS_BOOTSTRAP_CONFIG: xds_servers: required") {
		t.Errorf("status %d, standard error %q", status, stderr)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--help":       "xdsctl watch --server localhost:18000 cds",
		"":             "Available Commands:",
		"watch --help": "prefer it: all servers know it\n  cds:*                 every resource of the type",
		"version":      "xdsctl 0.",
		"--version":    "xdsctl 0.",
	} {
		status, stdout, stderr := runOnce(t, strings.Fields(args)...)
		if status != 0 || !strings.Contains(stdout, want) || stderr != "" {
			t.Errorf("%s: status %d, %q, %q", args, status, stdout, stderr)
		}
	}
	for args, want := range map[string]string{
		"help nonsense":       `unknown command "nonsense"`,
		"help watch nonsense": `unknown command "nonsense" for "xdsctl watch"`,
		"completion nonsense": `unknown command "nonsense" for "xdsctl completion"`,
	} {
		if status, stdout, stderr := runOnce(t, strings.Fields(args)...); status != 2 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %q, %q", args, status, stdout, stderr)
		}
	}
}

// fullDisk is an output that takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "out", Err: errors.New("no space left on device")}
}

// Help that cannot be written is a failure, as any other output.
func TestHelpIsNotWritten(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "--help", "help", "help watch", "watch --help", "completion", "completion bash --help", "version", "--version"} {
		errs := &buffer{}
		status := run(t.Context(), strings.Fields(args), strings.NewReader(""), fullDisk{}, errs)
		if status != 1 || errs.String() != "xdsctl: write out: no space left on device\n" {
			t.Errorf("%q: status %d, %q", args, status, errs)
		}
	}
}
