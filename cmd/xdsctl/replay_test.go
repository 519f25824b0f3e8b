package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/recording"
	"github.com/xdswatch/xdswatch/testutil"
)

// startRecord runs `xdsctl record` until responses of the types have come and are acknowledged.
func startRecord(t *testing.T, file string, args ...string) (frames func() []recording.Frame, stop func()) {
	t.Helper()
	p := startCommand(t, strings.NewReplacer(), append([]string{"record", "--to", file}, args...)...)
	frames = func() (all []recording.Frame) {
		data, _ := os.ReadFile(file)
		for line := range strings.Lines(string(data)) {
			var f recording.Frame
			if json.Unmarshal([]byte(line), &f) == nil {
				all = append(all, f)
			}
		}
		return all
	}
	return frames, func() {
		p.stop()
		if status := <-p.status; status != 0 || strings.Count(p.stderr.String(), "\n") != 1 {
			t.Errorf("record: status %d, %s", status, p.stderr)
		}
	}
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

// responses counts those of a type.
func responses(frames []recording.Frame, typeURL string) (n int) {
	for _, f := range frames {
		if f.Direction == recording.Response && f.Type == typeURL {
			n++
		}
	}
	return n
}

// startReplay runs `xdsctl replay` and gives its address.
func startReplay(t *testing.T, args ...string) (p *program, address string) {
	t.Helper()
	p = startCommand(t, strings.NewReplacer(), append([]string{"replay"}, args...)...)
	var first struct{ Event, Address string }
	line := p.line()
	if err := json.Unmarshal([]byte(line), &first); err != nil || first.Event != "listening" || first.Address == "" {
		t.Fatalf("first line %q: %v", line, err)
	}
	return p, first.Address
}

// state gives the number of resources by type URL of the next line of output.
func (p *program) state() map[string]int {
	p.t.Helper()
	var line struct {
		Event string
		Types []struct {
			Type      string
			Resources int
		}
	}
	text := p.line()
	if err := json.Unmarshal([]byte(text), &line); err != nil || line.Event != "state" {
		p.t.Fatalf("%q: %v", text, err)
	}
	counts := map[string]int{}
	for _, it := range line.Types {
		counts[it.Type] = it.Resources
	}
	return counts
}

// What a real server said is served again, in both variants, with the same versions, aggregated and
// with a stream for each type.
func TestRecordReplay(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("records and replays in four ways")
	}
	m := managed(t, append(shop(), secretOf("MARK3R"))...)
	subs := []string{"lds", "cds", "rds:shop", "eds:backend", "eds:frontend"}
	for _, args := range [][]string{{"--variant", "sotw"}, {"--variant", "delta"}, {"--variant", "sotw", "--streams", "per-type"}, {"--variant", "delta", "--streams", "per-type"}} {
		file := filepath.Join(t.TempDir(), "r.jsonl")
		get := func(address string) string {
			status, out, errs := runOnce(t, append(append([]string{"get", "--server", address, "-o", "json"}, args...), subs...)...)
			if status != 0 {
				t.Fatalf("%v: %s: status %d, %s", args, address, status, errs)
			}
			return updated.ReplaceAllString(strings.ReplaceAll(strings.ReplaceAll(out, address, "SERVER"), " ", ""), "")
		}
		want := get(m.Addr())
		frames, stop := startRecord(t, file, append(append([]string{"--server", m.Addr(), "--node-id", "me", "sds:s"}, args...), subs...)...)
		until(t, "everything", func() bool {
			byType := map[string]int{}
			for _, f := range frames() {
				if f.Direction == recording.Response {
					byType[f.Type]++
				}
			}
			return len(byType) == 5 && strings.Count(contents(t, file), `"clusterName"`) >= 2
		})
		stop()
		checkFrames(t, frames(), args[1])
		if text := contents(t, file); strings.Contains(text, "MARK3R") || strings.Contains(text, "TUFSSzNS") {
			t.Error("the recording has a secret")
		}
		p, address := startReplay(t, "--speed", "0", file)
		if got := get(address); got != want {
			t.Errorf("%v: replayed\n%s\nwant\n%s", args, got, want)
		}
		if status, out, errs := runOnce(t, "diff", file, "server:"+address); status != 3 || out != "- sds s\n" { // which nothing names
			t.Errorf("%v: diff: status %d, %s%s", args, status, out, errs)
		}
		p.stop()
		if status := <-p.status; status != 0 {
			t.Errorf("replay: status %d, %s", status, p.stderr)
		}
	}
}

