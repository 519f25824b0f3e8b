package client_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// batches records batches, and that they come one at a time.
type batches struct {
	t     *testing.T
	mu    sync.Mutex
	list  []client.Batch[any]
	gate  gate
	inUse chan struct{}
}

func newBatches(t *testing.T) *batches { return &batches{t: t, inUse: make(chan struct{}, 1)} }

func (b *batches) hear(batch client.Batch[any]) {
	select {
	case b.inUse <- struct{}{}:
	default:
		b.t.Error("two calls of one handler at a time")
	}
	b.mu.Lock()
	b.list = append(b.list, batch)
	b.mu.Unlock()
	b.gate.pass(nil)
	<-b.inUse
}

// heard compares the batches: their events, with "." at the end of the last.
func (b *batches) heard(t *testing.T, want ...[]string) {
	t.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	var got [][]string
	for _, batch := range b.list {
		ls := lines(batch.Events)
		if batch.Last {
			ls = append(ls, ".")
		}
		got = append(got, ls)
	}
	same(t, "batches", got, want)
}

// A set whose names belong to several servers has one handler still.
func TestSetOfTwoAuthorities(t *testing.T) {
	twoServers(t, func(t *testing.T, r *rig, other *testutil.Server) {
		bs := newBatches(t)
		set, err := r.c.NewSet(context.Background(), cds.Type, bs.hear)
		must(t, err)
		must(t, set.Add("a", "b", otherName))
		st := r.accept()
		r.request(st, "cds [a b]")
		ost, err := other.Accept(t.Context())
		must(t, err)

		bs.gate.shut()
		r.clusters(st, "1", "n1", "a", "b")
		r.send(ost, testutil.SotW(cds.Type.TypeURL(), "7", "m1", cluster(otherName, "")))
		first := []string{"updated a 1", "updated b 1", "."}
		bs.heard(t, first)
		bs.gate.open()
		bs.heard(t, first, []string{"updated " + otherName + " 7", "."})
	})
}

// One call of Add costs one request, and a response makes one batch.
func TestSetAddsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		bs := newBatches(t)
		set, err := r.c.NewSet(context.Background(), cds.Type, bs.hear)
		must(t, err)
		err = set.Add("a", "b", "*", "b")
		if !errors.Is(err, client.ErrCollection) {
			t.Errorf("adding a bad name: %v", err)
		}
		st := r.accept()
		r.request(st, "cds [a b]")
		time.Sleep(time.Second)
		must(t, set.Add("c", "d", "a"))
		r.request(st, "cds [a b c d]")
		r.clusters(st, "1", "n1", "a", "b", "c", "d")
		bs.heard(t, []string{"updated a 1", "updated b 1", "updated c 1", "updated d 1", "."})
		set.Remove("b", "no such name", "*")
		r.request(st, "cds [a b c d] v1 n1")
		r.request(st, "cds [a c d] v1 n1")
		r.clusters(st, "2", "n2", "a")
		bs.heard(t, []string{"updated a 1", "updated b 1", "updated c 1", "updated d 1", "."},
			[]string{"updated a 2", "does not exist c absent", "does not exist d absent", "."})
		if set.Err() != nil {
			t.Errorf("the set ended: %v", set.Err())
		}
	})
}

// A name that was removed hears nothing more, also of what waits.
func TestSetRemovedHearsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		hold := make(chan struct{})
		_, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { <-hold })
		must(t, err)
		bs := newBatches(t)
		set, err := r.c.NewSet(context.Background(), cds.Type, bs.hear)
		must(t, err)
		must(t, set.Add("a", "b"))
		st := r.accept()
		r.clusters(st, "1", "n1", "a", "b")
		set.Remove("b")
		close(hold)
		bs.heard(t, []string{"updated a 1", "."})
	})
}

