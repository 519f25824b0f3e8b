package client_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// The members of a set may have directives, and may be redirected.
// spec: REDIR-2 ENTRY-1
func TestSetFollows(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.a.put(at("a", "x"), redirect(at("b", "y")), "1")
		w.b.put(at("b", "y"), cluster("y", ""), "2")
		w.a.put(dir("a", "list"), listing(inline("e", "", cluster("e", ""))), "3")
		rec := &record{}
		set, err := w.c.NewSet(context.Background(), cds.Type, func(b client.Batch[any]) {
			for _, ev := range b.Events {
				rec.hear(ev)
			}
		})
		must(t, err)
		names := []string{at("a", "x"), dir("a", "list") + "#entry=e", dir("a", "list") + "#entry=f", at("a", "plain")}
		must(t, set.Add(names...))
		must(t, set.Add(names[1]))
		must(t, w.c.Ready(t.Context()))
		got := lines(rec.all())
		for i := range got {
			got[i] = shortNames.Replace(got[i])
		}
		slices.Sort(got)
		same(t, "heard", got, []string{
			"does not exist a//list#entry=f not-found", "does not exist a/plain removed",
			"updated a//list#entry=e 3", "updated a/x 2 via b/y",
		})
		set.Remove(names[0], names[2])
		same(t, "subscribed at b", w.b.subscribed(), nil)
		same(t, "subscribed at a", w.a.subscribed(), []string{"a//list", "a/plain"})
		set.Stop()
		w.unwanted()
	})
}

// Members of a wildcard are followed, and it is synced when something is known of each.
// spec: REDIR-2 WILD-5
func TestWildcardFollows(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		// The keeper of the old names' server has no wildcards: a scripted one does.
		w.b.mute(at("b", "y"))
		watch, rec := w.all("*")
		st := w.accept()
		members := testutil.Delta(cds.Type.TypeURL(), "m1", nil)
		members.Resources = append(members.Resources,
			testutil.Wrapped(at("a", "x"), "1", redirect(at("b", "y"))), testutil.Wrapped(at("a", "p"), "1", cluster("p", "")))
		w.send(st, members)
		w.since(rec, "updated a/p 1")
		w.b.put(at("b", "y"), cluster("y", ""), "2")
		w.since(rec, "updated a/x 2 via b/y", "synced *")
		w.send(st, testutil.Delta(cds.Type.TypeURL(), "m2", nil, at("a", "x")))
		w.since(rec, "does not exist a/x removed")
		same(t, "subscribed at b", w.b.subscribed(), nil)
		w.send(st, members)
		w.since(rec, "updated a/x 2 via b/y")
		watch.Stop()
		w.unwanted()
	})
}

// What is wrong with a collection whose members are still sought elsewhere is told after it
// is synced, if it lasts until then.
// spec: REDIR-2 WILD-5 ERR-1
func TestWildcardTroubleWaits(t *testing.T) {
	for _, lasts := range []bool{true, false} {
		inWorld(t, func(t *testing.T, w *world) {
			w.b.mute(at("b", "y"))
			_, rec := w.all("*")
			st := w.accept()
			members := testutil.Delta(cds.Type.TypeURL(), "m1", nil)
			members.Resources = append(members.Resources, testutil.Wrapped(at("a", "x"), "1", redirect(at("b", "y"))))
			w.send(st, members)
			w.since(rec)
			w.a.down()
			time.Sleep(5 * time.Second)
			w.since(rec)
			want := []string{"updated a/x 2 via b/y", "synced *", "ambient error * connection"}
			if !lasts {
				w.a.srv.SetRefuse(false)
				w.send(w.accept(), testutil.Delta(cds.Type.TypeURL(), "m2", nil))
				w.since(rec)
				want = want[:2]
			}
			w.b.put(at("b", "y"), cluster("y", ""), "2")
			w.since(rec, want...)
		})
	}
}
