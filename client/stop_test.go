package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// lookedAt is a context that calls a function when its error is looked at, as it is before
// each call of a handler.
type lookedAt struct {
	context.Context
	then atomic.Pointer[func()]
}

func (c *lookedAt) Err() error {
	if then := c.then.Swap(nil); then != nil {
		done := make(chan struct{})
		go func() {
			defer close(done)
			(*then)()
		}()
		<-done
	}
	return c.Context.Err()
}

// A watch that is stopped at the very last moment before a call is not called.
// spec: WATCH-2 U-5
func TestStopBeforeCall(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctxs := []*lookedAt{}
		ctx := func() *lookedAt {
			c := &lookedAt{Context: context.Background()}
			ctx, cancel := context.WithCancel(c.Context)
			t.Cleanup(cancel)
			c.Context = ctx
			ctxs = append(ctxs, c)
			return c
		}
		var told []string
		hear := func(what string) func(client.Batch[any]) {
			return func(b client.Batch[any]) {
				for _, ev := range b.Events {
					told = append(told, what+" of "+ev.Name)
				}
			}
		}
		// The wildcard comes first, since one that begins after names begins a new stream.
		all, err := r.c.WatchAll(ctx(), cds.Type, "*", hear("collection"))
		must(t, err)
		w, err := r.c.Watch(ctx(), cds.Type, "a", func(client.Event[any]) { told = append(told, "watch") })
		must(t, err)
		set, err := r.c.NewSet(ctx(), cds.Type, hear("set"))
		must(t, err)
		must(t, set.Add("a"))
		less, err := r.c.NewSet(ctx(), cds.Type, hear("smaller set"))
		must(t, err)
		must(t, less.Add("a", "b"))
		st := r.accept()
		for i, end := range []func(){all.Stop, w.Stop, set.Stop, func() { less.Remove("a") }} {
			ctxs[i].then.Store(&end)
		}
		r.clusters(st, "1", "n1", "a", "b")
		time.Sleep(time.Second)
		synctest.Wait()
		same(t, "told", told, []string{"smaller set of b"})
		<-w.Done()
		<-all.Done()
		<-set.Done()
	})
}

// A handler may stop its own watch and others, and wait for the end of others.
// spec: WATCH-2 U-5
func TestStopInsideHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		var own, first, second *client.Watch
		var set *client.Set
		var calls []string
		call := func(s string) func(client.Event[any]) { return func(client.Event[any]) { calls = append(calls, s) } }
		// The wildcard comes first, since one that begins after names begins a new stream.
		all, err := r.c.WatchAll(ctx, cds.Type, "*", func(client.Batch[any]) { calls = append(calls, "all") })
		must(t, err)
		first, err = r.c.Watch(ctx, cds.Type, "a", call("first"))
		must(t, err)
		start := time.Now()
		own, err = r.c.Watch(ctx, cds.Type, "a", func(client.Event[any]) {
			calls = append(calls, "own")
			for _, w := range []interface{ Stop() }{first, second, all, set, own} {
				w.Stop()
			}
			select {
			case <-own.Done():
				t.Error("Done is closed inside the handler")
			default:
			}
		})
		must(t, err)
		second, err = r.c.Watch(ctx, cds.Type, "a", call("second"))
		must(t, err)
		set, err = r.c.NewSet(ctx, cds.Type, func(client.Batch[any]) { calls = append(calls, "set") })
		must(t, err)
		must(t, set.Add("a"))
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		for _, w := range []interface{ Done() <-chan struct{} }{first, second, all, set, own} {
			<-w.Done()
		}
		same(t, "calls", calls, []string{"first", "own"})
		if took := time.Since(start); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// No call of a handler begins after Stop or Remove has returned, in thousands of tries under
// load.
// spec: WATCH-2 U-5
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	tries := 6000
	if testing.Short() {
		tries = 200
	}
	srv := testutil.NewServer()
	boot, err := bootstrap.Server(srv.Target())
	must(t, err)
	c, err := client.New(client.Config{Bootstrap: boot, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()}})
	must(t, err)
	defer srv.Close()
	defer c.Close()
	names := manyNames(64)
	_, err = c.WatchAll(t.Context(), cds.Type, "*", func(client.Batch[any]) {})
	must(t, err)
	over := make(chan struct{})
	var flood sync.WaitGroup
	flood.Go(func() {
		st, err := srv.Accept(t.Context())
		for i := 0; err == nil; i++ {
			select {
			case <-over:
				return
			default:
			}
			var ms []proto.Message
			for _, name := range names {
				ms = append(ms, cluster(name, fmt.Sprint(i)))
			}
			err = st.Send(testutil.SotW(cds.Type.TypeURL(), fmt.Sprint(i), fmt.Sprint("n", i), ms...))
		}
	})
	var late, calls atomic.Int64
	var work sync.WaitGroup
	left := atomic.Int64{}
	left.Store(int64(tries))
	for range 4 * runtime.GOMAXPROCS(0) {
		work.Go(func() {
			for left.Add(-1) >= 0 {
				stopOnce(t, c, names, &calls, &late)
			}
		})
	}
	work.Wait()
	close(over)
	flood.Wait()
	if n := late.Load(); n > 0 || calls.Load() == 0 {
		t.Errorf("%d of %d calls began after the stop", n, calls.Load())
	}
}

