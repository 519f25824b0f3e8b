package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// twoServers is a rig whose authority "other" has a server of its own.
func twoServers(t *testing.T, test func(t *testing.T, r *rig, other *testutil.Server), changes ...func(*client.Config)) {
	synctest.Test(t, func(t *testing.T) {
		srv, other := testutil.NewServer(), testutil.NewServer(testutil.Named("other"))
		t.Cleanup(other.Close)
		r := newRig(t, srv, func(c *client.Config) {
			c.GRPC = transport.GRPCConfig{DialOptions: append(c.GRPC.DialOptions, testutil.InMemory(srv, other))}
			c.Bootstrap.Authorities = map[string]bootstrap.Authority{
				"other": {Servers: []bootstrap.ManagementServer{{URI: other.Target(), ChannelCreds: bootstrap.Insecure()}}},
				"same":  {},
			}
			for _, change := range changes {
				change(c)
			}
		})
		test(t, r, other)
	})
}

const otherName = "xdstp://other/" + clusterName + "/o"

// A handler that blocks delays its authority, and its stream after one more response;
// nothing else, and nothing grows.
// spec: FC-1 ACK-1
func TestBlockedHandler(t *testing.T) {
	twoServers(t, func(t *testing.T, r *rig, other *testutil.Server) {
		hold := make(chan struct{})
		var calls atomic.Int32
		_, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) {
			calls.Add(1)
			<-hold
		})
		must(t, err)
		st := r.accept()
		_, rec := r.watch(otherName)
		r.request(st, "cds [a]")

		var sent atomic.Int32
		go func() { // blocks when the client does not read
			for i := range 1000 {
				v := fmt.Sprint(i + 1)
				m := testutil.SotW(cds.Type.TypeURL(), v, "n"+v, cluster("a", strings.Repeat(v, 4096)))
				if st.Send(m) != nil {
					return
				}
				sent.Add(1)
			}
		}()
		r.request(st, "cds [a] v1 n1")
		r.quiet(st, 2)
		ost, err := other.Accept(t.Context())
		must(t, err)
		r.request(ost, "cds ["+otherName+"]")
		r.send(ost, testutil.SotW(cds.Type.TypeURL(), "1", "m1", cluster(otherName, "1")))
		rec.heard(t, "updated "+otherName+" 1")
		r.request(ost, "cds ["+otherName+"] v1 m1")
		time.Sleep(time.Hour)
		r.quiet(st, 2)
		if n := sent.Load(); n > 200 {
			t.Errorf("%d large responses were taken while a handler blocked", n)
		}
		if calls.Load() != 1 {
			t.Errorf("%d calls while the first runs", calls.Load())
		}

		close(hold)
		r.request(st, "cds [a] v2 n2")
		synctest.Wait()
		if calls.Load() != 1000 || sent.Load() != 1000 {
			t.Errorf("after the release %d calls and %d responses, want 1000", calls.Load(), sent.Load())
		}
	})
}

