package file_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/transport/file"
)

const (
	clusterURL  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	listenerURL = "type.googleapis.com/envoy.config.listener.v3.Listener"

	// patience is how long anything may take before a test gives up.
	patience = 2 * time.Minute
	// settle is short, and recheck long: what a test waits for, notifications bring.
	settle  = 20 * time.Millisecond
	recheck = time.Hour
)

// TestMain sees to it that nothing is left behind: goroutines, files, notifications.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // these tests wait and hardly compute
		panic(err)
	}
	before := footprint()
	code := m.Run()
	for deadline := time.Now().Add(patience); code == 0 && footprint() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "%d files are open, %d were before\n", footprint(), before)
			code = 1
		}
	}
	os.Exit(code)
}

// footprint counts open files and goroutines of this package and what it uses.
func footprint() int {
	links, _ := filepath.Glob("/proc/self/fd/*") // the pattern is good; nothing elsewhere
	n := 0
	for _, l := range links {
		if to, _ := os.Readlink(l); strings.Contains(to, "inotify") || strings.HasPrefix(to, os.TempDir()) {
			n++
		}
	}
	return n + strings.Count(stacks(), "fsnotify") + strings.Count(stacks(), "transport/file.")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rig is a stream from a file.
type rig struct {
	t      testing.TB
	path   string
	stream transport.Stream
	frames chan *wire.Response
	ended  chan error
	told   chan error // what was reported
	nonce  string     // of the last response
}

type (
	sourceConfig  = bootstrap.File
	carrierConfig = file.Config
	change        = func(*sourceConfig, *carrierConfig)
)

// open makes a stream from a file, which exists.
func open(t testing.TB, path string, changes ...change) *rig {
	t.Helper()
	r := newRig(t, path)
	r.stream = r.dial(changes...)
	go r.receive()
	return r
}

func newRig(t testing.TB, path string) *rig {
	return &rig{
		t: t, path: path, frames: make(chan *wire.Response), ended: make(chan error, 1), told: make(chan error, 1000),
	}
}

// dial opens the stream, and closes it with the test.
func (r *rig) dial(changes ...change) transport.Stream {
	r.t.Helper()
	conn := r.conn(changes...)
	s, err := conn.Open(context.Background(), transport.MethodADS)
	must(r.t, err)
	r.t.Cleanup(func() { must(r.t, conn.Close()) })
	return s
}

func (r *rig) conn(changes ...change) transport.Conn {
	r.t.Helper()
	source := bootstrap.File{Path: r.path}
	config := file.Config{
		Settle: settle, Recheck: recheck, Report: func(_ string, err error) { r.told <- err },
	}
	for _, f := range changes {
		f(&source, &config)
	}
	conn, err := file.NewBuilder(config, nil).Build(bootstrap.ManagementServer{URI: "file://" + r.path, Carrier: &source})
	must(r.t, err)
	return conn
}

func (r *rig) receive() {
	for {
		f, err := r.stream.Recv()
		if err != nil {
			r.ended <- err
			return
		}
		resp, err := wire.ScanSotW(f.Parts...)
		if err != nil {
			r.ended <- err
			return
		}
		select {
		case r.frames <- resp:
		case <-time.After(patience):
			return
		}
	}
}

// ask sends a request with the nonce of the last response.
func (r *rig) ask(typeURL string, names ...string) {
	r.t.Helper()
	r.send(typeURL, nil, names...)
}

func (r *rig) send(typeURL string, detail *wire.Status, names ...string) {
	r.t.Helper()
	msg := wire.AppendSotW(nil, typeURL, "", r.nonce, nil, detail)
	for _, n := range names {
		msg = wire.AppendName(msg, n, nil)
	}
	must(r.t, r.stream.Send(msg))
}

// next is the next response, in short: its version and what it holds.
func (r *rig) next() string {
	r.t.Helper()
	resp := r.response()
	out := []string{resp.Version}
	for i := range resp.Resources {
		e := &resp.Resources[i]
		must(r.t, e.Fault)
		out = append(out, nameOf(r.t, e))
	}
	for _, e := range resp.Errors {
		out = append(out, fmt.Sprintf("error %d of %s: %s", e.Code, e.Name, strings.ReplaceAll(e.Message, r.path, "PATH")))
	}
	return strings.Join(out, "|")
}

func (r *rig) response() *wire.Response {
	r.t.Helper()
	select {
	case resp := <-r.frames:
		r.nonce = resp.Nonce
		return resp
	case err := <-r.ended:
		r.t.Fatalf("the stream ended: %v", err)
	case <-time.After(patience):
		r.t.Fatalf("no response; told %v", drain(r.told))
	}
	return nil
}

func nameOf(t testing.TB, e *wire.Resource) string {
	t.Helper()
	if len(e.Name) > 0 {
		return string(e.Name)
	}
	name, _, err := wire.StringField(e.Payload, 1)
	must(t, err)
	return string(name)
}

// want checks the next response.
func (r *rig) want(want string) {
	r.t.Helper()
	if got := r.next(); got != want {
		r.t.Errorf("response %q, want %q", got, want)
	}
}

// wantTold waits for a report that holds a text; "" for the end of trouble.
func (r *rig) wantTold(want string) error {
	r.t.Helper()
	select {
	case err := <-r.told:
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			r.t.Fatalf("told %v, want %q", err, want)
		}
		return err
	case <-time.After(patience):
		r.t.Fatalf("nothing is told, want %q", want)
	}
	return nil
}

// wantError checks that the next response tells the wildcard of an error, and holds nothing.
func (r *rig) wantError() {
	r.t.Helper()
	if got := r.next(); !strings.HasPrefix(got, "1|error ") || !strings.Contains(got, " of *: ") {
		r.t.Errorf("response %q, want an error of the wildcard", got)
	}
}

func (r *rig) wantNothingTold() {
	r.t.Helper()
	if told := drain(r.told); len(told) > 0 {
		r.t.Errorf("told %v", told)
	}
}

func drain(c chan error) (all []error) {
	for {
		select {
		case err := <-c:
			all = append(all, err)
		default:
			return all
		}
	}
}

// answer is a response with clusters.
func answer(version string, names ...string) *discoveryv3.DiscoveryResponse {
	r := &discoveryv3.DiscoveryResponse{VersionInfo: version, TypeUrl: clusterURL}
	for _, n := range names {
		r.Resources = append(r.Resources, pack(&clusterv3.Cluster{Name: n}))
	}
	return r
}

func pack(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err) // a message that can be made can be packed
	}
	return a
}

// place moves a message to a path.
func place(t testing.TB, path string, m proto.Message) {
	t.Helper()
	must(t, testutil.PlaceFile(path, encode(t, path, m)))
}

func encode(t testing.TB, path string, m proto.Message) []byte {
	t.Helper()
	b, err := testutil.EncodeFile(path, m)
	must(t, err)
	return b
}

// at is a path in a directory of the test's own.
func at(t testing.TB, name string) string { return filepath.Join(t.TempDir(), name) }

// notRegular and the like are found in what Report is told.
func wantIs(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%v is not %v", err, target)
	}
}