// stopOnce begins a watch or a set, and ends it some time after it was called.
func stopOnce(t *testing.T, c *client.Client, names []string, calls, late *atomic.Int64) {
	var stopped atomic.Bool
	called := make(chan struct{}, 1)
	begin := func(about bool) { // with what was so when the call began
		if stopped.Load() && about {
			late.Add(1)
		}
		calls.Add(1)
		select {
		case called <- struct{}{}:
		default:
		}
	}
	end := func(stop func()) {
		<-called
		time.Sleep(time.Duration(rand.IntN(int(time.Millisecond))))
		stop()
		stopped.Store(true)
	}
	name := names[rand.IntN(len(names))]
	switch rand.IntN(3) {
	case 0:
		w, err := c.Watch(context.Background(), cds.Type, name, func(client.Event[any]) { begin(true) })
		must(t, err)
		end(w.Stop)
		<-w.Done()
	case 1:
		w, err := c.WatchAll(context.Background(), cds.Type, "*", func(client.Batch[any]) { begin(true) })
		must(t, err)
		end(w.Stop)
		<-w.Done()
	case 2:
		set, err := c.NewSet(context.Background(), cds.Type, func(b client.Batch[any]) {
			was := stopped.Load()
			begin(was && slices.ContainsFunc(b.Events, func(ev client.Event[any]) bool { return ev.Name == name }))
		})
		must(t, err)
		must(t, set.Add(names...))
		end(func() { set.Remove(name) })
		time.Sleep(time.Millisecond)
		set.Stop()
		<-set.Done()
	}
}

// A handler that ends its goroutine ends its watch, and no other; what comes after is told
// from the very next event on.
// spec: H-12
func TestHandlerExits(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		// The wildcard comes first, since one that begins after names begins a new stream.
		all, err := r.c.WatchAll(ctx, cds.Type, "*", func(client.Batch[any]) { runtime.Goexit() })
		must(t, err)
		bad, err := r.c.Watch(ctx, cds.Type, "a", func(client.Event[any]) { runtime.Goexit() })
		must(t, err)
		_, beside := r.watch("a")
		_, other := r.watch("b")
		bs := newBatches(t)
		_, err = r.c.WatchAll(ctx, cds.Type, "*", bs.hear)
		must(t, err)
		set, err := r.c.NewSet(ctx, cds.Type, func(client.Batch[any]) { runtime.Goexit() })
		must(t, err)
		must(t, set.Add("a", "b"))
		st := r.accept()
		time.Sleep(time.Second)
		r.clusters(st, "1", "n1", "a", "b")
		r.clusters(st, "2", "n2", "a", "b")
		beside.heard(t, "updated a 1", "updated a 2")
		other.heard(t, "updated b 1", "updated b 2")
		bs.heard(t, []string{"updated a 1", "updated b 1", "synced *", "."}, []string{"updated a 2", "updated b 2", "."})
		for _, w := range []interface {
			Done() <-chan struct{}
			Err() error
		}{bad, all, set} {
			<-w.Done()
			if !errors.Is(w.Err(), client.ErrHandlerExited) {
				t.Errorf("the watch ended with %v", w.Err())
			}
		}
		must(t, r.c.Ready(ctx))
		r.log.holds(t, "a handler ended its goroutine")
		r.log.holds(t, "name=a")
		r.c.Close()
		<-r.c.Done()
	})
}

// Get inside a handler still knows where it is when the dispatcher was replaced.
// spec: H-12
func TestInHandlerAfterExit(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { runtime.Goexit() })
		must(t, err)
		var got error
		_, err = r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { got = r.c.Ready(context.Background()) })
		must(t, err)
		r.watch("never")
		r.clusters(r.accept(), "1", "n1", "a")
		if !errors.Is(got, client.ErrInHandler) {
			t.Errorf("Ready inside a handler: %v", got)
		}
	})
}

