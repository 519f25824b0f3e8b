package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/testutil/script"
	"github.com/xdswatch/xdswatch/transport"
)

// Everything may be called inside a handler.
func TestHandlersAreFree(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		child, sets := &record{}, &record{}
		set, err := r.c.NewSet(ctx, eds.Type, func(b client.Batch[any]) {
			for _, ev := range b.Events {
				sets.hear(ev)
			}
		})
		must(t, err)
		var got client.Event[any]
		var waited, ready error
		var w *client.Watch
		w, err = r.c.Watch(ctx, cds.Type, "a", func(ev client.Event[any]) {
			if ev.Version == "2" {
				w.Stop()
				set.Remove("e")
				return
			}
			_, watchErr := r.c.Watch(ctx, cds.Type, "b", child.hear)
			must(t, errors.Join(watchErr, set.Add("e", "f")))
			got, _ = r.c.Get(ctx, cds.Type, "a")
			_, waited = r.c.Get(ctx, cds.Type, "never")
			ready = r.c.Ready(ctx)
			if len(r.c.Dump()) == 0 {
				t.Error("a dump inside a handler is empty")
			}
		})
		must(t, err)

		st := r.accept()
		r.request(st, "cds [a]")
		r.clusters(st, "1", "n1", "a")
		if got.Version != "1" || got.Name != "a" {
			t.Errorf("Get inside a handler gave %v, want what is held", got)
		}
		for _, err := range []error{waited, ready} {
			if !errors.Is(err, client.ErrInHandler) {
				t.Errorf("waiting inside a handler: %v, want ErrInHandler", err)
			}
		}
		r.clusters(st, "2", "n2", "a", "b")
		child.heard(t, "updated b 2")
		r.send(st, testutil.SotW(eds.Type.TypeURL(), "1", "n3", assignment("e"), assignment("f")))
		synctest.Wait()
		sets.heard(t, "updated f 1")
		if err := w.Err(); err != client.ErrStopped {
			t.Errorf("the watch that stopped itself ended with %v", err)
		}
		r.clusters(st, "3", "n4", "a", "b")
		child.heard(t, "updated b 2", "updated b 3")
	})
}

func TestCloseInsideHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var after error
		w, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) {
			r.c.Close()
			r.c.Close()
			_, after = r.c.Watch(context.Background(), cds.Type, "b", func(client.Event[any]) {})
		})
		must(t, err)
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		<-r.c.Done()
		if w.Err() != client.ErrClosed || after != client.ErrClosed {
			t.Errorf("the watch ended with %v, a new one with %v; want ErrClosed", w.Err(), after)
		}
	})
}

// A handler that panics ends its own watch, and no other.
func TestHandlerPanics(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		calls := 0
		all, err := r.c.WatchAll(context.Background(), cds.Type, "*", func(client.Batch[any]) { panic("nor do I") })
		must(t, err)
		bad, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) {
			calls++
			panic("I do not like it")
		})
		must(t, err)
		good, rec := r.watch("a")
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		r.clusters(st, "2", "n2", "a")
		rec.heard(t, "updated a 1", "updated a 2")
		for w, want := range map[*client.Watch]string{bad: "I do not like it", all: "nor do I"} {
			<-w.Done()
			var pe *client.PanicError
			if !errors.As(w.Err(), &pe) || pe.Value != want || !strings.Contains(string(pe.Stack), "watch_test.go") {
				t.Errorf("the watch ended with %v, want a PanicError of %q with its stack", w.Err(), want)
			}
			synctest.Wait()
			r.log.holds(t, want)
		}
		if calls != 1 || good.Err() != nil {
			t.Errorf("%d calls after a panic; the other watch: %v", calls, good.Err())
		}
	})
}

// spec: TYPE-7
func TestDecoderPanics(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		kind := script.Kinds()["cds"]
		_, bad := r.watchType(kind, "a")
		_, good := r.watchType(kind, "b")
		st := r.accept()
		r.latest(st, "cds [a b]")
		frame, err := script.Response(strings.Fields("cds 1 n1 a=panic b=1"), false)
		must(t, err)
		must(t, st.SendBytes(frame))
		bad.heard(t, "failed a rejected: the decoder panicked: a value of type string at script.decode")
		good.heard(t, "updated b 1")
		r.latest(st, "cds [a b] n1 error: resource index 0: a: the decoder panicked: a value of type string at script.decode")
	})
}

