package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// manyClusters are n clusters by wildcard.
func manyClusters(t testing.TB, r *rig, n int) (*client.Watch, *testutil.Stream) {
	t.Helper()
	w, err := r.c.WatchAll(context.Background(), cds.Type, "*", func(client.Batch[any]) {})
	must(r.t, err)
	var all []proto.Message
	for i := range n {
		all = append(all, cluster(fmt.Sprintf("c-%05d", i), ""))
	}
	st := r.accept()
	r.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", all...))
	synctest.Wait()
	return w, st
}

func namesOf(states []client.State) (names []string) {
	for _, s := range states {
		names = append(names, s.Name)
	}
	return names
}

// More states than a page are sorted and whole. The program may watch, stop and stop ranging on the way: what is
// gone is left out, and what came may be.
func TestStatesInPages(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		const n = 3000
		w, _ := manyClusters(t, r, n)
		all := slices.Collect(r.c.States())
		if len(all) != n+1 || all[0].Name != "*" || all[n].Name != "c-02999" || !slices.IsSorted(namesOf(all)) {
			t.Fatalf("%d states, from %s to %s", len(all), all[0].Name, all[len(all)-1].Name)
		}
		for range r.c.States() {
			break
		}
		r.watchType(eds.Type, "e")
		same(t, "endpoints", namesOf(slices.Collect(r.c.States(eds.Type.TypeURL()))), []string{"e"})
		same(t, "clusters", len(slices.Collect(r.c.States(cds.Type.TypeURL()))), n+1)
		seen := 0
		for range r.c.States() {
			if seen++; seen == 1 {
				r.watchType(eds.Type, "late")
				w.Stop()
				synctest.Wait()
			}
		}
		if seen >= n {
			t.Errorf("%d states though all were let go at the first", seen)
		}
		r.c.Close()
		same(t, "after Close", len(r.c.Dump()), 0)
	})
}

// A state says when the last update failed, anew each time that it does.
// spec: CSDS-d
func TestStatesFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		synctest.Wait()
		accepted := time.Now()
		if s := r.c.Dump()[0]; !s.Failed.IsZero() {
			t.Errorf("what is well has failed at %v", s.Failed)
		}
		for _, version := range []string{"2", "3"} {
			time.Sleep(time.Second)
			r.send(st, testutil.SotW(cds.Type.TypeURL(), version, "n"+version, invalid("a")))
			synctest.Wait()
			s := r.c.Dump()[0]
			if now := time.Now(); !s.Failed.Equal(now) || !s.Updated.Equal(accepted) || !s.Refused.Time.Equal(now) || s.Refused.Version != version || s.Refused.Type != cds.Type.TypeURL() {
				t.Errorf("at %v: failed at %v, updated at %v, refused %+v", now, s.Failed, s.Updated, s.Refused)
			}
		}
	})
}

// A state has the authority of its name, and is kept only where there is a value.
func TestStatesOfAbsent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch(at("a", "x"))
		r.watch("y")
		r.accept()
		time.Sleep(time.Minute)
		for _, s := range r.c.Dump() {
			if s.Status != "DOES_NOT_EXIST" || s.Kept || (s.Authority == "a") != (s.Name == at("a", "x")) {
				t.Errorf("%+v", s)
			}
		}
	}, func(c *client.Config) { c.Bootstrap.Authorities = map[string]bootstrap.Authority{"a": {}} })
}

// Resources of scopes, and of sources that watches bring along, are told apart.
func TestStatesOfScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, testutil.NewServer())
		r.watch("a")
		_, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) {}, client.InScope("blue"))
		must(t, err)
		boot, err := bootstrap.Server("passthrough:///elsewhere") // no name is looked up in a bubble
		must(t, err)
		_, err = r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) {}, client.InScope("blue"),
			client.FromSource(bootstrap.Source{Servers: boot.Servers}))
		must(t, err)
		var scopes []string
		for _, s := range r.c.Dump() {
			scopes = append(scopes, s.Scope)
		}
		same(t, "scopes", scopes, []string{"", "blue", "blue@passthrough:///elsewhere"})
	})
}

// The node is the one that was sent last, with later parameters; errors tell its ID.
//
// spec: ERR-11
func TestNodeOfClient(t *testing.T) {
	calls := 0
	inBubble(t, func(t *testing.T, r *rig) {
		if n := r.c.Node(); n.GetId() != "node-1" || n.GetUserAgentName() != "xdswatch" {
			t.Errorf("before the first stream it is %v", n)
		}
		_, rec := r.watch("a")
		st := r.accept()
		same(t, "node", r.c.Node().GetId(), "call-1")
		must(t, r.c.SetNodeParameters(cds.Type.TypeURL(), map[string]string{"k": "v"}))
		synctest.Wait()
		same(t, "parameter", r.c.Node().GetDynamicParameters()[cds.Type.TypeURL()].GetParams()["k"], "v")
		st.End(nil)
		synctest.Wait()
		if re, ok := errors.AsType[*client.ResourceError](rec.last().Err); !ok || re.NodeID != "call-1" || !strings.Contains(re.Error(), "call-1") {
			t.Errorf("the error is %v, want one for the node that was sent", rec.last().Err)
		}
		r.accept()
		same(t, "node", r.c.Node().GetId(), "call-2")
	}, func(c *client.Config) {
		c.Node = func(n *corev3.Node) *corev3.Node {
			calls++
			n.Id = fmt.Sprint("call-", calls)
			return n
		}
	})
}

// BenchmarkStates reads the states of a hundred thousand resources. longest-wait is the longest that another
// call which needs the loop had to wait meanwhile.
func BenchmarkStates(b *testing.B) {
	srv := testutil.StartServer(b)
	boot, err := bootstrap.Server(srv.Target())
	must(b, err)
	c, err := client.New(client.Config{Bootstrap: boot, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()}})
	must(b, err)
	defer c.Close()
	_, err = c.WatchAll(context.Background(), cds.Type, "*", func(client.Batch[any]) {})
	must(b, err)
	st, err := srv.Accept(b.Context())
	must(b, err)
	const n = 100_000
	var all []proto.Message
	for i := range n {
		all = append(all, cluster(fmt.Sprintf("c-%05d", i), ""))
	}
	must(b, st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n1", all...)))
	must(b, c.Ready(b.Context()))
	all = nil
	stop, waited := make(chan struct{}), make(chan time.Duration)
	go func() {
		var longest time.Duration
		for {
			select {
			case <-stop:
				waited <- longest
				return
			case <-time.After(time.Millisecond):
			}
			began := time.Now()
			c.Node()
			longest = max(longest, time.Since(began))
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		seen := 0
		for range c.States() {
			seen++
		}
		if seen != n+1 {
			b.Fatal(seen)
		}
	}
	close(stop)
	b.ReportMetric(float64((<-waited).Microseconds())/1000, "longest-wait-ms")
}