func contents(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func checkFrames(t *testing.T, frames []recording.Frame, variant string) {
	t.Helper()
	for i, f := range frames {
		if f.Time.IsZero() || f.Server == "" || f.Node != "me" || f.Stream == 0 || string(f.Variant) != variant || f.Type == "" || len(f.Message) < 3 {
			t.Errorf("frame %d: %+v", i, f)
		}
	}
	if f := frames[0]; f.Direction != recording.Request || !strings.Contains(string(f.Message), `"node":{"id":"me"`) {
		t.Errorf("begins with %s %s", f.Direction, f.Message)
	}
}

// What changed while it was recorded changes again, from when a client comes.
func TestReplayChanges(t *testing.T) {
	t.Parallel()
	m := managed(t, cluster("a"))
	file := filepath.Join(t.TempDir(), "r.jsonl")
	frames, stop := startRecord(t, file, "--server", m.Addr(), "cds")
	until(t, "a response", func() bool { return responses(frames(), clusters) == 1 })
	if err := m.Set("2", cluster("a"), cluster("b")); err != nil {
		t.Fatal(err)
	}
	until(t, "a response", func() bool { return responses(frames(), clusters) == 2 })
	stop()
	p, address := startReplay(t, "--speed", "0.1", file)
	if s := p.state(); s[clusters] != 1 {
		t.Errorf("begins with %v", s)
	}
	w := watchServer(t, address, "cds")
	if s := p.state(); s[clusters] != 2 {
		t.Errorf("goes on with %v", s)
	}
	for line := ""; !strings.Contains(line, `"name":"b"`); {
		line = w.line()
	}
}

// Files are served, and what they become.
func TestReplayDirectory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("files are looked at every 100 ms")
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		temporary := filepath.Join(dir, "."+name)
		if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temporary, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	text := func(rs ...proto.Message) string { return contents(t, resourceFile(t, "x.yaml", rs...)) }
	write("a.yaml", text(cluster("a")))
	p, address := startReplay(t, dir)
	for _, variant := range []string{"sotw", "delta"} { // the version that the file gives
		_, out, _ := runOnce(t, "get", "--server", address, "--variant", variant, "-o", "json", "cds")
		if !strings.Contains(out, `"version": "7"`) {
			t.Errorf("%s: %s", variant, out)
		}
	}
	if s := p.state(); s[clusters] != 1 {
		t.Errorf("begins with %v", s)
	}
	w := watchServer(t, address, "--variant", "delta", "cds")
	wait := func(want string) {
		t.Helper()
		for line := ""; !strings.Contains(line, want); {
			line = w.line()
		}
	}
	wait(`"name":"a"`)
	write("b.yaml", text(cluster("b")))
	p.state()
	wait(`"name":"b"`)
	write("b.yaml", "}")
	until(t, "a note", func() bool { return strings.Contains(p.stderr.String(), "what is served stays") })
	write("b.yaml", text(&clusterv3.Cluster{Name: "b", ConnectTimeout: durationpb.New(time.Minute)}))
	p.state()
	wait(`"connectTimeout":"60s"`)
	if err := os.Remove(filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	if s := p.state(); !maps.Equal(s, map[string]int{clusters: 1}) {
		t.Errorf("ends with %v", s)
	}
	wait(`"event":"does-not-exist"`)
	if status, out, errs := runOnce(t, "get", "--server", address, "-o", "name", "cds", "lds"); status != 0 || out != "cds:b\n" {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
}

// A directory may be a link, which comes to lead to another one.
func TestReplayLink(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("files are looked at every 100 ms")
	}
	current := filepath.Join(t.TempDir(), "current")
	lead := func(r proto.Message) {
		t.Helper()
		err := os.Symlink(filepath.Dir(resourceFile(t, "x.yaml", r)), current+".next")
		if err := errors.Join(err, os.Rename(current+".next", current)); err != nil {
			t.Fatal(err)
		}
	}
	lead(cluster("a"))
	p, address := startReplay(t, current)
	for _, want := range []string{"a", "b"} {
		if s := p.state(); s[clusters] != 1 {
			t.Errorf("of %s: %v", want, s)
		}
		if _, out, errs := runOnce(t, "get", "--server", address, "-o", "name", "cds"); out != "cds:"+want+"\n" {
			t.Errorf("%s%s", out, errs)
		}
		if want == "a" {
			lead(cluster("b"))
		}
	}
}

// A signal ends a replay well, however early it comes.
func TestReplayInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("terminated signal received"))
	var out, errs bytes.Buffer
	if status := run(ctx, []string{"replay", t.TempDir()}, nil, &out, &errs); status != 0 || errs.Len() > 0 {
		t.Errorf("status %d, %s", status, errs.String())
	}
}

