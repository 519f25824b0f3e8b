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
	"unicode/utf8"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// within calls a function with a context that ends.
func within(d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return f(ctx)
}

// notReady checks what is lacking, a line each, and that the context's error is wrapped.
func notReady(t *testing.T, err error, count int, want ...string) *client.NotReadyError {
	t.Helper()
	e, ok := errors.AsType[*client.NotReadyError](err)
	if !ok || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("it is %v, want a NotReadyError", err)
	}
	var got []string
	for _, l := range e.Lacking {
		s := fmt.Sprintf("%s %s", l.Name, l.Status)
		if re, ok := errors.AsType[*client.ResourceError](l.Err); ok {
			s += " " + string(re.Kind)
		}
		if none := l.Status == "DOES_NOT_EXIST"; none != errors.Is(l.Err, client.ErrDoesNotExist) {
			t.Errorf("%s has the error %v", l.Name, l.Err)
		}
		if l.Server == "" || l.Type != cds.Type.TypeURL() {
			t.Errorf("%s is of type %q and server %q", l.Name, l.Type, l.Server)
		}
		got = append(got, s)
	}
	same(t, "lacking", got, want)
	if e.Count != count {
		t.Errorf("%d are lacking, want %d", e.Count, count)
	}
	return e
}

// Ready says what it waited for in vain, of watches, collections and sets, and why.
// spec: U-4
func TestReadySaysWhatIsLacking(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		// The wildcard comes first: it begins with a stream, and one that had begun with a
		// name would be replaced (section 0).
		_, err := r.c.WatchAll(ctx, cds.Type, "*", func(client.Batch[any]) {})
		must(t, err)
		r.watch("b")
		r.watch("a")
		set, err := r.c.NewSet(ctx, cds.Type, func(client.Batch[any]) {})
		must(t, err)
		must(t, set.Add("c", "d"))
		err = within(time.Second, r.c.Ready)
		e := notReady(t, err, 5, "* REQUESTED", "a REQUESTED", "b REQUESTED", "c REQUESTED", "d REQUESTED")
		st := r.accept()
		r.clusters(st, "1", "n1", "a", "b", "c", "d")
		must(t, within(time.Second, r.c.Ready))
		for _, part := range []string{"deadline exceeded", "waiting for 5", `for node "node-1"`, `envoy.config.cluster.v3.Cluster "a"`, r.srv.Target(), "REQUESTED"} {
			if !strings.Contains(e.Error(), part) {
				t.Errorf("%q is not in %v", part, e)
			}
		}
	})
}

// Where the server cannot be reached the error says so; however much is lacking it is short.
// spec: U-4
func TestReadyWithoutServer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.srv.SetRefuse(true)
		names := manyNames(5000)
		for _, name := range slices.Backward(names) {
			r.watch(name)
		}
		err := within(5*time.Second, r.c.Ready)
		e, _ := errors.AsType[*client.NotReadyError](err)
		if e == nil || e.Count != 5000 || len(e.Lacking) != client.MaxLacking {
			t.Fatalf("it is %v", err)
		}
		for i, l := range e.Lacking {
			re, _ := errors.AsType[*client.ResourceError](l.Err)
			if l.Name != names[i] || re == nil || re.Kind != client.ErrorConnection {
				t.Errorf("%d: %v", i, l)
			}
		}
		if re, ok := errors.AsType[*client.ResourceError](err); !ok || re.Name != names[0] {
			t.Errorf("the error wraps %v", re)
		}
		text := err.Error()
		if len(text) > 5000 || !strings.Contains(text, "and 4992 more") || !strings.Contains(text, "cannot be reached") {
			t.Errorf("the text: %s", text)
		}
	})
}