// No call begins after Stop has returned, whatever waits.
// spec: WATCH-2
func TestNoCallAfterStop(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		hold := make(chan struct{})
		all := &record{}
		wAll, err := r.c.WatchAll(context.Background(), cds.Type, "*", func(b client.Batch[any]) {
			for _, ev := range b.Events {
				all.hear(ev)
			}
		})
		must(t, err)
		_, err = r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { <-hold })
		must(t, err)
		w, rec := r.watch("a")
		r.clusters(r.accept(), "1", "n1", "a")
		w.Stop()
		w.Stop()
		wAll.Stop()
		close(hold)
		rec.heard(t)
		all.heard(t)
		if w.Err() != client.ErrStopped {
			t.Errorf("the watch ended with %v", w.Err())
		}
	})
}

func TestContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancelCause(context.Background())
		rec := &record{}
		w, err := r.c.Watch(ctx, cds.Type, "a", rec.hear)
		must(t, err)
		set, err := r.c.NewSet(ctx, cds.Type, func(b client.Batch[any]) { rec.hear(b.Events[0]) })
		must(t, err)
		must(t, set.Add("b", "c"))
		r.watch("d")
		st := r.accept()
		r.latest(st, "cds [a b c d]")
		gone := errors.New("gone fishing")
		cancel(gone)
		<-w.Done()
		<-set.Done()
		for _, err := range []error{w.Err(), set.Err(), set.Add("x")} {
			if !errors.Is(err, gone) || !errors.Is(err, context.Canceled) {
				t.Errorf("the end, or adding after it, is %v; want the context's error and its cause", err)
			}
		}
		r.latest(st, "cds [d]")
		r.clusters(st, "1", "n1", "a", "b", "c", "d")
		rec.heard(t)
		if _, err := r.c.Watch(ctx, cds.Type, "a", rec.hear); !errors.Is(err, context.Canceled) {
			t.Errorf("a watch with a context that is over: %v", err)
		}
		if n := client.Live(r.c); n != 1 {
			t.Errorf("%d watches on the books, want 1", n)
		}
	})
}

// Close waits for what the client runs, Done for handlers too.
// spec: WATCH-2
func TestClose(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		hold := make(chan struct{})
		calls := 0
		w, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) {
			calls++
			<-hold
		})
		must(t, err)
		_, rec := r.watch("a")
		set, err := r.c.NewSet(context.Background(), eds.Type, func(client.Batch[any]) {})
		must(t, err)
		must(t, set.Add("e"))
		st := r.accept()
		r.clusters(st, "1", "n1", "a")

		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				r.c.Close()
				if w.Err() != client.ErrClosed || set.Err() != client.ErrClosed {
					t.Errorf("after Close watches ended with %v and %v", w.Err(), set.Err())
				}
			})
		}
		wg.Wait()
		<-st.Done()
		select {
		case <-r.c.Done():
			t.Error("Done is closed while a handler runs")
		default:
		}
		close(hold)
		<-r.c.Done()
		rec.heard(t)
		if calls != 1 {
			t.Errorf("%d calls, want 1", calls)
		}
		afterClose(t, r.c, set)
	})
}

func afterClose(t *testing.T, c *client.Client, set *client.Set) {
	t.Helper()
	ctx := context.Background()
	_, watch := c.Watch(ctx, cds.Type, "a", func(client.Event[any]) {})
	_, all := c.WatchAll(ctx, cds.Type, "*", func(client.Batch[any]) {})
	_, newSet := c.NewSet(ctx, cds.Type, func(client.Batch[any]) {})
	_, get := c.Get(ctx, cds.Type, "a")
	for _, err := range []error{watch, all, newSet, get, set.Add("x"), c.Ready(ctx)} {
		if err != client.ErrClosed {
			t.Errorf("after Close: %v, want ErrClosed", err)
		}
	}
	if d := c.Dump(); d != nil {
		t.Errorf("after Close the dump holds %v", d)
	}
	set.Remove("x")
	set.Stop()
	c.ResetBackoff()
}

