package client_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/store"
)

// What redirects, lists and their entries lead to is kept, by each authority, and found again without a server: all
// of it is stale until the server of each part speaks of it.
//
// spec: LKG-2 LKG-4 REDIR-2 COLL-3 ENTRY-1
func TestStoreFollows(t *testing.T) {
	var kept *store.Directory
	inWorld(t, func(t *testing.T, w *world) {
		list := dir("a", "list")
		watch := func() (heard func(want ...string)) {
			_, elsewhere := w.watch(at("a", "x"))
			_, entry := w.watch(list + "#entry=e")
			_, members := w.all(list)
			return func(want ...string) {
				t.Helper()
				synctest.Wait()
				var got []string
				for _, rec := range []*record{elsewhere, entry, members} {
					for _, l := range stale(rec.all()) {
						got = append(got, shortNames.Replace(l))
					}
					rec.mu.Lock()
					rec.events = nil
					rec.mu.Unlock()
				}
				slices.Sort(got)
				same(t, "heard", got, want)
			}
		}
		w.a.put(at("a", "x"), redirect(at("b", "y")), "r1")
		w.b.put(at("b", "y"), cluster("y", "1"), "1")
		w.b.put(at("b", "m"), cluster("m", "1"), "4")
		w.a.put(list, listing(inline("e", "5", cluster("e", "")), member(at("b", "m"))), "10")
		heard := watch()
		heard("synced a//list", "updated a//list#entry=e 5", "updated a//list#entry=e 5", "updated a/x 1 via b/y", "updated b/m 4")
		w.c.Close()
		<-w.c.Done()

		w.a.down()
		w.b.down()
		w.begin()
		heard = watch()
		time.Sleep(5 * time.Second)
		heard("ambient error a//list connection stale", "ambient error a//list#entry=e connection stale",
			"ambient error a/x connection via b/y stale", "ambient error a/x connection via b/y stale", "ambient error b/m connection stale",
			"synced a//list stale", "updated a//list#entry=e 5 stale", "updated a//list#entry=e 5 stale", "updated a/x 1 via b/y stale", "updated b/m 4 stale")
		w.b.srv.SetRefuse(false)
		time.Sleep(time.Minute)
		heard("ambient error a/x connection via b/y stale", "updated a/x 1 via b/y", "updated b/m 4")
		w.a.srv.SetRefuse(false)
		time.Sleep(time.Minute)
		heard("recovered a//list stale", "recovered a//list#entry=e stale", "recovered a/x via b/y", "synced a//list",
			"updated a//list#entry=e 5", "updated a//list#entry=e 5")
	}, func(c *client.Config) {
		if kept == nil {
			kept = store.Dir(t.TempDir(), store.Options{})
		}
		c.Store = kept
	})
}
