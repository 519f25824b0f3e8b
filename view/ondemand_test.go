package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// rig is a view and its scripted server, inside a bubble.
type rig struct {
	t   *testing.T
	srv *testutil.Server
	c   *client.Client
	v   *View
	st  *testutil.Stream
}

// inBubble follows a cluster that the server has sent, in delta.
func inBubble(t *testing.T, config Config, test func(*testing.T, *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		boot, err := bootstrap.Server(srv.Target())
		must(t, err)
		boot.Node = &corev3.Node{Id: "n"}
		c, err := client.New(client.Config{Bootstrap: boot, Variant: client.VariantDelta, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()}})
		must(t, err)
		t.Cleanup(func() {
			c.Close()
			<-c.Done()
			srv.Close()
		})
		v, err := New(t.Context(), c, Root{Type: RootCluster, Name: "root"}, config)
		must(t, err)
		r := &rig{t: t, srv: srv, c: c, v: v}
		r.accept()
		r.send("root static:1.1.1.1")
		must(t, v.Ready(t.Context()))
		test(t, r)
		v.Stop()
		<-v.Done()
	})
}

func (r *rig) accept() {
	r.t.Helper()
	st, err := r.srv.Accept(r.t.Context())
	must(r.t, err)
	r.st = st
	synctest.Wait()
}

// send sends clusters; "-NAME" is a removal.
func (r *rig) send(lines ...string) {
	r.t.Helper()
	var resources []*discoveryv3.Resource
	var removed []string
	for _, line := range lines {
		if name, ok := strings.CutPrefix(line, "-"); ok {
			removed = append(removed, name)
			continue
		}
		name, _, _ := strings.Cut(line, " ")
		resources = append(resources, testutil.Wrapped(name, "1", res(r.t, "cds "+line)))
	}
	must(r.t, r.st.Send(testutil.Delta(cds.Type.TypeURL(), "n", resources, removed...)))
	synctest.Wait()
}

// asked are the names that the server was asked for on its newest stream, and those that were left.
func (r *rig) asked() (subscribed, left []string) {
	time.Sleep(10 * time.Millisecond) // requests are a moment apart
	synctest.Wait()
	for _, req := range r.st.Requests() {
		subscribed = append(subscribed, req.Names()...)
		left = append(left, req.Unsubscribed()...)
	}
	return subscribed, left
}

func count(all []string, name string) (n int) {
	for _, s := range all {
		if s == name {
			n++
		}
	}
	return n
}

// Callers for a name share one subscription, and all hear the answer; a name that is known takes
// no request, also without a connection.
//
// spec: ONDEMAND-1, ONDEMAND-2, OD-a
func TestOnDemandShared(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, r *rig) {
		var wait sync.WaitGroup
		for range 20 {
			for _, name := range []string{"x", "y"} {
				wait.Go(func() {
					c, err := r.v.Cluster(t.Context(), name)
					if err != nil || c.Name != name || c.Status() != StatusOK {
						t.Errorf("%s: %v, %v", name, c, err)
					}
				})
			}
		}
		synctest.Wait()
		if names, _ := r.asked(); count(names, "x") != 1 || count(names, "y") != 1 {
			t.Errorf("asked for %q", names)
		}
		r.send("x static:2.2.2.2")
		r.send("y static:3.3.3.3")
		wait.Wait()
		r.st.End(errors.New("gone"))
		r.srv.SetRefuse(true)
		if c, err := r.v.Cluster(t.Context(), "x"); err != nil || c.Status() != StatusOK {
			t.Errorf("while the server is away: %v, %v", c, err)
		}
		if c, err := r.v.Cluster(t.Context(), "root"); err != nil || c.Name != "root" {
			t.Errorf("the root: %v, %v", c, err)
		}
	})
}

// An absence releases who waits, at once. A miss is asked for anew some seconds later, and a
// cluster that comes after a miss is found (envoy#47201).
//
// spec: OD-b, ONDEMAND-3
func TestOnDemandMiss(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, r *rig) {
		get := func() error {
			_, err := r.v.Cluster(t.Context(), "x")
			return err
		}
		done := make(chan error, 1)
		go func() { done <- get() }()
		synctest.Wait()
		r.asked()
		r.send("-x")
		if err := <-done; !errors.Is(err, client.ErrDoesNotExist) {
			t.Fatalf("a miss: %v", err)
		}
		for range 20 { // a program that asks again and again
			if err := get(); !errors.Is(err, client.ErrDoesNotExist) {
				t.Fatalf("a miss that is known: %v", err)
			}
			time.Sleep(missFor / 15)
			if _, left := r.asked(); count(left, "x") > 0 {
				break
			}
		}
		if _, left := r.asked(); count(left, "x") != 1 {
			t.Fatalf("the miss is never forgotten: %q", left)
		}
		go func() { done <- get() }()
		synctest.Wait()
		if names, _ := r.asked(); count(names, "x") != 2 {
			t.Fatalf("x is not asked for again: %q", names)
		}
		r.send("x static:2.2.2.2")
		if err := <-done; err != nil {
			t.Errorf("after the miss: %v", err)
		}
	})
}

