package client_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// rig is a client and its scripted server, inside a bubble.
type rig struct {
	t   *testing.T
	srv *testutil.Server
	c   *client.Client
	log *logBuffer
}

// inBubble runs a test with a rig. What the client leaves behind fails the bubble.
func inBubble(t *testing.T, test func(*testing.T, *rig), change ...func(*client.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newRig(t, testutil.NewServer(), change...)) })
}

// newRig also closes the server, at the end of the bubble.
func newRig(t *testing.T, srv *testutil.Server, change ...func(*client.Config)) *rig {
	t.Helper()
	boot, err := bootstrap.Server(srv.Target())
	must(t, err)
	boot.Node = &corev3.Node{Id: "node-1"}
	r := &rig{t: t, srv: srv, log: &logBuffer{}}
	config := client.Config{
		Bootstrap: boot,
		Logger:    slog.New(slog.NewTextHandler(r.log, nil)),
		GRPC:      transport.GRPCConfig{DialOptions: srv.DialOptions()},
	}
	for _, f := range change {
		f(&config)
	}
	r.c, err = client.New(config)
	must(t, err)
	t.Cleanup(func() {
		r.c.Close()
		<-r.c.Done()
		srv.Close()
	})
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// watch subscribes to a cluster and records what it hears.
func (r *rig) watch(name string) (*client.Watch, *record) {
	r.t.Helper()
	return r.watchType(cds.Type, name)
}

func (r *rig) watchType(k resource.AnyType, name string) (*client.Watch, *record) {
	r.t.Helper()
	rec := &record{}
	w, err := r.c.Watch(context.Background(), k, name, rec.hear)
	must(r.t, err)
	return w, rec
}

// accept takes the next stream when its first requests have come.
func (r *rig) accept() *testutil.Stream {
	r.t.Helper()
	st, err := r.srv.Accept(r.t.Context())
	must(r.t, err)
	synctest.Wait()
	return st
}

// request takes the next request and compares it with its text.
func (r *rig) request(st *testutil.Stream, want string) *testutil.Request {
	r.t.Helper()
	req, err := st.Next(r.t.Context())
	must(r.t, err)
	if got := short(req); got != want {
		r.t.Errorf("request is %s, want %s", got, want)
	}
	return req
}

// latest compares the newest request, once what was asked for a moment ago has left.
func (r *rig) latest(st *testutil.Stream, want string) *testutil.Request {
	r.t.Helper()
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
	all := st.Requests()
	req := all[len(all)-1]
	if got := short(req); got != want {
		r.t.Errorf("the newest request is %s, want %s", got, want)
	}
	return req
}

// quiet checks that nothing more was asked for.
func (r *rig) quiet(st *testutil.Stream, requests int) {
	r.t.Helper()
	synctest.Wait()
	if got := st.Requests(); len(got) != requests {
		r.t.Errorf("there are %d requests, want %d: %v", len(got), requests, got)
	}
}

func (r *rig) send(st *testutil.Stream, m proto.Message) {
	r.t.Helper()
	must(r.t, st.Send(m))
}

// clusters sends clusters by name and synchronises.
func (r *rig) clusters(st *testutil.Stream, version, nonce string, names ...string) {
	r.t.Helper()
	var ms []proto.Message
	for _, name := range names {
		ms = append(ms, cluster(name, version))
	}
	r.send(st, testutil.SotW(cds.Type.TypeURL(), version, nonce, ms...))
	synctest.Wait()
}

// cluster differs by its alternative name.
func cluster(name, alt string) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, AltStatName: alt}
}

func assignment(name string) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: name}
}

var kinds = map[string]string{cds.Type.TypeURL(): "cds", eds.Type.TypeURL(): "eds"}

// short writes a request as scripts do, without its stream.
func short(r *testutil.Request) string {
	s := fmt.Sprintf("%s [%s]", kinds[r.TypeURL()], strings.Join(r.Names(), " "))
	if r.Version() != "" {
		s += " v" + r.Version()
	}
	if r.Nonce() != "" {
		s += " " + r.Nonce()
	}
	if e := r.ErrorDetail(); e != nil {
		s += " error: " + e.GetMessage()
	}
	return s
}

// record is what a watch heard, one line an event.
type record struct {
	mu     sync.Mutex
	events []client.Event[any]
}

func (r *record) hear(ev client.Event[any]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, ev)
}

func (r *record) all() []client.Event[any] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func (r *record) last() client.Event[any] {
	all := r.all()
	if len(all) == 0 {
		return client.Event[any]{}
	}
	return all[len(all)-1]
}

// heard compares everything that was heard so far.
func (r *record) heard(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	same(t, "heard", lines(r.all()), want)
}

func lines(evs []client.Event[any]) []string {
	var ls []string
	for _, ev := range evs {
		s := ev.Kind.String() + " " + ev.Name
		switch {
		case ev.Kind == client.EventUpdated:
			s += " " + ev.Version
		case ev.Kind == client.EventDoesNotExist:
			s += " " + ev.Reason.String()
		case ev.Err != nil:
			s += " " + trouble(ev.Err)
		}
		if ev.Locator != "" {
			s += " via " + ev.Locator
		}
		ls = append(ls, s)
	}
	return ls
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) holds(t *testing.T, text string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !strings.Contains(l.b.String(), text) {
		t.Errorf("the log has no %q:\n%s", text, l.b.String())
	}
}

func (l *logBuffer) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
