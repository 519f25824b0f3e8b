package watcher_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/watcher"
)

type (
	cluster = clusterv3.Cluster
	event   = watcher.Event[*cluster]
	batch   = watcher.Batch[*cluster]
)

// rig is a client and its scripted server, inside a bubble.
type rig struct {
	t   *testing.T
	srv *testutil.Server
	c   *client.Client
}

func inBubble(t *testing.T, test func(*testing.T, *rig), change ...func(*client.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		boot, err := bootstrap.Server(srv.Target())
		must(t, err)
		boot.Node = &corev3.Node{Id: "node-1"}
		config := client.Config{Bootstrap: boot, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()}}
		for _, f := range change {
			f(&config)
		}
		c, err := client.New(config)
		must(t, err)
		t.Cleanup(func() {
			c.Close()
			<-c.Done()
			srv.Close()
		})
		test(t, &rig{t, srv, c})
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// accept takes the next stream when its first requests have come.
func (r *rig) accept() *testutil.Stream {
	r.t.Helper()
	st, err := r.srv.Accept(r.t.Context())
	must(r.t, err)
	synctest.Wait()
	return st
}

// send sends clusters by name and lets everything happen that follows.
func (r *rig) send(st *testutil.Stream, version string, names ...string) {
	r.t.Helper()
	var ms []proto.Message
	for _, name := range names {
		ms = append(ms, &cluster{Name: name, AltStatName: version})
	}
	must(r.t, st.Send(testutil.SotW(cds.Type.TypeURL(), version, "n"+version, ms...)))
	synctest.Wait()
}

// names are those of the newest request. Requests are a moment apart.
func names(st *testutil.Stream) []string {
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
	all := st.Requests()
	return all[len(all)-1].Names()
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// text is an event on a line: its value is that of the message.
func text(ev event) string {
	s := ev.Kind.String() + " " + ev.Name
	switch {
	case ev.Value != nil:
		s += fmt.Sprintf(" %s=%s", ev.Value.Name, ev.Value.AltStatName)
	case ev.Reason != 0:
		s += " " + ev.Reason.String()
	}
	return s
}

// record is what a handler heard.
type record struct {
	mu   sync.Mutex
	list []string
}

func (r *record) add(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, s)
}

func (r *record) hear(ev event) { r.add(text(ev)) }

// hearAll also notes the end of a batch.
func (r *record) hearAll(b batch) {
	for _, ev := range b.Events {
		r.hear(ev)
	}
	if b.Last {
		r.add(".")
	}
}

func (r *record) heard(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	same(t, "heard", slices.Clone(r.list), want)
}

func background() context.Context { return context.Background() }
