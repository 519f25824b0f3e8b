package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// Done is closed when the call that runs has returned, and not before; where none runs, at
// once.
// spec: WATCH-2 U-5
func TestDoneAfterLastCall(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var gate gate
		gate.shut()
		ctx := context.Background()
		pass := func(client.Event[any]) { gate.pass(nil) }
		w, err := r.c.Watch(ctx, cds.Type, "a", pass)
		must(t, err)
		beside, err := r.c.Watch(ctx, cds.Type, "b", pass)
		must(t, err)
		set, err := r.c.NewSet(ctx, cds.Type, func(client.Batch[any]) { gate.pass(nil) })
		must(t, err)
		idle, err := r.c.NewSet(ctx, cds.Type, func(client.Batch[any]) {})
		must(t, err)
		closed := func(done <-chan struct{}) bool {
			synctest.Wait()
			select {
			case <-done:
				return true
			default:
				return false
			}
		}
		st := r.accept()
		r.clusters(st, "1", "n1", "a", "b")
		start := time.Now()
		w.Stop()
		w.Stop()
		if took := time.Since(start); took != 10*time.Millisecond {
			t.Errorf("two Stops took %v while the handler runs, want 10 ms for both", took)
		}
		beside.Stop()
		idle.Stop()
		same(t, "closed", []bool{closed(w.Done()), closed(beside.Done()), closed(idle.Done())}, []bool{false, true, true})
		if w.Err() != client.ErrStopped {
			t.Errorf("the watch whose handler runs ended with %v", w.Err())
		}
		gate.open()
		same(t, "closed", closed(w.Done()), true)

		gate.shut()
		must(t, set.Add("c"))
		time.Sleep(time.Second)
		r.clusters(st, "2", "n2", "c")
		set.Stop()
		same(t, "closed while the set's handler runs", closed(set.Done()), false)
		gate.open()
		same(t, "closed", closed(set.Done()), true)
	})
}

// Done of each of many watches of one resource is closed though the handler of another
// blocks, at the latest when that has returned.
// spec: U-5
func TestDoneBesideBlockedHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var gate gate
		gate.shut()
		var watches []*client.Watch
		for range 100 {
			w, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { gate.pass(nil) })
			must(t, err)
			watches = append(watches, w)
		}
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		start := time.Now()
		for _, w := range watches {
			w.Stop()
		}
		if took := time.Since(start); took > 50*time.Millisecond {
			t.Errorf("100 watches beside a handler that blocks were stopped in %v", took)
		}
		gate.open()
		for _, w := range watches {
			<-w.Done()
		}
	})
}

// A watch that its handler has stopped is done when that has returned, also while the next handler runs, of its
// resource or of another.
// spec: U-5 WATCH-2
func TestDoneBeforeTheNextHandler(t *testing.T) {
	for _, other := range []string{"a", "b"} {
		inBubble(t, func(t *testing.T, r *rig) { doneBefore(t, r, other) })
	}
}

func doneBefore(t *testing.T, r *rig, other string) {
	var gate gate
	gate.shut()
	var first *client.Watch
	begun := false
	hear := func(client.Event[any]) {
		if !begun {
			begun = true
			first.Stop()
			return
		}
		gate.pass(nil)
	}
	first, err := r.c.Watch(context.Background(), cds.Type, "a", hear)
	must(t, err)
	_, err = r.c.Watch(context.Background(), cds.Type, other, hear)
	must(t, err)
	r.clusters(r.accept(), "1", "n1", "a", "b")
	synctest.Wait()
	select {
	case <-first.Done():
	default:
		t.Error("it waits for a handler that is not its own")
	}
	gate.open()
}

// The first end of a watch is its error, and closes what Done gave to each who asked.
// spec: U-5 U-8
func TestFirstEndCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var w *client.Watch
		w, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) {
			w.Stop()
			panic("too late")
		})
		must(t, err)
		one, other := w.Done(), w.Done()
		r.clusters(r.accept(), "1", "n1", "a")
		<-one
		<-other
		if w.Err() != client.ErrStopped {
			t.Errorf("it ended with %v", w.Err())
		}
	})
}

// A watch whose name is redirected is done when its handler has returned, as any other.
// spec: U-5 REDIR-2
func TestDoneOfRedirected(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.put(at("a", "x"), redirect(at("b", "y")), "r1")
		w.b.put(at("b", "y"), cluster("y", "1"), "1")
		var gate gate
		gate.shut()
		watch, err := w.c.Watch(context.Background(), cds.Type, at("a", "x"), func(client.Event[any]) { gate.pass(nil) })
		must(t, err)
		synctest.Wait()
		watch.Stop()
		select {
		case <-watch.Done():
			t.Error("it is done while its handler runs")
		default:
		}
		gate.open()
		<-watch.Done()
	})
}

// A set may be told in several lanes. Done waits for a call in any of them.
//
// spec: U-5
func TestDoneOfSetInLanes(t *testing.T) {
	for range 10 { // since the lanes have no order
		inWorld(t, func(t *testing.T, w *world) {
			var gate gate
			block := false
			set, err := w.c.NewSet(context.Background(), cds.Type, func(client.Batch[any]) {
				if block {
					gate.pass(nil)
				}
			})
			must(t, err)
			must(t, set.Add(at("a", "x"), at("b", "y"), at("c", "z")))
			synctest.Wait()
			gate.shut()
			block = true
			w.b.put(at("b", "y"), cluster("y", "2"), "2")
			set.Stop()
			select {
			case <-set.Done():
				t.Error("Done is closed while the handler runs")
			default:
			}
			gate.open()
			<-set.Done()
		})
	}
}