// The deadline of a caller keeps the subscription, and a late answer is there for the next. What is
// idle is let go.
//
// spec: ONDEMAND-4
func TestOnDemandDeadline(t *testing.T) {
	inBubble(t, Config{OnDemandIdle: 20 * time.Second}, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var nr *NotReadyError
		if _, err := r.v.Cluster(ctx, "x"); !errors.As(err, &nr) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `Cluster "x"`) {
			t.Fatalf("got %v", err)
		}
		r.send("x static:2.2.2.2")
		if c := r.v.Snapshot().Cluster("x"); c == nil || c.Status() != StatusOK {
			t.Errorf("the late answer is not there: %v", show(r.v.Snapshot()))
		}
		if _, err := r.v.Cluster(t.Context(), "x"); err != nil {
			t.Error(err)
		}
		time.Sleep(15 * time.Second)
		if _, left := r.asked(); count(left, "x") != 0 {
			t.Error("it is let go before it was idle for long")
		}
		time.Sleep(10 * time.Second)
		if _, left := r.asked(); count(left, "x") != 1 || r.v.Snapshot().Cluster("x") != nil {
			t.Errorf("it is idle and not let go: %q", left)
		}
	})
}

// The longest idle name leaves first where there are too many; if all are waited for there is an
// error.
//
// spec: ONDEMAND-4
func TestOnDemandBound(t *testing.T) {
	inBubble(t, Config{MaxOnDemand: 2}, func(t *testing.T, r *rig) {
		for _, name := range []string{"x", "y", "z"} {
			go r.v.Cluster(t.Context(), name)
			synctest.Wait()
			r.asked()
			r.send(name + " static:2.2.2.2")
		}
		if _, left := r.asked(); !slices.Equal(left, []string{"x"}) {
			t.Errorf("let go: %q", left)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.v.Cluster(ctx, "u")
		go r.v.Cluster(ctx, "v")
		synctest.Wait()
		if _, err := r.v.Cluster(ctx, "w"); !errors.Is(err, client.ErrTooManyNames) {
			t.Errorf("one more: %v", err)
		}
	})
}

// A name on demand is asked for again on a new stream, and those that were asked for before it
// stay (Envoy recreated the stream, or dropped the subscription).
//
// spec: OD-d
func TestOnDemandNewStream(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, r *rig) {
		done := make(chan error, 2)
		get := func(name string) {
			go func() {
				_, err := r.v.Cluster(t.Context(), name)
				done <- err
			}()
			synctest.Wait()
			r.asked()
		}
		get("x")
		r.send("x static:2.2.2.2")
		get("y")
		first := r.st
		r.st.End(nil)
		r.accept()
		if names, _ := r.asked(); count(names, "x") != 1 || count(names, "y") != 1 || r.st == first {
			t.Errorf("asked for %q on the new stream", names)
		}
		r.send("y static:3.3.3.3")
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// A full state of the clusters, which others watch by the wildcard, does not remove what somebody
// asked for by name (envoy#42551).
//
// spec: OD-a, OD-c
func TestOnDemandBesideWildcard(t *testing.T) {
	for _, variant := range []client.Variant{client.VariantSotW, client.VariantDelta} {
		s := newSite(t, variant, false)
		s.set("1", "cds root static:1.1.1.1", "cds x static:2.2.2.2")
		_, err := s.c.WatchAll(t.Context(), cds.Type, "*", func(client.Batch[any]) {})
		must(t, err)
		v := s.view(Root{Type: RootCluster, Name: "root"}, Config{OnSnapshot: func(s *Snapshot) {
			if c := s.Cluster("x"); c != nil && c.Status() == StatusError {
				t.Errorf("variant %v: %v", variant, show(s))
			}
		}})
		must(t, v.Ready(t.Context()))
		if _, err := v.Cluster(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		for _, version := range []string{"2", "3", "4"} {
			s.set(version, "cds root static:1.1.1.1 alt:"+version, "cds x static:2.2.2.2")
			reachSnapshot(t, v, "version "+version, func(s *Snapshot) bool { return s.Cluster("root").Message.GetAltStatName() == version })
		}
		if c := v.Snapshot().Cluster("x"); c == nil || c.Status() != StatusOK {
			t.Errorf("variant %v: x is gone: %v", variant, show(v.Snapshot()))
		}
	}
}

// A cluster and a host name that is spelled like it are two things.
//
// spec: ONDEMAND-1
func TestOnDemandNames(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = r.v.Cluster(ctx, "host a.org")
		_, err := r.v.VirtualHost(t.Context(), "a.org")
		if !errors.Is(err, client.ErrDoesNotExist) {
			t.Errorf("the virtual host: %v", err)
		}
		if n, _ := r.v.core.vhds.names.Get("a.org"); n != 1 {
			t.Error("the host name is not held")
		}
	})
}

// A cluster that does not exist is asked for anew though it is in use whenever that is due.
//
// spec: OD-b
func TestOnDemandMissInUse(t *testing.T) {
	inBubble(t, Config{OnDemandIdle: time.Hour}, func(t *testing.T, r *rig) {
		go func() {
			synctest.Wait()
			r.send("-x")
		}()
		if _, err := r.v.Cluster(t.Context(), "x"); !errors.Is(err, client.ErrDoesNotExist) {
			t.Fatal(err)
		}
		s, err := r.v.demand.Enter(slotKey{false, "x"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(missFor + time.Second)
		r.v.demand.Leave(s, true)
		time.Sleep(missFor)
		synctest.Wait()
		if _, left := r.asked(); count(left, "x") != 1 {
			t.Errorf("unsubscribed: %q", left)
		}
	})
}

// A negative OnDemandIdle lets a cluster go with the last who asked for it, whether or not there is one.
//
// spec: ONDEMAND-4
func TestOnDemandNotKept(t *testing.T) {
	inBubble(t, Config{OnDemandIdle: -1}, func(t *testing.T, r *rig) {
		for i, answer := range []string{"x static:2.2.2.2", "-x", "x static:3.3.3.3"} {
			var wait sync.WaitGroup
			for range 2 {
				wait.Go(func() {
					switch c, err := r.v.Cluster(t.Context(), "x"); {
					case answer == "-x" && !errors.Is(err, client.ErrDoesNotExist):
						t.Errorf("%d: %v, %v", i, c, err)
					case answer != "-x" && err != nil:
						t.Errorf("%d: %v", i, err)
					}
				})
			}
			synctest.Wait()
			if names, left := r.asked(); count(names, "x") != i+1 || count(left, "x") != i {
				t.Errorf("%d: asked for %q, left %q", i, names, left)
			}
			r.send(answer)
			wait.Wait()
			synctest.Wait()
			if _, left := r.asked(); count(left, "x") != i+1 {
				t.Errorf("%d: left %q", i, left)
			}
		}
	})
}

// A negative MaxOnDemand is no bound: one more than the default has room.
//
// spec: ONDEMAND-4
func TestOnDemandUnbounded(t *testing.T) {
	for most, want := range map[int]int{0: defaultMaxOnDemand, -1: defaultMaxOnDemand + 1} {
		inBubble(t, Config{MaxOnDemand: most}, func(t *testing.T, r *rig) {
			for i := range defaultMaxOnDemand + 1 {
				if _, err := r.v.demand.Enter(slotKey{name: fmt.Sprint(i)}, func() (func(), error) { return func() {}, nil }); (err == nil) != (i < want) {
					t.Fatalf("MaxOnDemand %d, name %d: %v", most, i, err)
				}
			}
		})
	}
}

// A caller looks again when there is news of its cluster, and not at each snapshot; it leaves nothing behind.
//
// spec: ONDEMAND-3
func TestOnDemandNews(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, r *rig) {
		defer r.v.Hold("a")()
		defer r.v.Hold("b")()
		synctest.Wait()
		looks := 0
		ended := make(chan error, 1)
		go func() {
			ended <- r.v.wait(t.Context(), slotKey{false, "b"}, func(s *Snapshot) (bool, []slotKey) {
				looks++
				return s.Cluster("b").Status() == StatusOK, []slotKey{{false, "b"}}
			})
		}()
		synctest.Wait()
		serial := r.v.Snapshot().Serial
		r.send("a static:1.1.1.1")
		r.send("a static:1.1.1.2")
		if r.v.Snapshot().Serial != serial+2 || looks != 1 {
			t.Errorf("%d looks at %d snapshots of others", looks, r.v.Snapshot().Serial-serial)
		}
		r.send("b static:1.1.1.1")
		if err := <-ended; err != nil || looks != 2 || len(r.v.calls.on) > 0 {
			t.Errorf("%d looks, %v; %d keys are left", looks, err, len(r.v.calls.on))
		}
	})
}