// While a resource takes long to be decoded, those after it wait for it: they are decoded as far as some may wait.
// It wants several decoders, whose number is the process's, and so runs alone.
// spec: H-5
func TestDecodingWaitsForTheOldest(t *testing.T) {
	if testing.Short() {
		t.Skip("long: decodes more than decoders of many processors take at once")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	inBubble(t, func(t *testing.T, r *rig) {
		var decoded atomic.Int32
		slow := make(chan struct{})
		kind := resource.Custom(eds.Type.TypeURL(), resource.Options{NameField: 1}, func(_ resource.Source, b []byte) (int32, error) {
			if bytes.Contains(b, []byte("name-00000")) {
				<-slow
			}
			return decoded.Add(1), nil
		})
		var heard tallied
		_, err := r.c.WatchAll(context.Background(), kind, "*", heard.batch)
		must(t, err)
		st := r.accept()
		r.request(st, "eds []")
		const n = 60_000 // more than decoders of many processors take at once
		resources := manyAssignments(n)
		r.send(st, testutil.SotW(kind.TypeURL(), "1", "n1", resources...))
		synctest.Wait()
		if got := decoded.Load(); got > n/2 {
			t.Errorf("%d of %d values wait for the first", got, n)
		}
		close(slow)
		synctest.Wait()
		if got := decoded.Load(); got != n {
			t.Errorf("%d of %d values were decoded", got, n)
		}
	})
}

// manyAssignments have names from name-00000 on.
func manyAssignments(n int) []proto.Message {
	all := make([]proto.Message, n)
	for i := range all {
		all[i] = assignment(fmt.Sprintf("name-%05d", i))
	}
	return all
}

// While a handler blocks, a large response is decoded as far as some of it may wait, and not as a
// whole: values take several times what came. Other servers go on.
// spec: H-5
func TestDecodingWaitsForHandlers(t *testing.T) {
	twoServers(t, func(t *testing.T, r *rig, other *testutil.Server) {
		var decoded atomic.Int32
		kind := resource.Custom(eds.Type.TypeURL(), resource.Options{NameField: 1}, func(resource.Source, []byte) (int32, error) {
			return decoded.Add(1), nil
		})
		hold := make(chan struct{})
		var heard tallied
		_, err := r.c.WatchAll(context.Background(), kind, "*", func(b client.Batch[any]) {
			<-hold
			heard.batch(b)
		})
		must(t, err)
		st := r.accept()
		r.request(st, "eds []")
		const n = 60_000 // more than decoders of many processors take at once
		resources := manyAssignments(n)
		_, err = r.c.Watch(context.Background(), kind, "name-00000", func(client.Event[any]) { <-hold })
		must(t, err)
		r.send(st, testutil.SotW(kind.TypeURL(), "1", "n1", resources...))
		synctest.Wait()
		if got := decoded.Load(); got == 0 || got > n/2 {
			t.Errorf("%d of %d values were decoded while a handler blocks", got, n)
		}
		_, rec := r.watch(otherName)
		ost, err := other.Accept(t.Context())
		must(t, err)
		r.request(ost, "cds ["+otherName+"]")
		r.send(ost, testutil.SotW(cds.Type.TypeURL(), "1", "m1", cluster(otherName, "1")))
		rec.heard(t, "updated "+otherName+" 1")
		close(hold)
		r.request(st, "eds [] v1 n1")
		synctest.Wait()
		if got := heard[client.EventUpdated].Load(); got != n {
			t.Errorf("%d values, want %d", got, n)
		}
	})
}

// The second response waits for the handler, its ACK with it.
// spec: FC-1
func TestSecondResponseWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		hold := make(chan struct{})
		_, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { <-hold })
		must(t, err)
		_, rec := r.watchType(eds.Type, "e")
		st := r.accept()
		r.request(st, "cds [a]")
		r.request(st, "eds [e]")
		r.clusters(st, "1", "n1", "a")
		r.request(st, "cds [a] v1 n1")
		r.send(st, testutil.SotW(eds.Type.TypeURL(), "1", "n2", assignment("e")))
		r.quiet(st, 3)
		rec.heard(t)
		close(hold)
		rec.heard(t, "updated e 1")
		r.request(st, "eds [e] v1 n2")
	})
}

// The end of a stream is noticed while a handler blocks, and the timers of resources stand
// still: the silence is the program's own.
// spec: FC-1 DNE-2
func TestTimersStandStill(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		hold := make(chan struct{})
		_, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { <-hold })
		must(t, err)
		_, rec := r.watch("missing")
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		time.Sleep(time.Hour)
		close(hold)
		rec.heard(t)
		time.Sleep(15*time.Second - time.Millisecond)
		rec.heard(t)
		time.Sleep(2 * time.Millisecond)
		rec.heard(t, "does not exist missing timeout")
	})
}

// The end of a stream is noticed while a handler blocks. The next stream is asked at once,
// and read when the handler has returned.
// spec: FC-1
func TestStreamEndsUnderBlockedHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		hold := make(chan struct{})
		_, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { <-hold })
		must(t, err)
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		st.End(nil)
		again := r.accept()
		r.request(again, "cds [a]")
		r.clusters(again, "2", "n1", "a")
		time.Sleep(time.Hour)
		r.quiet(again, 1)
		close(hold)
		r.request(again, "cds [a] v2 n1")
	})
}

// Events of one authority come in the order of the responses, across types.
// spec: MBB-1
func TestOrderAcrossTypes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		rec := &record{}
		for _, w := range []struct {
			kind interface{ TypeURL() string }
			name string
		}{{cds.Type, "c"}, {eds.Type, "e"}} {
			if w.kind == cds.Type {
				_, err := r.c.Watch(context.Background(), cds.Type, w.name, rec.hear)
				must(t, err)
			} else {
				_, err := r.c.Watch(context.Background(), eds.Type, w.name, rec.hear)
				must(t, err)
			}
		}
		st := r.accept()
		var want []string
		for i := range 100 {
			v := fmt.Sprint(i + 1)
			c := cluster("c", v)
			e := assignment("e")
			e.Policy = nil
			r.send(st, testutil.SotW(cds.Type.TypeURL(), v, "c"+v, c))
			r.send(st, testutil.SotW(eds.Type.TypeURL(), v, "e"+v, proto.Message(e)))
			want = append(want, "updated c "+v)
			if i == 0 {
				want = append(want, "updated e 1")
			}
		}
		rec.heard(t, want...)
	})
}