// A name that was removed and added again hears what is so, and nothing that was on its way
// before.
func TestSetRemovedAndAdded(t *testing.T) {
	twoServers(t, func(t *testing.T, r *rig, other *testutil.Server) {
		bs := newBatches(t)
		set, err := r.c.NewSet(context.Background(), cds.Type, bs.hear)
		must(t, err)
		must(t, set.Add("a", otherName))
		st := r.accept()
		ost, err := other.Accept(t.Context())
		must(t, err)

		bs.gate.shut()
		r.clusters(st, "1", "n1", "a")
		r.clusters(ost, "7", "m1", otherName) // waits for the handler
		set.Remove(otherName)
		must(t, set.Add(otherName))
		bs.gate.open()
		first := []string{"updated a 1", "."}
		bs.heard(t, first, []string{"."}, []string{"updated " + otherName + " 7", "."})
		r.clusters(ost, "8", "m2", otherName)
		bs.heard(t, first, []string{"."}, []string{"updated " + otherName + " 7", "."}, []string{"updated " + otherName + " 8", "."})
	})
}

// Each spelling of a name in a set is told and removed by itself; one that was not added removes all.
// spec: U-11
func TestSetSpellings(t *testing.T) {
	spell := func(order string) string {
		params := map[byte]string{'a': "a=1", 'b': "b=2", 'c': "c=3"}
		return "xdstp:///" + clusterName + "/x?" + params[order[0]] + "&" + params[order[1]] + "&" + params[order[2]]
	}
	inBubble(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		var heard []string
		set, err := r.c.NewSet(context.Background(), cds.Type, func(b client.Batch[any]) {
			mu.Lock()
			defer mu.Unlock()
			for _, ev := range b.Events {
				heard = append(heard, ev.Version+" "+ev.Asked)
			}
			slices.Sort(heard)
		})
		must(t, err)
		must(t, set.Add(spell("abc"), spell("bca"), spell("cab"), spell("bac"), spell("bca")))
		st := r.accept()
		tell := func(version string, to ...string) {
			t.Helper()
			r.clusters(st, version, "n"+version, spell("abc"))
			var want []string
			for _, order := range to {
				want = append(want, version+" "+spell(order))
			}
			mu.Lock()
			defer mu.Unlock()
			same(t, "heard", heard, want)
			heard = nil
		}
		tell("1", "abc", "bac", "bca", "cab")
		set.Remove(spell("bca"))
		tell("2", "abc", "bac", "cab")
		set.Remove(spell("abc"))
		tell("3", "bac", "cab")
		set.Remove(spell("acb"))
		tell("4")
	}, func(c *client.Config) { c.Bootstrap.Authorities = map[string]bootstrap.Authority{"": {}} })
}

// A set in trouble when it ends does not keep Ready waiting.
func TestReady(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		must(t, r.c.Ready(ctx))
		a, _ := r.watch("a")
		set, err := r.c.NewSet(ctx, cds.Type, func(client.Batch[any]) {})
		must(t, err)
		must(t, set.Add("b", "c", "d"))
		all, err := r.c.WatchAll(ctx, cds.Type, "*", func(client.Batch[any]) {}, client.ExplicitWildcard())
		must(t, err)
		ready := func() error {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return r.c.Ready(short)
		}
		st := r.accept()
		if err := ready(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ready before an answer: %v", err)
		}
		set.Remove("d")
		r.clusters(st, "1", "n1", "b")
		if err := ready(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ready before all answers: %v", err)
		}
		set.Stop()
		a.Stop()
		must(t, ready())
		if err := all.Err(); err != nil {
			t.Errorf("the wildcard ended: %v", err)
		}
		r.watch("late")
		time.AfterFunc(time.Second, func() { r.c.Close() })
		if err := r.c.Ready(ctx); err != client.ErrClosed {
			t.Errorf("ready while the client closes: %v, want ErrClosed", err)
		}
	})
}

