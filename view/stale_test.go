package view

import (
	"context"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/store"
	"github.com/xdswatch/xdswatch/testutil"
)

// What a store had is used while no server answers. When one sends a cluster with another transport
// socket, and confirms the assignment of the store, FreshEndpoints waits no longer.
//
// spec: WARM-e, LKG-4
func TestFreshAfterStale(t *testing.T) {
	for _, variant := range []client.Variant{client.VariantSotW, client.VariantDelta} {
		srv := testutil.StartManagementServer(t, testutil.ManagementConfig{ADS: true})
		kept := store.Dir(t.TempDir(), store.Options{})
		start := func() (*client.Client, *View) {
			boot, err := bootstrap.Server(srv.Addr())
			must(t, err)
			c, err := client.New(client.Config{
				Bootstrap: boot, Variant: variant, Store: kept,
				Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(20 * time.Millisecond) },
			})
			must(t, err)
			v, err := New(t.Context(), c, Root{Type: RootCluster, Name: "a"}, Config{FreshEndpoints: time.Hour})
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			must(t, v.Ready(ctx))
			return c, v
		}
		must(t, srv.Set("1", []proto.Message{res(t, "cds a eds"), res(t, "eds a 1.1.1.1")}...))
		c, _ := start()
		c.Close()
		<-c.Done()
		srv.Stop()
		c, v := start()
		old := v.Snapshot().Cluster("a")
		if showEndpoints(old.Endpoints) != "[1.1.1.1]" || !old.Stale || !old.Endpoints.Stale {
			t.Errorf("without a server: %v", show(v.Snapshot()))
		}
		must(t, srv.Restart(false))
		must(t, srv.Set("1", []proto.Message{res(t, "cds a eds tls:on"), res(t, "eds a 1.1.1.1")}...))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		for s := range v.Snapshots(ctx) {
			if now := s.Cluster("a"); now.Message.GetTransportSocket() != nil && showEndpoints(now.Endpoints) == "[1.1.1.1]" {
				if now.Stale || now.Endpoints.Stale {
					t.Error("what the server has said is stale")
				}
				break
			}
		}
		if ctx.Err() != nil {
			t.Errorf("with %v: in the end %v, waiting for %v", variant, show(v.Snapshot()), v.Waiting())
		}
		cancel()
		c.Close()
		<-c.Done()
	}
}
