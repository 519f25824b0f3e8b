package watcher_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

func TestWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var rec record
		w, err := watcher.Watch(background(), r.c, cds.Type, "a", rec.hear)
		must(t, err)
		st := r.accept()
		r.send(st, "1", "a", "b")
		r.send(st, "2", "a")
		r.send(st, "3")
		rec.heard(t, "updated a a=1", "updated a a=2", "does not exist a absent")
		w.Stop()
		r.send(st, "4", "a")
		rec.heard(t, "updated a a=1", "updated a a=2", "does not exist a absent")
	})
}

func TestNils(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var none *resource.Type[*cluster]
		ctx := background()
		hear, hearAll := func(event) {}, func(batch) {}
		errOf := func(_ any, err error) error { return err }
		for i, err := range []error{
			errOf(watcher.Watch(ctx, r.c, none, "a", hear)), errOf(watcher.WatchAll(ctx, r.c, none, "*", hearAll)),
			errOf(watcher.NewSet(ctx, r.c, none, hearAll)), errOf(watcher.Get(ctx, r.c, none, "a")),
		} {
			if err != client.ErrNilType {
				t.Errorf("%d: %v, want ErrNilType", i, err)
			}
		}
		for i, err := range []error{
			errOf(watcher.Watch(ctx, r.c, cds.Type, "a", nil)), errOf(watcher.WatchAll(ctx, r.c, cds.Type, "*", nil)),
			errOf(watcher.NewSet(ctx, r.c, cds.Type, nil)),
		} {
			if err != client.ErrNilHandler {
				t.Errorf("%d: %v, want ErrNilHandler", i, err)
			}
		}
		for _, err := range watcher.Events(ctx, r.c, none, "a") {
			if err != client.ErrNilType {
				t.Errorf("Events: %v, want ErrNilType", err)
			}
		}
	})
}

// Who joins late hears everything that is held, then that this is all.
// spec: WATCH-3 WILD-5
func TestWatchAll(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var early, late record
		synced := 0
		_, err := watcher.WatchAll(background(), r.c, cds.Type, "*", func(b batch) {
			early.hearAll(b)
			if b.Synced() {
				synced++
			}
		})
		must(t, err)
		st := r.accept()
		if got := names(st); len(got) != 0 {
			t.Errorf("the wildcard is asked for as %q", got)
		}
		r.send(st, "1", "b", "a")
		early.heard(t, "updated b b=1", "updated a a=1", "synced *", ".")
		_, err = watcher.WatchAll(background(), r.c, cds.Type, "*", late.hearAll)
		must(t, err)
		late.heard(t, "updated a a=1", "updated b b=1", "synced *", ".")
		r.send(st, "2", "b")
		late.heard(t, "updated a a=1", "updated b b=1", "synced *", ".", "updated b b=2", "does not exist a absent", ".")
		if synced != 1 {
			t.Errorf("synced %d times", synced)
		}
	})
}

func TestWatchAllOfNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var rec record
		_, err := watcher.WatchAll(background(), r.c, cds.Type, "*", rec.hearAll)
		must(t, err)
		r.send(r.accept(), "1")
		rec.heard(t, "synced *", ".")
	})
}

func TestBatchKinds(t *testing.T) {
	b := batch{Events: []event{
		{Kind: client.EventUpdated, Name: "u"}, {Kind: client.EventDoesNotExist, Name: "d"},
		{Kind: client.EventFailed, Name: "f"}, {Kind: client.EventUpdated, Name: "v"},
	}}
	var got []string
	for ev := range b.Changed() {
		got = append(got, "changed "+ev.Name)
	}
	for ev := range b.Removed() {
		got = append(got, "removed "+ev.Name)
	}
	for ev := range b.Failed() {
		got = append(got, "failed "+ev.Name)
		break
	}
	same(t, "kinds", got, []string{"changed u", "changed v", "removed d", "failed f"})
	if b.Synced() {
		t.Error("synced without being told so")
	}
}

func TestSet(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var rec record
		s, err := watcher.NewSet(background(), r.c, cds.Type, rec.hearAll)
		must(t, err)
		must(t, s.Add("a", "b"))
		st := r.accept()
		same(t, "names", names(st), []string{"a", "b"})
		r.send(st, "1", "a", "b", "c")
		rec.heard(t, "updated a a=1", "updated b b=1", ".")
		s.Remove("a")
		same(t, "names", names(st), []string{"b"})
		r.send(st, "2", "a", "b")
		rec.heard(t, "updated a a=1", "updated b b=1", ".", "updated b b=2", ".")
		must(t, s.Add("a"))
		r.send(st, "3", "a", "b")
		s.Stop()
		r.send(st, "4", "a", "b")
		rec.heard(t, "updated a a=1", "updated b b=1", ".", "updated b b=2", ".",
			"updated a a=3", "updated b b=3", ".")
		<-s.Done()
		if err := s.Add("x"); err != client.ErrStopped || s.Err() != client.ErrStopped {
			t.Errorf("after the end: %v and %v", err, s.Err())
		}
	})
}