// Hooks that end their goroutine stop nothing; a guard that does refuses.
// spec: H-12
func TestHooksExit(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watch("a")
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		rec.heard(t, "failed a rejected: the guard ended its goroutine (runtime.Goexit)")
		r.clusters(st, "2", "n2", "a")
		rec.heard(t, "failed a rejected: the guard ended its goroutine (runtime.Goexit)", "updated a 2")
		r.log.holds(t, "ended its goroutine (runtime.Goexit)")
	}, func(c *client.Config) {
		judged := 0
		c.Guards = map[string][]client.Guard{cds.Type.TypeURL(): {func(*client.Proposal) error {
			if judged++; judged == 1 {
				runtime.Goexit()
			}
			return nil
		}}}
		c.Trace = &client.Trace{Response: func(client.ResponseInfo) { runtime.Goexit() }}
	})
}

// Nil contexts are errors, nil options are nothing.
// spec: H-12
func TestNilContexts(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var none context.Context
		_, w1 := r.c.Watch(none, cds.Type, "a", func(client.Event[any]) {})
		_, w2 := r.c.WatchAll(none, cds.Type, "*", func(client.Batch[any]) {})
		_, w3 := r.c.NewSet(none, cds.Type, func(client.Batch[any]) {})
		_, get := r.c.Get(none, cds.Type, "a")
		for i, err := range []error{w1, w2, w3, get, r.c.Ready(none)} {
			if err != client.ErrNilContext {
				t.Errorf("%d: %v, want ErrNilContext", i, err)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, w1 = r.c.Watch(ctx, cds.Type, "a", func(client.Event[any]) {}, nil, client.ExplicitWildcard(), nil)
		_, w2 = r.c.WatchAll(ctx, cds.Type, "*", func(client.Batch[any]) {}, nil)
		_, w3 = r.c.NewSet(ctx, cds.Type, func(client.Batch[any]) {}, nil)
		must(t, errors.Join(w1, w2, w3))
		if _, err := r.c.Get(ctx, cds.Type, "a", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get with a nil option: %v", err)
		}
	})
}

// secretive is a value that must not be shown.
type secretive struct{ Content string }

// What a panic leaves has the stack, and shows no value.
// spec: U-8 H-3
func TestPanicWithoutLogger(t *testing.T) {
	for _, quiet := range []bool{true, false} {
		log := captureDefault(t)
		inBubble(t, func(t *testing.T, r *rig) {
			// First, so that it needs no new stream.
			_, err := r.c.WatchAll(context.Background(), cds.Type, "*", func(client.Batch[any]) { panic(&secretive{"MARKER"}) })
			must(t, err)
			w, err := r.c.Watch(context.Background(), cds.Type, "a", func(ev client.Event[any]) { panic(ev) })
			must(t, err)
			set, err := r.c.NewSet(context.Background(), cds.Type, func(client.Batch[any]) { panic("a text") })
			must(t, err)
			must(t, set.Add("a"))
			st := r.accept()
			r.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("a", "MARKER")))
			<-w.Done()
			<-set.Done()
			synctest.Wait()
			if !quiet {
				log = r.log
			}
			text := log.text()
			for _, part := range []string{"a handler panicked", "stop_test.go", "a text", "client.Event", "secretive", cds.Type.TypeURL(), "name=a"} {
				if !strings.Contains(text, part) {
					t.Errorf("%q is not in the log:\n%s", part, text)
				}
			}
			for _, text := range []string{text, fmt.Sprint(w.Err()), fmt.Sprint(set.Err())} {
				if strings.Contains(text, "MARKER") {
					t.Errorf("it shows a value: %s", text)
				}
			}
		}, func(c *client.Config) {
			if quiet {
				c.Logger = nil
			}
		})
	}
}

// The end of a context is the end of its watches: whoever saw the one finds the other.
func TestErrAfterContext(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			w, err := r.c.Watch(ctx, cds.Type, "a", func(client.Event[any]) {})
			must(t, err)
			set, err := r.c.NewSet(ctx, cds.Type, func(client.Batch[any]) {})
			must(t, err)
			must(t, errors.Join(w.Err(), set.Err()))
			cancel()
			if !errors.Is(w.Err(), context.Canceled) || !errors.Is(set.Err(), context.Canceled) {
				t.Fatalf("after the end of the context it is %v and %v", w.Err(), set.Err())
			}
			<-w.Done()
			<-set.Done()
		}
	})
}