func TestManyWatchesOfOneName(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		const n = 10_000
		var calls atomic.Int64
		for range n {
			_, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { calls.Add(1) })
			must(t, err)
		}
		st := r.accept()
		r.request(st, "cds [a]")
		r.clusters(st, "1", "n1", "a")
		r.clusters(st, "2", "n2", "a")
		if calls.Load() != 2*n {
			t.Errorf("%d calls, want %d", calls.Load(), 2*n)
		}
		r.quiet(st, 3)
	})
}

// Ten thousand watches in a burst cost a few requests.
// spec: STREAM-9
func TestBurst(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		const n = 10_000
		var calls atomic.Int64
		for i := range n {
			_, err := r.c.Watch(context.Background(), eds.Type, fmt.Sprintf("name-%05d", i), func(client.Event[any]) { calls.Add(1) })
			must(t, err)
		}
		st := r.accept()
		time.Sleep(time.Second)
		synctest.Wait()
		requests := st.Requests()
		if len(requests) > 10 {
			t.Errorf("%d requests for a burst of watches", len(requests))
		}
		names := requests[len(requests)-1].Names()
		if len(names) != n {
			t.Fatalf("the last request has %d names, want %d", len(names), n)
		}
		var ms []proto.Message
		for _, name := range names {
			ms = append(ms, assignment(name))
		}
		r.send(st, testutil.SotW(eds.Type.TypeURL(), "1", "n1", ms...))
		synctest.Wait()
		if calls.Load() != n {
			t.Errorf("%d calls, want %d", calls.Load(), n)
		}
	})
}

// Watching and stopping for a while leaves nothing behind.
func TestWatchStopLoop(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("stays")
		st := r.accept()
		round := func(n int) {
			for i := range n {
				ctx, cancel := context.WithCancel(context.Background())
				w, err := r.c.Watch(ctx, cds.Type, fmt.Sprint("x", i), func(client.Event[any]) {})
				must(t, err)
				s, err := r.c.NewSet(ctx, cds.Type, func(client.Batch[any]) {})
				must(t, err)
				must(t, s.Add("y", "z"))
				s.Remove("y")
				if i%2 == 0 {
					w.Stop()
					s.Stop()
				}
				cancel()
				if i%100 == 0 {
					time.Sleep(2 * time.Millisecond)
				}
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		some := 3000
		if testing.Short() {
			some = 600
		}
		round(200)
		goroutines, heap := runtime.NumGoroutine(), heapsize.InUse()
		round(some)
		n := runtime.NumGoroutine()
		for range 20 { // the runtime counts some that have ended, 33 at most, while it moves them from list to list
			runtime.GC()
			n = min(n, runtime.NumGoroutine())
		}
		if n > goroutines+3 {
			t.Errorf("%d goroutines, %d before", n, goroutines)
		}
		if grown := int64(heapsize.InUse()) - int64(heap); grown > 4<<20 {
			t.Errorf("the heap grew by %d bytes", grown)
		}
		if client.Live(r.c) != 1 || client.Pending(r.c) != 1 || len(r.c.Dump()) != 1 {
			t.Errorf("left: %d watches, %d waiting, %v", client.Live(r.c), client.Pending(r.c), r.c.Dump())
		}
		last := st.Requests()[len(st.Requests())-1]
		same(t, "the last request", short(last), "cds [stays]")
	})
}

// A watch whose end comes while it begins leaves no subscription.
func TestEndWhileBeginning(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		for i := range 500 {
			ctx, cancel := context.WithCancel(context.Background())
			set, err := r.c.NewSet(ctx, cds.Type, func(client.Batch[any]) {})
			must(t, err)
			wg.Go(cancel)
			wg.Go(func() {
				_, err := r.c.Watch(ctx, cds.Type, fmt.Sprint("w", i), func(client.Event[any]) {})
				if err == nil {
					err = set.Add(fmt.Sprint("s", i), fmt.Sprint("t", i))
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		if client.Live(r.c) != 0 || client.Pending(r.c) != 0 || len(r.c.Dump()) != 0 {
			t.Errorf("left: %d watches, %d waiting, %v", client.Live(r.c), client.Pending(r.c), r.c.Dump())
		}
	})
}