// Trouble with the server is no answer; absence is one, and so is a refused resource.
func TestReadyIsAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.srv.SetRefuse(true)
		_, rec := r.watch("a")
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := r.c.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ready without a server: %v", err)
		}
		if got := rec.last().Kind; got != client.EventFailed {
			t.Errorf("the watch heard %v", got)
		}
		r.srv.SetRefuse(false)
		start := time.Now()
		must(t, r.c.Ready(context.Background()))
		if waited := time.Since(start); waited < 15*time.Second || waited > time.Minute {
			t.Errorf("ready after %v, want the does-not-exist timeout after the reconnect", waited)
		}
		if got := rec.last().Kind; got != client.EventDoesNotExist {
			t.Errorf("the watch heard %v", got)
		}
	})
}

// A collection comes in batches of 512 at most; the last says so.
func TestBatches(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		bs := newBatches(t)
		_, err := r.c.WatchAll(context.Background(), cds.Type, "*", bs.hear)
		must(t, err)
		st := r.accept()
		names := manyNames(1500)
		r.clusters(st, "1", "n1", names...)
		shape := func() (got []int) {
			synctest.Wait()
			bs.mu.Lock()
			defer bs.mu.Unlock()
			for _, b := range bs.list {
				got = append(got, len(b.Events))
				if b.Last {
					got = append(got, -1)
				}
			}
			bs.list = nil
			return got
		}
		same(t, "batches", shape(), []int{512, 512, 477, -1}) // with synced
		r.clusters(st, "2", "n2", names[:1024]...)
		same(t, "batches of the second response", shape(), []int{512, 512, 476, -1})
		late := newBatches(t)
		_, err = r.c.WatchAll(context.Background(), cds.Type, "*", late.hear)
		must(t, err)
		bs = late
		same(t, "batches of a late joiner", shape(), []int{512, 512, 1, -1})
		r.clusters(st, "3", "n3", names[0])
		same(t, "a later response", shape(), []int{512, 512, 0, -1})
	})
}

// Each response to a large set ends with its own last batch, and only that is the last.
func TestBatchesOfSet(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var shape []int
		set, err := r.c.NewSet(context.Background(), cds.Type, func(b client.Batch[any]) {
			shape = append(shape, len(b.Events))
			if b.Last {
				shape = append(shape, -1)
			}
		})
		must(t, err)
		names := manyNames(700)
		must(t, set.Add(names...))
		st := r.accept()
		r.clusters(st, "1", "n1", names...)
		r.clusters(st, "2", "n2", names...)
		same(t, "batches", shape, []int{512, 188, -1, 512, 188, -1})
	})
}

func manyNames(n int) []string {
	var names []string
	for i := range n {
		names = append(names, string(rune('a'+i/1000))+string(rune('a'+i/100%10))+string(rune('a'+i/10%10))+string(rune('a'+i%10)))
	}
	slices.Sort(names)
	return names
}

// A name of a set is one object: a set may have very many.
func TestSetMemberIsOneObject(t *testing.T) {
	var m any
	if n := testing.AllocsPerRun(100, func() { m = client.NewMember("a") }); n != 1 {
		t.Errorf("%T takes %v objects", m, n)
	}
}

// A name with directives is removed by what it was added by.
// spec: ENTRY-1
func TestSetRemovesEntry(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.put(dir("a", "list"), listing(inline("e", "5", cluster("e", ""))), "1")
		rec := &record{}
		set, err := w.c.NewSet(t.Context(), cds.Type, func(b client.Batch[any]) { rec.hear(b.Events[0]) })
		must(t, err)
		must(t, set.Add(dir("a", "list")+"#entry=e"))
		w.since(rec, "updated a//list#entry=e 5")
		set.Remove(dir("a", "list") + "#entry=e")
		w.unwanted()
	})
}

// Of a name that was not added Remove makes no source.
func TestSetRemovesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		set, err := r.c.NewSet(t.Context(), cds.Type, func(client.Batch[any]) {})
		must(t, err)
		conns := client.CountConns(r.c)
		set.Remove("file:///none#entry=e", "*", "")
		if n := conns.Built.Load(); n != 0 { // as a new source would have it
			t.Errorf("connections for %d servers were built", n)
		}
	})
}
