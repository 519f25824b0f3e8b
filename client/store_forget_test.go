package client_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// What a collection that is watched anew does not have any more is forgotten, also if this very process has
// saved it.
//
// spec: LKG-5
func TestStoreForgetsWhatItSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, dir := testutil.NewServer(), t.TempDir()
		run(t, srv, dir, func(r *rig) {
			for _, names := range [][]string{{"a", "b"}, {"a"}} {
				w, err := r.c.WatchAll(t.Context(), cds.Type, "*", func(client.Batch[any]) {})
				must(t, err)
				r.clusters(r.accept(), "1", "n1", names...)
				time.Sleep(20 * time.Second)
				w.Stop()
				time.Sleep(time.Minute) // until the stream is closed
			}
		})
		same(t, "heard", staleMembers(t, srv, dir), []string{"ambient error * connection stale", "synced * stale", "updated a 1 stale"})
	})
}

// What a server has removed is not told as stale a moment later, though the store still has it.
//
// spec: LKG-5
func TestStoreForgetsBeforeItLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		run(t, srv, t.TempDir(), func(r *rig) {
			_, err := r.c.WatchAll(t.Context(), cds.Type, "*", func(client.Batch[any]) {})
			must(t, err)
			st := r.accept()
			r.clusters(st, "1", "n1", "a", "b")
			time.Sleep(10 * time.Second) // both are saved
			r.clusters(st, "2", "n2", "b")
			synctest.Wait()
			srv.SetRefuse(true)
			srv.DropConnections()
			time.Sleep(100 * time.Millisecond)
			_, rec := r.watch("a")
			time.Sleep(time.Second)
			synctest.Wait()
			same(t, "heard", stale(rec.all()), []string{"failed a connection"})
		})
	})
}

// A glob that is complete has the store forget what it covers and lacks, and nothing else.
//
// spec: LKG-5
func TestStoreForgetsWhatGlobLacks(t *testing.T) {
	const glob, beside = "xdstp://a/" + clusterName + "/g/*", "xdstp://a/" + clusterName + "/h/x"
	delta := func(c *client.Config) {
		c.Variant, c.Bootstrap.Authorities = client.VariantDelta, map[string]bootstrap.Authority{"a": {}}
	}
	synctest.Test(t, func(t *testing.T) {
		srv, dir := testutil.NewServer(), t.TempDir()
		watch := func(r *rig) *record {
			rec := &record{}
			_, err := r.c.WatchAll(t.Context(), cds.Type, glob, func(b client.Batch[any]) {
				for _, ev := range b.Events {
					rec.hear(ev)
				}
			})
			must(t, err)
			return rec
		}
		for _, ids := range [][]string{{"g/a", "g/b", "h/x"}, {"g/a"}} {
			run(t, srv, dir, func(r *rig) {
				watch(r)
				r.watch(beside)
				var members []*discoveryv3.Resource
				for _, id := range ids {
					name := "xdstp://a/" + clusterName + "/" + id
					members = append(members, testutil.Wrapped(name, "1", cluster(name, "1")))
				}
				r.send(r.accept(), testutil.Delta(cds.Type.TypeURL(), "n1", members))
				time.Sleep(time.Minute) // a state in delta may come in several responses
			}, delta)
		}
		srv.SetRefuse(true)
		run(t, srv, dir, func(r *rig) {
			members := watch(r)
			_, one := r.watch(beside)
			time.Sleep(time.Second)
			synctest.Wait()
			same(t, "members", stale(members.all()), []string{"updated xdstp://a/" + clusterName + "/g/a 1 stale", "synced " + glob + " stale", "ambient error " + glob + " connection stale"})
			same(t, "beside it", stale(one.all())[0], "updated "+beside+" 1 stale")
		}, delta)
	})
}

// full is a store that cannot save at times.
type full struct {
	client.Store
	is atomic.Bool
}

func (f *full) Save(at client.StoreSection, changes []client.StoredResource) error {
	if f.is.Load() {
		return client.ErrNotSaved
	}
	return f.Store.Save(at, changes)
}

// What a server has removed is not told as stale while the store cannot save that it has gone. What it did not
// remove is.
//
// spec: LKG-5
func TestStoreForgetsThoughItIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		var disk *full
		run(t, srv, t.TempDir(), func(r *rig) {
			w, _ := r.watch("a")
			other, _ := r.watch("b")
			st := r.accept()
			r.clusters(st, "1", "n1", "a", "b")
			time.Sleep(10 * time.Second) // both are saved
			disk.is.Store(true)
			r.clusters(st, "2", "n2", "b")
			w.Stop()
			other.Stop()
			time.Sleep(time.Minute) // until nothing is held
			srv.SetRefuse(true)
			_, gone := r.watch("a")
			_, there := r.watch("b")
			time.Sleep(time.Second)
			synctest.Wait()
			same(t, "heard", stale(gone.all()), []string{"failed a connection"})
			same(t, "heard", stale(there.all()), []string{"updated b 1 stale", "ambient error b connection stale"})
		}, func(c *client.Config) {
			disk = &full{Store: c.Store}
			c.Store = disk
		})
	})
}

// diary is a store that notes its saves.
type diary struct {
	brittle
	mu    sync.Mutex
	notes []string
}

func (d *diary) Save(_ client.StoreSection, changes []client.StoredResource) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(changes) == 0 {
		d.notes = append(d.notes, "all is good")
	}
	for _, c := range changes {
		d.notes = append(d.notes, fmt.Sprintf("%s %t", c.Name, c.Resource != nil))
	}
	return nil
}

// What was removed a moment ago is not said to be good.
//
// spec: LKG-5
func TestStoreForgetsBeforeAllIsGood(t *testing.T) {
	d := &diary{brittle: brittle{fail: func() error { return nil }}}
	inBubble(t, func(t *testing.T, r *rig) {
		_, err := r.c.WatchAll(t.Context(), cds.Type, "*", func(client.Batch[any]) {})
		must(t, err)
		begun := time.Now()
		st := r.accept()
		r.clusters(st, "1", "n1", "a", "b")
		time.Sleep(time.Until(begun.Add(time.Hour - time.Second)))
		r.clusters(st, "2", "n2", "b")
		time.Sleep(time.Minute)
		synctest.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		same(t, "noted", d.notes[max(0, len(d.notes)-3):], []string{"b true", "a false", "all is good"})
	}, func(c *client.Config) { c.Store = d })
}
