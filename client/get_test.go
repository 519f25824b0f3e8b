package client_test

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

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
)

// answering is a rig whose server has every cluster that is asked for, but those whose
// name begins with "no".
func answering(t *testing.T, test func(*testing.T, *rig), change ...func(*client.Config)) {
	n := 0
	srv := func() *testutil.Server {
		return testutil.NewServer(testutil.OnRequest(func(st *testutil.Stream, req *testutil.Request) {
			before := map[string]bool{}
			if all := st.Requests(); len(all) > 1 {
				for _, name := range all[len(all)-2].Names() {
					before[name] = true
				}
			}
			if !slices.ContainsFunc(req.Names(), func(n string) bool { return !before[n] }) {
				return // it asks for nothing new
			}
			n++
			m := testutil.SotW(req.TypeURL(), "1", fmt.Sprint("n", n))
			for _, name := range req.Names() {
				if !strings.HasPrefix(name, "no") {
					m.Resources = append(m.Resources, testutil.SotW("", "", "", cluster(name, "")).Resources...)
				}
			}
			_ = st.Send(m) // the stream may be over
		}))
	}
	synctest.Test(t, func(t *testing.T) { test(t, newRig(t, srv(), change...)) })
}

// Get returns the newest value, also while there is trouble, and after that.
// spec: ONDEMAND-1
func TestGetNewest(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		version := func(want string) {
			t.Helper()
			synctest.Wait()
			if ev, err := r.c.Get(t.Context(), cds.Type, "a"); err != nil || ev.Kind != client.EventUpdated || ev.Version != want {
				t.Errorf("Get: %v, %v, want version %s", ev, err, want)
			}
		}
		go func() { _, _ = r.c.Get(t.Context(), cds.Type, "a") }()
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		version("1")
		r.send(st, testutil.SotW(cds.Type.TypeURL(), "2", "n2", cluster("a", "2")))
		version("2")
		r.srv.SetRefuse(true)
		r.srv.DropConnections()
		time.Sleep(time.Minute)
		version("2")
		time.Sleep(time.Hour) // it is kept while the server is away
		version("2")
		r.send(r.revive(), testutil.SotW(cds.Type.TypeURL(), "2", "n3", cluster("a", "2")))
		version("2")
	})
}

// Only so many names are kept; the longest idle goes first, and never one that is waited for.
// spec: ONDEMAND-4
func TestGetLimit(t *testing.T) {
	answering(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		get := func(name string) {
			t.Helper()
			if ev, err := r.c.Get(ctx, cds.Type, name); err != nil || ev.Name != name {
				t.Errorf("Get %q: %v, %v", name, ev.Name, err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		for _, name := range []string{"a", "b", "c", "a", "d"} {
			get(name)
		}
		same(t, "kept", keptNames(r.c), "a c d") // b was idle for longest
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		errs := make(chan error)
		for i := range 3 {
			go func() {
				_, err := r.c.Get(short, cds.Type, fmt.Sprint("no", i))
				errs <- err
			}()
			synctest.Wait()
		}
		time.Sleep(10 * time.Millisecond) // until the server is told
		same(t, "kept", keptNames(r.c), "no0 no1 no2")
		if _, err := r.c.Get(ctx, cds.Type, "x"); !errors.Is(err, client.ErrTooManyNames) || !strings.Contains(err.Error(), `"x"`) {
			t.Errorf("one more than can be waited for: %v", err)
		}
		for range 3 {
			if err := <-errs; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a name without an answer: %v", err)
			}
		}
		get("x")
	}, func(c *client.Config) { c.GetMaxNames = 3 })
}

// A name that is held is not idle while its server cannot be reached, nor makes it room for
// another.
// spec: ONDEMAND-4 U-6
func TestGetWhileUnreachable(t *testing.T) {
	answering(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		get := func(name string) error {
			t.Helper()
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := r.c.Get(short, cds.Type, name)
			return err
		}
		must(t, errors.Join(get("a"), get("b")))
		time.Sleep(29 * time.Second)
		r.srv.SetRefuse(true)
		r.srv.DropConnections()
		time.Sleep(time.Hour)
		must(t, errors.Join(get("a"), get("b")))
		if err := get("c"); !errors.Is(err, client.ErrTooManyNames) {
			t.Errorf("one more than are kept while the server cannot be reached: %v", err)
		}
		time.Sleep(time.Hour)
		must(t, errors.Join(get("a"), get("b")))
		r.srv.SetRefuse(false)
		time.Sleep(46 * time.Second) // the longest wait before it is reached again is 45 s
		must(t, errors.Join(get("a"), get("c")))
		same(t, "kept", keptNames(r.c), "a c")
		time.Sleep(2*time.Minute + time.Second)
		same(t, "kept", keptNames(r.c), "")
	}, func(c *client.Config) { c.GetMaxNames, c.GetIdle = 2, 30*time.Second })
}

