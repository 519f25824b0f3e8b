package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/testutil"
)

const (
	clusters  = resource.TypePrefix + "envoy.config.cluster.v3.Cluster"
	endpoints = resource.TypePrefix + "envoy.config.endpoint.v3.ClusterLoadAssignment"

	// patience is how long a test waits for what has to come.
	patience = 2 * time.Minute
	// never is a time that no test reaches.
	never = "1h"
)

// silence is a resource timeout for names that a server is silent about, where it has to answer about others
// in time. TestMain makes it shorter for a short run.
var silence = "3s"

// program is the command at work in this process.
type program struct {
	t      *testing.T
	stdin  *io.PipeWriter
	stop   context.CancelFunc // the signal
	lines  chan string        // of standard output; closed at its end
	stderr *buffer
	status chan int
	hide   *strings.Replacer // what differs from run to run
}

// buffer is standard error.
type buffer struct {
	mu    sync.Mutex
	b     bytes.Buffer
	grown chan struct{} // nil while nobody waits; closed by the next write
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.grown != nil {
		close(b.grown)
		b.grown = nil
	}
	return b.b.Write(p)
}

func (b *buffer) String() string {
	text, _ := b.read()
	return text
}

// read gives what was written, and a channel that is closed when there is more.
func (b *buffer) read() (string, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.grown == nil {
		b.grown = make(chan struct{})
	}
	return b.b.String(), b.grown
}

// start runs `xdsctl watch`. A server's address is shown as SERVER.
func start(t *testing.T, server string, args ...string) *program {
	t.Helper()
	return startHiding(t, strings.NewReplacer(server, "SERVER"), args...)
}

// startHiding runs `xdsctl watch` and has its output replaced where it differs from run to
// run.
func startHiding(t *testing.T, hide *strings.Replacer, args ...string) *program {
	t.Helper()
	return startCommand(t, hide, append([]string{"watch"}, args...)...)
}

// startCommand runs any command so.
func startCommand(t *testing.T, hide *strings.Replacer, args ...string) *program {
	t.Helper()
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	p := &program{
		t: t, stdin: stdin, stop: stop, lines: make(chan string, 4096), stderr: &buffer{},
		status: make(chan int, 1), hide: hide,
	}
	go func() {
		status := run(ctx, args, in, out, p.stderr)
		out.Close()
		p.status <- status
	}()
	go func() {
		defer close(p.lines)
		for r := bufio.NewReader(stdout); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			p.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	t.Cleanup(func() {
		stop()
		stdin.Close()
		for range p.lines { // until the program has ended
		}
	})
	return p
}

// watchServer runs the command against a server, with JSON as output.
func watchServer(t *testing.T, server string, args ...string) *program {
	t.Helper()
	return start(t, server, append([]string{"--server", server, "--output", "json"}, args...)...)
}

// updated is the field of a dump that differs from run to run.
var updated = regexp.MustCompile(`"updated":"[^"]*Z"`)

var timeField = regexp.MustCompile(`^\{"time":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z)",`)

// subscriptionFields are those of the subscription that an event answers.
var subscriptionFields = regexp.MustCompile(`,"subscription":"(?:[^"\\]|\\.)*"(?:,"asked":"(?:[^"\\]|\\.)*")?`)

// plain is output without the subscriptions that events answer.
func plain(text string) string { return subscriptionFields.ReplaceAllString(text, "") }

// insteadField is when the response came that is told of in place of a resource.
var insteadField = regexp.MustCompile(`"instead":\{"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z",`)

// next is the next line of JSON without its time, which is looked at, and without the
// subscription that it answers.
func (p *program) next() string {
	p.t.Helper()
	line := p.line()
	at := timeField.FindStringSubmatch(line)
	if at == nil {
		p.t.Fatalf("no time in %s", line)
	}
	when, err := time.Parse(time.RFC3339Nano, at[1])
	if age := time.Since(when); err != nil || age < 0 || age > time.Minute {
		p.t.Fatalf("time %s, %v", at[1], err)
	}
	line = plain(line[len(at[0]):])
	return p.hide.Replace("{" + insteadField.ReplaceAllString(line, `"instead":{`))
}

func (p *program) line() string {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.t.Fatalf("the program has ended; standard error:\n%s", p.stderr)
		}
		return line
	case <-time.After(patience):
		p.t.Fatalf("nothing is printed; standard error:\n%s", p.stderr)
	}
	return ""
}