// Values are waited for where that is wanted; what is absent or refused is named.
// spec: U-4
func TestReadyWithValues(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		r.watch("a")
		r.watch("bad")
		w, _ := r.watch("no")
		set, err := r.c.NewSet(ctx, cds.Type, func(client.Batch[any]) {})
		must(t, err)
		must(t, set.Add("a", "none"))
		st := r.accept()
		r.latest(st, "cds [a bad no none]")
		bad := cluster("bad", "")
		bad.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: 99}
		r.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("a", ""), bad))
		synctest.Wait()
		must(t, r.c.Ready(ctx))
		must(t, w.Ready(ctx))
		must(t, set.Ready(ctx))
		e := notReady(t, within(time.Second, r.c.ReadyWithValues), 3,
			"bad NACKED rejected", "no DOES_NOT_EXIST", "none DOES_NOT_EXIST")
		if !strings.Contains(e.Error(), "NACKED") || !strings.Contains(e.Error(), "DOES_NOT_EXIST") {
			t.Errorf("the text: %v", e)
		}
		notReady(t, within(time.Second, w.ReadyWithValues), 1, "no DOES_NOT_EXIST")
		notReady(t, within(time.Second, set.ReadyWithValues), 1, "none DOES_NOT_EXIST")
		time.AfterFunc(time.Second, func() {
			_ = st.Send(testutil.SotW(cds.Type.TypeURL(), "2", "n2", cluster("a", ""), cluster("bad", ""), cluster("no", "")))
		})
		must(t, w.ReadyWithValues(ctx))
		set.Remove("none")
		must(t, set.ReadyWithValues(ctx))
		must(t, r.c.ReadyWithValues(ctx))
		r.clusters(st, "3", "n3", "a", "bad")
		notReady(t, within(time.Second, r.c.ReadyWithValues), 1, "no DOES_NOT_EXIST")
		w.Stop()
		must(t, r.c.ReadyWithValues(ctx))
		if err := w.ReadyWithValues(ctx); err != client.ErrStopped {
			t.Errorf("of a watch that was stopped: %v", err)
		}
	})
}

// A watch waits for itself and for nobody else, and for its handler.
// spec: U-4
func TestWatchReady(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var gate gate
		gate.shut()
		slow, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { gate.pass(nil) })
		must(t, err)
		other, _ := r.watch("b")
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		notReady(t, within(time.Second, slow.Ready), 1, "a ACKED")
		notReady(t, within(time.Second, other.Ready), 1, "b REQUESTED")
		gate.open()
		must(t, within(time.Second, slow.Ready))
		notReady(t, within(time.Second, other.Ready), 1, "b REQUESTED")
		time.AfterFunc(time.Second, other.Stop)
		if err := other.Ready(context.Background()); err != client.ErrStopped {
			t.Errorf("of a watch that is stopped meanwhile: %v", err)
		}
		last, _ := r.watch("c")
		time.AfterFunc(time.Second, func() { r.c.Close() })
		if err := last.Ready(context.Background()); err != client.ErrClosed {
			t.Errorf("of a client that is closed meanwhile: %v", err)
		}
	})
}

// An empty collection is a value; one that does not exist is none.
// spec: U-4
func TestReadyCollections(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		w, err := r.c.WatchAll(context.Background(), cds.Type, "*", func(client.Batch[any]) {})
		must(t, err)
		st := r.accept()
		must(t, within(time.Minute, w.Ready))
		notReady(t, within(time.Second, w.ReadyWithValues), 1, "* DOES_NOT_EXIST")
		r.clusters(st, "1", "n1")
		must(t, w.ReadyWithValues(context.Background()))
		must(t, r.c.ReadyWithValues(context.Background()))
	})
}

// What a list collection lacks has the name that was asked for.
// spec: U-4
func TestReadyOfList(t *testing.T) {
	withKnown := func(c *client.Config) { c.Bootstrap.Authorities = map[string]bootstrap.Authority{"known": {}} }
	inBubble(t, func(t *testing.T, r *rig) {
		name := "xdstp://known/" + clusterName + "Collection/a"
		w, err := r.c.WatchAll(context.Background(), cds.Type, name, func(client.Batch[any]) {})
		must(t, err)
		entry, _ := r.watch(name + "#entry=b")
		notReady(t, within(time.Second, r.c.Ready), 2, name+" REQUESTED", name+"#entry=b REQUESTED")
		notReady(t, within(time.Second, w.Ready), 1, name+" REQUESTED")
		notReady(t, within(time.Second, entry.Ready), 1, name+"#entry=b REQUESTED")
	}, withKnown)
}