func TestNilArguments(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		_, w1 := r.c.Watch(ctx, cds.Type, "a", nil)
		_, w2 := r.c.WatchAll(ctx, cds.Type, "*", nil)
		_, w3 := r.c.NewSet(ctx, cds.Type, nil)
		same(t, "nil handlers", []bool{w1 == client.ErrNilHandler, w2 == client.ErrNilHandler, w3 == client.ErrNilHandler}, []bool{true, true, true})
		var pointer *resource.Type[string]
		for _, none := range []resource.AnyType{nil, pointer} {
			_, w1 = r.c.Watch(ctx, none, "a", func(client.Event[any]) {})
			_, w2 = r.c.WatchAll(ctx, none, "*", func(client.Batch[any]) {})
			_, w3 = r.c.NewSet(ctx, none, func(client.Batch[any]) {})
			same(t, "nil types", []bool{w1 == client.ErrNilType, w2 == client.ErrNilType, w3 == client.ErrNilType}, []bool{true, true, true})
		}
		var none *client.Client
		_, w1 = none.Watch(ctx, cds.Type, "a", func(client.Event[any]) {})
		_, w2 = none.WatchAll(ctx, cds.Type, "*", func(client.Batch[any]) {})
		_, w3 = none.NewSet(ctx, cds.Type, func(client.Batch[any]) {})
		_, w4 := none.Get(ctx, cds.Type, "a")
		for _, err := range []error{w1, w2, w3, w4} {
			if err == nil || err.Error() != "xds: the client is nil" {
				t.Errorf("of a nil client: %v", err)
			}
		}
		synctest.Wait()
		if n := len(r.srv.Streams()); n != 0 {
			t.Errorf("%d streams for nothing", n)
		}
	})
}

// Every byte that a name may hold reaches the server as it is; the others are refused by
// Watch itself.
func TestNamesOfEveryByte(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		want := map[string]bool{}
		for b := range 256 {
			name := "a" + string([]byte{byte(b)}) + "z"
			_, err := r.c.Watch(context.Background(), cds.Type, name, func(client.Event[any]) {})
			if utf8.ValidString(name) {
				must(t, err)
				want[name] = true
				continue
			}
			var re *client.ResourceError
			if !errors.As(err, &re) || re.Kind != client.ErrorConfig || !errors.Is(err, authority.ErrNotUTF8) {
				t.Errorf("name %q: %v", name, err)
			}
		}
		st := r.accept()
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		all := st.Requests()
		got := map[string]bool{}
		for _, name := range all[len(all)-1].Names() {
			got[name] = true
		}
		same(t, "names on the wire", got, want)
	})
}

const clusterName = "envoy.config.cluster.v3.Cluster"

func TestTypeConflict(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		other := resource.Custom(cds.Type.TypeURL(), resource.Options{NameField: 1}, func(resource.Source, []byte) (int, error) { return 0, nil })
		r.watch("a")
		_, watch := r.c.Watch(context.Background(), other, "a", func(client.Event[any]) {})
		_, all := r.c.WatchAll(context.Background(), other, "*", func(client.Batch[any]) {})
		_, list := r.c.WatchAll(context.Background(), other, "list", func(client.Batch[any]) {}, client.ListByName())
		_, set := r.c.NewSet(context.Background(), other, func(client.Batch[any]) {})
		_, get := r.c.Get(context.Background(), other, "a")
		for i, err := range []error{watch, all, list, set, get} {
			if !errors.Is(err, client.ErrTypeConflict) || !strings.Contains(fmt.Sprint(err), clusterName) {
				t.Errorf("%d: %v, want ErrTypeConflict", i, err)
			}
		}
	})
}

// A type URL belongs to the first type that the program used with it, also if that watch failed: so
// each later call has the same result, whatever came between.
// spec: U-13 U-19
func TestTypeOfFailedWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		watch := func(kind resource.AnyType, name string) error {
			_, err := r.c.Watch(context.Background(), kind, name, func(client.Event[any]) {})
			return err
		}
		other := resource.With(cds.Type, func(*clusterv3.Cluster) error { return nil })
		if err := watch(other, "xdstp://unknown/"+clusterName+"/a"); err == nil {
			t.Fatal("a name without servers can be watched")
		}
		for _, kind := range []resource.AnyType{cds.Type, resource.LazyOf(cds.Type), cds.Type} {
			if err := watch(kind, "a"); !errors.Is(err, client.ErrTypeConflict) {
				t.Errorf("%T: %v, want ErrTypeConflict", kind, err)
			}
		}
		must(t, watch(other, "a"))
		must(t, watch(resource.LazyOf(other), "a"))
	})
}

// incomparable is a type that cannot be told from another.
type incomparable struct {
	resource.AnyType
	_ []int
}

func TestIncomparableType(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for i, kind := range []resource.AnyType{incomparable{AnyType: cds.Type}, struct{ resource.AnyType }{incomparable{AnyType: cds.Type}}} {
			_, watch := r.c.Watch(context.Background(), kind, "a", func(client.Event[any]) {})
			_, all := r.c.WatchAll(context.Background(), kind, "*", func(client.Batch[any]) {})
			_, set := r.c.NewSet(context.Background(), kind, func(client.Batch[any]) {})
			_, get := r.c.Get(context.Background(), kind, "a")
			for j, err := range []error{watch, all, set, get} {
				if want := fmt.Sprintf("xds: the resource type %T is not comparable", kind); err == nil || err.Error() != want {
					t.Errorf("%d, %d: %v, want %s", i, j, err, want)
				}
			}
		}
		r.watch("a")
	})
}