// expect compares what comes next, line by line.
func (p *program) expect(want ...string) {
	p.t.Helper()
	for _, w := range want {
		if got := p.next(); got != w {
			p.t.Fatalf("got  %s\nwant %s", got, w)
		}
	}
}

// skipTo drops lines up to and with the first that holds the text.
func (p *program) skipTo(text string) string {
	p.t.Helper()
	for {
		if line := p.next(); strings.Contains(line, text) {
			return line
		}
	}
}

// enter types a line on standard input.
func (p *program) enter(line string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.stdin, line); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits for the end and compares the status.
func (p *program) ends(want int) {
	p.t.Helper()
	select {
	case got := <-p.status:
		if got != want {
			p.t.Errorf("status %d, want %d; standard error:\n%s", got, want, p.stderr)
		}
	case <-time.After(patience):
		p.t.Fatal("does not end")
	}
}

// complains waits until standard error holds a text.
func (p *program) complains(text string) {
	p.t.Helper()
	over := time.After(patience)
	for {
		all, grown := p.stderr.read()
		if strings.Contains(all, text) {
			return
		}
		select {
		case <-grown:
		case <-over:
			p.t.Fatalf("standard error lacks %q:\n%s", text, all)
		}
	}
}

// server is the scripted server on TCP.
func server(t *testing.T, opts ...testutil.Option) *testutil.Server {
	t.Helper()
	s, err := testutil.ListenServer("127.0.0.1:0", opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// accept takes the next stream with its first request: what is sent earlier may come to a
// client that has not asked yet.
func accept(t *testing.T, s *testutil.Server) *testutil.Stream {
	t.Helper()
	st, _ := acceptFirst(t, s)
	return st
}

func acceptFirst(t *testing.T, s *testutil.Server) (*testutil.Stream, *testutil.Request) {
	t.Helper()
	st, err := s.Accept(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	return st, request(t, st)
}

// ask waits for the request that asks for these names.
func ask(t *testing.T, st *testutil.Stream, names string) {
	t.Helper()
	for strings.Join(request(t, st).Names(), " ") != names {
	}
}

func request(t *testing.T, st *testutil.Stream) *testutil.Request {
	t.Helper()
	r, err := st.Next(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func send(t *testing.T, st *testutil.Stream, m proto.Message) {
	t.Helper()
	if err := st.Send(m); err != nil {
		t.Fatal(err)
	}
}

func cluster(name string) *clusterv3.Cluster { return &clusterv3.Cluster{Name: name} }

// file writes a file for the length of the test.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// grpcBootstrap is a bootstrap in gRPC's format with one server.
func grpcBootstrap(t *testing.T, server, features string) string {
	t.Helper()
	return file(t, "grpc.json", fmt.Sprintf(`{
		"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": [%s]}],
		"node": {"id": "me"},
		"authorities": {"good.example": {}}
	}`, server, features))
}

// The lines that most tests expect.
const streamUp = `{"event":"stream-up","server":"SERVER","error":null}`

func update(name, version, resource string) string {
	return fmt.Sprintf(`{"event":"update","type":%q,"name":%q,"version":%q,"resource":%s,"server":"SERVER"}`, clusters, name, version, resource)
}

func ack(version, nonce string) string {
	return fmt.Sprintf(`{"event":"ack","type":%q,"version":%q,"nonce":%q,"error":null,"server":"SERVER"}`, clusters, version, nonce)
}

func absent(name, reason string) string {
	return fmt.Sprintf(`{"event":"does-not-exist","type":%q,"name":%q,"reason":%q}`, clusters, name, reason)
}

// absentInstead says what came in its place.
func absentInstead(name string, count int, names ...string) string {
	list, _ := json.Marshal(append([]string{}, names...))
	return fmt.Sprintf(`{"event":"does-not-exist","type":%q,"name":%q,"reason":"timeout","instead":{"count":%d,"names":%s,"error":null}}`,
		clusters, name, count, list)
}

func failed(event, name, kind, message string) string {
	return fmt.Sprintf(`{"event":%q,"type":%q,"name":%q,"error":{"kind":%q,"message":%q}}`, event, clusters, name, kind, message)
}

func synced() string {
	return fmt.Sprintf(`{"event":"synced","type":%q,"name":"*"}`, clusters)
}
