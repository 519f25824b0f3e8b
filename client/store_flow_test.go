package client_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
)

// While a handler blocks, what the store has, and what is held for a watch that comes late, is decoded as
// far as some of it may wait, and not as a whole.
// spec: H-5
func TestDecodingOfStoreWaitsForHandlers(t *testing.T) {
	if testing.Short() {
		t.Skip("it decodes 60,000 resources three times")
	}
	synctest.Test(t, func(t *testing.T) {
		srv, dir := testutil.NewServer(), t.TempDir()
		var decoded atomic.Int32
		kind := resource.Custom(eds.Type.TypeURL(), resource.Options{NameField: 1}, func(resource.Source, []byte) (int32, error) {
			return decoded.Add(1), nil
		})
		const n = 60_000 // more than decoders of many processors take at once
		blocked := func(r *rig) (release func()) {
			hold := make(chan struct{})
			var heard tallied
			decoded.Store(0)
			_, err := r.c.WatchAll(context.Background(), kind, "*", func(b client.Batch[any]) {
				<-hold
				heard.batch(b)
			})
			must(t, err)
			return func() {
				t.Helper()
				synctest.Wait()
				if got := decoded.Load(); got == 0 || got > n/2 {
					t.Errorf("%d of %d values were decoded while a handler blocks", got, n)
				}
				close(hold)
				synctest.Wait()
				if got := heard[client.EventUpdated].Load(); got != n {
					t.Errorf("%d values, want %d", got, n)
				}
			}
		}
		run(t, srv, dir, func(r *rig) {
			release := blocked(r)
			resources := make([]proto.Message, n)
			for i := range resources {
				resources[i] = assignment(fmt.Sprintf("name-%05d", i))
			}
			st := r.accept()
			r.request(st, "eds []")
			r.send(st, testutil.SotW(kind.TypeURL(), "1", "n1", resources...))
			release()
			blocked(r)() // a watch that comes late
		})
		srv.SetRefuse(true)
		run(t, srv, dir, func(r *rig) {
			blocked(r)()
		})
	})
}

// yields counts what a store has yielded.
type yields struct {
	client.Store
	n int
}

func (y *yields) Load(at client.StoreSection, names []string, yield func(client.StoredResource)) error {
	return y.Store.Load(at, names, func(r client.StoredResource) {
		y.n++
		yield(r)
	})
}

// Names that are watched bit by bit while no server can be reached cost one reading each, and not one of
// everything.
func TestStoreIsReadByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, dir := testutil.NewServer(), t.TempDir()
		const n, at = 1000, 100
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("c%04d", i)
		}
		run(t, srv, dir, func(r *rig) {
			for _, name := range names {
				r.watch(name)
			}
			r.clusters(r.accept(), "1", "n1", names...)
		})
		srv.SetRefuse(true)
		var kept *yields
		run(t, srv, dir, func(r *rig) {
			var heard tallied
			for i, name := range names {
				_, err := r.c.Watch(t.Context(), cds.Type, name, heard.hear)
				must(t, err)
				if i%at == at-1 {
					synctest.Wait()
				}
			}
			synctest.Wait()
			if got := heard[client.EventUpdated].Load(); got != n {
				t.Errorf("%d values, want %d", got, n)
			}
		}, func(c *client.Config) {
			kept = &yields{Store: c.Store}
			c.Store = kept
		})
		if kept.n != n {
			t.Errorf("the store has yielded %d resources to a client that watches %d", kept.n, n)
		}
	})
}