// A type without streams of its own cannot be watched at a server that has one each type.
func TestTypeWithoutMethod(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		kind := resource.Custom("type.googleapis.com/test.Foo", resource.Options{}, func(resource.Source, []byte) (int, error) { return 0, nil })
		_, err := r.c.Watch(context.Background(), kind, "a", func(client.Event[any]) {})
		var re *client.ResourceError
		if !errors.As(err, &re) || re.Kind != client.ErrorConfig || !strings.Contains(err.Error(), "no stream of its own") {
			t.Errorf("a type without a method: %v", err)
		}
		_, err = r.c.WatchAll(context.Background(), kind, "*", func(client.Batch[any]) {})
		if !errors.As(err, &re) || re.Kind != client.ErrorConfig {
			t.Errorf("a type without a method: %v", err)
		}
		conns := client.CountConns(r.c)
		own := client.FromSource(bootstrap.Source{Servers: []bootstrap.ManagementServer{{URI: "passthrough:///own", ChannelCreds: bootstrap.Insecure()}}})
		_, err = r.c.Watch(context.Background(), kind, "a", func(client.Event[any]) {}, own)
		if !errors.As(err, &re) || re.Kind != client.ErrorConfig {
			t.Errorf("a type without a method, at a source of the watch: %v", err)
		}
		if n := conns.Built.Load(); n != 0 { // as a new source would have it
			t.Errorf("connections for %d servers were built for a watch that failed", n)
		}
	}, func(c *client.Config) { c.Streams = client.StreamsPerType })
}

// Two spellings of an xdstp name are one resource.
// spec: WATCH-5 XDSTP-4
func TestSpellings(t *testing.T) {
	withKnown := func(c *client.Config) { c.Bootstrap.Authorities = map[string]bootstrap.Authority{"au": {}} }
	inBubble(t, func(t *testing.T, r *rig) {
		canonical := "xdstp://au/" + clusterName + "/a?x=1&y=2"
		_, one := r.watch(canonical)
		_, two := r.watch("xdstp://au/" + clusterName + "/%61?y=2&x=1")
		st := r.accept()
		r.request(st, "cds ["+canonical+"]")
		r.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", proto.Message(cluster(canonical, ""))))
		one.heard(t, "updated "+canonical+" 1")
		two.heard(t, "updated "+canonical+" 1")
		if got := one.last().Authority; got != "au" {
			t.Errorf("the event's authority is %q", got)
		}
	}, withKnown)
}

// An authority may be named as metrics call the names that have none.
func TestAuthorityNamedLikeTheLabelOfNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top, other := testutil.NewServer(testutil.Named("top")), testutil.NewServer(testutil.Named("other"))
		defer top.Close()
		defer other.Close()
		boot, err := bootstrap.Server(top.Target())
		must(t, err)
		second := boot.Servers[0]
		second.URI = other.Target()
		boot.Authorities = map[string]bootstrap.Authority{"#old": {Servers: []bootstrap.ManagementServer{second}}}
		c, err := client.New(client.Config{
			Bootstrap: boot, GRPC: transport.GRPCConfig{DialOptions: []grpc.DialOption{testutil.InMemory(top, other)}},
		})
		must(t, err)
		defer c.Close()
		_, err = c.Watch(t.Context(), cds.Type, "a", func(client.Event[any]) {})
		must(t, err)
		_, err = c.Watch(t.Context(), cds.Type, "xdstp://%23old/envoy.config.cluster.v3.Cluster/b", func(client.Event[any]) {})
		must(t, err)
		synctest.Wait()
		if len(top.Requests()) != 1 || len(other.Requests()) != 1 {
			t.Errorf("requests: %v at the top-level server, %v at the authority's", top.Requests(), other.Requests())
		}
	})
}

// A handler of one client does not wait for another client either; a goroutine that it starts
// does.
func TestHandlersOfOtherClients(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		other := newRig(t, testutil.NewServer())
		var inside, outside error
		_, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) {
			_, inside = other.c.Get(context.Background(), cds.Type, "b")
			go func() { _, outside = other.c.Get(context.Background(), cds.Type, "b") }()
		})
		must(t, err)
		r.clusters(r.accept(), "1", "n1", "a")
		other.clusters(other.accept(), "1", "n1", "b")
		if !errors.Is(inside, client.ErrInHandler) || outside != nil {
			t.Errorf("inside a handler %v, and in a goroutine of its own %v", inside, outside)
		}
	})
}
