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