// A stale value that the server is silent about is idle like any other: it can be had again.
// spec: ONDEMAND-4 U-6
func TestGetStaleThatServerIsSilentAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, dir := testutil.NewServer(), t.TempDir()
		run(t, srv, dir, func(r *rig) {
			r.watchType(eds.Type, "a")
			r.send(r.accept(), testutil.SotW(eds.Type.TypeURL(), "1", "n1", assignment("a")))
			synctest.Wait()
		})
		run(t, srv, dir, func(r *rig) {
			for range 2 {
				time.AfterFunc(2*time.Second, func() {
					r.send(r.accept(), testutil.SotW(eds.Type.TypeURL(), "1", "n1")) // in partial state that says nothing of it
				})
				if ev, err := r.c.Get(t.Context(), eds.Type, "a"); err != nil || !ev.Stale {
					t.Errorf("Get: %v, %v", ev, err)
				}
				same(t, "kept", keptNames(r.c), "a")
				time.Sleep(time.Minute)
				same(t, "kept", keptNames(r.c), "")
			}
		}, func(c *client.Config) { c.GetIdle = 30 * time.Second })
	})
}

// A name goes with its last use if it is to, and there may be any number of names.
// spec: U-6
func TestGetBounds(t *testing.T) {
	if testing.Short() {
		t.Skip("long: ten thousand names")
	}
	answering(t, func(t *testing.T, r *rig) {
		_, err := r.c.Get(context.Background(), cds.Type, "a")
		must(t, err)
		time.Sleep(10 * time.Millisecond)
		same(t, "kept", keptNames(r.c), "")
		var waiting sync.WaitGroup
		ctx, cancel := context.WithCancel(context.Background())
		for i := range 10_100 {
			waiting.Go(func() {
				if _, err := r.c.Get(ctx, cds.Type, fmt.Sprint("no", i)); !errors.Is(err, context.Canceled) {
					t.Errorf("a name without an answer: %v", err)
				}
			})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(r.c.Dump()); n != 10_100 {
			t.Errorf("%d names are kept", n)
		}
		cancel()
		waiting.Wait()
	}, func(c *client.Config) { c.GetMaxNames, c.GetIdle = -1, -1 })
}

func keptNames(c *client.Client) string {
	var names []string
	for _, s := range c.Dump() {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// A client that closes ends those who wait.
func TestGetWhileClosing(t *testing.T) {
	answering(t, func(t *testing.T, r *rig) {
		time.AfterFunc(time.Second, func() { r.c.Close() })
		if _, err := r.c.Get(context.Background(), cds.Type, "no"); err != client.ErrClosed {
			t.Errorf("Get while the client closes: %v", err)
		}
	})
}

// What is held already is told with the features of its server's entry, as a watch tells it.
func TestGetTellsFeatures(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watch("a")
		st := r.accept()
		r.request(st, "cds [a]")
		r.clusters(st, "1", "n1", "a")
		synctest.Wait()
		ev, err := r.c.Get(t.Context(), cds.Type, "a")
		must(t, err)
		if want := (bootstrap.Features{TrustedXDSServer: true}); ev.Features != want || rec.last().Features != want {
			t.Errorf("Get tells %+v, the watch %+v, want %+v", ev.Features, rec.last().Features, want)
		}
	}, func(c *client.Config) { c.Bootstrap.Servers[0].Features.TrustedXDSServer = true })
}

// A name whose server answers on its type's own stream makes room, though another type's stream does not.
// spec: ONDEMAND-4
func TestGetLimitByType(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		get := func(kind resource.AnyType, name string) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := r.c.Get(ctx, kind, name)
			return err
		}
		got := make(chan error)
		go func() { got <- get(cds.Type, "c") }()
		st := r.accept()
		r.clusters(st, "1", "n1", "c")
		must(t, <-got)
		go func() { got <- get(eds.Type, "e") }()
		r.send(r.accept(), testutil.SotW(eds.Type.TypeURL(), "1", "n1", assignment("e")))
		must(t, <-got)
		st.End(nil)
		r.accept() // it has not answered yet
		if err := get(eds.Type, "f"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one more name: %v", err)
		}
	}, func(c *client.Config) { c.Streams, c.GetMaxNames, c.GetIdle = client.StreamsPerType, 2, time.Hour })
}