// A loop gets the newest state only, and delays nobody; leaving it ends the watch.
func TestEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var other record
		_, err := watcher.Watch(background(), r.c, cds.Type, "a", other.hear)
		must(t, err)
		st := r.accept()
		var got []string
		for ev, err := range watcher.Events(background(), r.c, cds.Type, "a") {
			must(t, err)
			got = append(got, text(ev))
			if len(got) == 1 { // the first answer was that there is none
				for i := range 100 {
					r.send(st, fmt.Sprint(i+1), "a")
				}
				other.heard(t, other.list...)
				if n := len(other.list); n != 101 {
					t.Errorf("another watch heard %d events while the loop was busy", n)
				}
				continue
			}
			if len(got) == 2 {
				must(t, st.SendBytes(refused("a")))
				r.send(st, "next", "x", "a")
				continue
			}
			break
		}
		same(t, "loop", got, []string{"does not exist a timeout", "updated a a=100", "updated a a=next"})
		r.send(st, "after", "a")
		if n := len(r.c.Dump()); n != 1 {
			t.Errorf("%d resources in the dump", n)
		}
	})
}

// The trouble of a resource is an event; the error of the iterator comes once, last.
func TestEventsEnd(t *testing.T) {
	cause := errors.New("enough")
	tests := map[string]struct {
		end  func(*rig, context.CancelCauseFunc)
		want error
	}{
		"context": {func(_ *rig, cancel context.CancelCauseFunc) { cancel(cause) }, cause},
		"close":   {func(r *rig, _ context.CancelCauseFunc) { r.c.Close() }, client.ErrClosed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.srv.SetRefuse(true)
				ctx, cancel := context.WithCancelCause(background())
				defer cancel(nil)
				var got []string
				var errs []error
				for ev, err := range watcher.Events(ctx, r.c, cds.Type, "a") {
					if err != nil {
						errs = append(errs, err)
						continue
					}
					got = append(got, text(ev))
					tt.end(r, cancel)
				}
				same(t, "events", got, []string{"failed a"})
				if len(errs) != 1 || !errors.Is(errs[0], tt.want) {
					t.Errorf("errors %v, want once %v", errs, tt.want)
				}
			})
		})
	}
}

func TestEventsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		n := 0
		for _, err := range watcher.Events(background(), r.c, cds.Type, "") {
			var re *client.ResourceError
			if n++; !errors.As(err, &re) || re.Kind != client.ErrorConfig {
				t.Errorf("a bad name: %v", err)
			}
		}
		if n != 1 {
			t.Errorf("%d rounds for an error", n)
		}
	})
}

// An event says where a redirected resource is.
func TestLocator(t *testing.T) {
	known := func(c *client.Config) { c.Bootstrap.Authorities = map[string]bootstrap.Authority{"a": {}} }
	inBubble(t, func(t *testing.T, r *rig) {
		const x, y = "xdstp://a/envoy.config.cluster.v3.Cluster/x", "xdstp://a/envoy.config.cluster.v3.Cluster/y"
		var got event
		_, err := watcher.Watch(background(), r.c, cds.Type, x, func(ev event) { got = ev })
		must(t, err)
		st := r.accept()
		url := cds.Type.TypeURL()
		to := &xdscorev3.ResourceLocator{Authority: "a", ResourceType: "envoy.config.cluster.v3.Cluster", Id: "y"}
		must(t, st.Send(testutil.SotW(url, "1", "n1", testutil.Wrapped(x, "", to))))
		must(t, st.Send(testutil.SotW(url, "2", "n2", testutil.Wrapped(x, "", to), testutil.Wrapped(y, "", &cluster{Name: "c"}))))
		synctest.Wait()
		if got.Name != x || got.Locator != y || got.Value.GetName() != "c" {
			t.Errorf("heard %+v", got)
		}
	}, known)
}

// A slow loop gets the newest state, and then the newest trouble that came after it. With the loop the watch ends.
func TestEventsTrouble(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var st *testutil.Stream
		var got []string
		for ev, err := range watcher.Events(background(), r.c, cds.Type, "a") {
			must(t, err)
			if got = append(got, text(ev)); len(got) == 1 {
				st = r.accept()
				r.send(st, "1", "a")
				must(t, st.SendBytes(refused("a")))
				synctest.Wait()
			}
			if len(got) == 3 {
				r.send(st, "2", "a")
				must(t, st.SendBytes(refused("a")))
				r.send(st, "2", "a")
			}
			if len(got) == 5 {
				must(t, st.SendBytes(refused("a")))
				synctest.Wait()
			}
			if len(got) == 6 {
				break
			}
		}
		same(t, "loop", got, []string{"does not exist a timeout", "updated a a=1", "ambient error a", "updated a a=2", "recovered a", "ambient error a"})
		for w := range r.c.Watches() {
			t.Errorf("a watch goes on: %v", w)
		}
	})
}