// The cause of a context's end is told beside its error.
// spec: U-4
func TestContextCause(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		w, _ := r.watch("a")
		why := errors.New("the program has to go")
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(why)
		for _, err := range []error{r.c.Ready(ctx), r.c.ReadyWithValues(ctx), w.Ready(ctx)} {
			if !errors.Is(err, why) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `"a"`) {
				t.Errorf("it is %v", err)
			}
		}
		_, beginning := r.c.Watch(ctx, cds.Type, "b", func(client.Event[any]) {})
		ctx, cancel = context.WithCancelCause(context.Background())
		watching, err := r.c.Watch(ctx, cds.Type, "b", func(client.Event[any]) {})
		must(t, err)
		time.AfterFunc(time.Second, func() { cancel(why) })
		_, getting := r.c.Get(ctx, cds.Type, "c")
		<-watching.Done()
		for _, err := range []error{beginning, watching.Err(), getting} {
			if !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
				t.Errorf("it is %v", err)
			}
		}
	})
}

// Ready also waits for the watches that a handler begins meanwhile.
// spec: U-4
func TestReadyOfChain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { r.watch("b") })
		must(t, err)
		st := r.accept()
		time.AfterFunc(time.Second, func() { r.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("a", ""))) })
		notReady(t, within(2*time.Second, r.c.Ready), 1, "b REQUESTED")
	})
}

// What is lacking of a name that leads elsewhere is the place that has no answer, or else no value.
// spec: U-4 REDIR-2
func TestReadyLeadsToWhatIsLacking(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lacking := func(err error, locator string, status client.Status) {
			t.Helper()
			e, _ := errors.AsType[*client.NotReadyError](err)
			if e == nil || len(e.Lacking) != 1 || e.Lacking[0].Locator != locator || e.Lacking[0].Status != status {
				t.Errorf("it is %+v, want %s %s", err, locator, status)
			}
		}
		w.a.put(at("a", "x"), redirect(at("b", "hop")), "r1")
		w.b.put(at("b", "hop"), redirect(at("c", "none")), "r1")
		absent, _ := w.watch(at("a", "x"))
		lacking(within(time.Second, absent.ReadyWithValues), at("c", "none"), "DOES_NOT_EXIST")
		w.c2.silent[at("c", "late")] = true
		w.a.put(dir("a", "list"), listing(member(at("b", "none")), member(at("c", "late"))), "1")
		list, _ := w.all(dir("a", "list"))
		lacking(within(time.Second, list.Ready), at("c", "late"), "REQUESTED")
		entry, _ := w.watch(dir("a", "list") + "#entry=none")
		lacking(within(time.Second, entry.ReadyWithValues), "", "ACKED")
		w.b.down()
		instead, _ := w.watch(withAlt(at("b", "z"), at("c", "late")))
		lacking(within(5*time.Second, instead.Ready), "", "REQUESTED")
	})
}

// The text says where a name leads, is bounded, and wraps no nil.
// spec: U-4
func TestNotReadyText(t *testing.T) {
	e := &client.NotReadyError{Err: context.Canceled, NodeID: "n", Count: 2, Lacking: []client.Lacking{
		{Type: cds.Type.TypeURL(), Name: "a", Server: "s", Status: "REQUESTED"},
		{Type: cds.Type.TypeURL(), Name: "b", Locator: "l", Server: "s", Status: "NACKED"},
	}}
	same(t, "text", e.Error(), `xds: not ready: context canceled; waiting for 2: `+clusterName+` "a" of server "s" for node "n" (REQUESTED); `+
		clusterName+` "b", which leads to `+clusterName+` "l" of server "s" for node "n" (NACKED)`)
	if slices.Contains(e.Unwrap(), nil) {
		t.Error("it wraps nil")
	}
	e.Lacking[0].Name = strings.Repeat("é", 1000)
	if text := e.Error(); len(text) > 1000 || !utf8.ValidString(text) {
		t.Errorf("a long name: %q", text)
	}
}