// A lookup in vain says of what, at which server and for which node, and what is wrong on the way there.
// spec: U-4
func TestGetInVain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		get := func(name string) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := r.c.Get(ctx, cds.Type, name)
				return err
			}
		}
		err := within(time.Second, get("a"))
		notReady(t, err, 1, "a REQUESTED")
		for _, part := range []string{clusterName + ` "a"`, r.srv.Target(), r.c.Bootstrap().Node.GetId()} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in %v", part, err)
			}
		}
		r.accept()
		r.srv.SetRefuse(true)
		r.srv.DropConnections()
		notReady(t, within(5*time.Second, get("b")), 1, "b REQUESTED connection")
	})
}

// A value is kept while the server of the place that it is redirected to is away, though that of its name is there.
// Get of what is held counts among the names that another authority asks for no longer than it takes.
// spec: U-6 REDIR-2 H-4
func TestGetWhileTargetUnreachable(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, name := range []string{"x", "z"} {
			w.a.put(at("a", name), redirect(at("b", name)), "r")
			w.b.put(at("b", name), cluster(name, "1"), "1")
		}
		get := func(name string) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := w.c.Get(ctx, cds.Type, name)
			return err
		}
		watch, rec := w.watch(at("a", "x"))
		w.since(rec, "updated a/x 1 via b/x")
		must(t, get(at("a", "x")))
		watch.Stop()
		must(t, get(at("a", "z")))
		if err := get(at("b", "none")); !errors.Is(err, client.ErrDoesNotExist) || strings.Contains(err.Error(), "response") {
			t.Errorf("of what the server says not to have: %v", err)
		}
		w.b.down()
		time.Sleep(time.Hour)
		must(t, get(at("a", "z")))
	}, func(c *client.Config) { c.MaxForeignNames, c.GetIdle = 1, 30*time.Second })
}

// What the lazy type has accepted and the plain type refuses is an error of Get, whoever has it held.
// spec: U-19
func TestGetRefusedByPlain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		const noName = "\x42\x00" // a health check without its required fields
		lazy := resource.LazyOf(cds.Type)
		r.watchType(lazy, "a")
		go func() { _, _ = r.c.Get(t.Context(), lazy, "b") }()
		m := &discoveryv3.DiscoveryResponse{TypeUrl: cds.Type.TypeURL(), VersionInfo: "7", Nonce: "n"}
		for _, name := range []string{"a", "b"} {
			m.Resources = append(m.Resources, &anypb.Any{TypeUrl: cds.Type.TypeURL(), Value: []byte("\n\x01" + name + noName)})
		}
		r.send(r.accept(), m)
		synctest.Wait()
		for _, name := range []string{"a", "b"} {
			_, err := r.c.Get(t.Context(), cds.Type, name)
			if re, _ := errors.AsType[*client.ResourceError](err); re == nil || re.Kind != client.ErrorRejected || re.Version != "7" || !strings.Contains(err.Error(), "rejected: ") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