// What cannot be done is told with its status.
func TestRecordReplayFail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		args   []string
	}{
		{2, []string{"record", "--server", "127.0.0.1:1", "cds"}},
		{2, []string{"record", "--server", "127.0.0.1:1", "--to", "x"}},
		{1, []string{"record", "--server", "127.0.0.1:1", "--to", filepath.Join(t.TempDir(), "no", "x"), "cds"}},
		{0, []string{"record", "--server", "127.0.0.1:1", "--for", "1ms", "-o", "json", "--to", filepath.Join(t.TempDir(), "x"), "cds"}},
		{2, []string{"replay"}},
		{2, []string{"replay", "-o", "text", t.TempDir()}},
		{1, []string{"replay", "--output", "json", "no-such-file"}},
		{2, []string{"replay", "--speed", "-1", "x"}},
		{2, []string{"replay", "--speed", "NaN", "x"}},
		{1, []string{"replay", "no-such-file"}},
		{2, []string{"replay", "--listen", "nowhere:1:1", t.TempDir()}},
	} {
		if status, out, errs := runOnce(t, c.args...); status != c.status {
			t.Errorf("%q: status %d, want %d; %s%s", c.args, status, c.status, out, errs)
		}
	}
}

// However slow a replay is, and however far the clock of a recording jumps, what came later comes later.
func TestPaced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		after time.Duration
		speed float64
		want  time.Duration
	}{
		{10 * time.Second, 10, time.Second},
		{10 * time.Second, 0.5, 20 * time.Second},
		{10 * time.Second, math.MaxFloat64, 0},
		{0, math.SmallestNonzeroFloat64, 0},
		{1, math.SmallestNonzeroFloat64, 100 * 365 * 24 * time.Hour},
		{math.MaxInt64, 0.1, 100 * 365 * 24 * time.Hour},
	} {
		if got := paced(tt.after, tt.speed); got != tt.want {
			t.Errorf("%v at the speed %g is after %v, want %v", tt.after, tt.speed, got, tt.want)
		}
	}
}

// Of a recording that is cut in its last line it is said that the line is left out.
func TestCutRecording(t *testing.T) {
	t.Parallel()
	srv := server(t, testutil.OnRequest(func(*testutil.Stream, *testutil.Request) {}))
	whole := filepath.Join(t.TempDir(), "whole.jsonl")
	if status, out, errs := runOnce(t, "record", "--server", srv.Target(), "--to", whole, "--for", "500ms", "cds:a"); status != 0 || out != "" || errs != "xdsctl: recorded 1 frame\n" {
		t.Fatalf("status %d, %s%s", status, errs, out)
	}
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	path := file(t, "cut.jsonl", string(text)+string(text[:20]))
	want := "xdsctl: " + path + ": the last line of the recording is cut; it is left out\n"
	for _, args := range [][]string{{"validate", path}, {"diff", path, whole}} {
		if status, _, errs := runOnce(t, args...); status != 0 || !strings.HasPrefix(errs, want) {
			t.Errorf("%s: status %d, %s", args, status, errs)
		}
	}
}
