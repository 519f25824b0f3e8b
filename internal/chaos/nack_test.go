package main

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
)

// A server of go-control-plane answers a NACK in state of the world at once with what was
// refused. It is answered four times a second, for as long as that goes on; in delta it does
// not repeat itself. Endpoints that change meanwhile are told, and asked for no more often
// than they change.
// spec: S-1
func TestRealServerNACKed(t *testing.T) {
	if testing.Short() {
		t.Skip("long: twenty seconds of a real server")
	}
	t.Parallel()
	const seconds = 20
	var wg sync.WaitGroup
	for _, test := range []struct {
		variant     client.Variant
		least, most int64 // requests for clusters
	}{
		// Four a second and the first few; a busy machine makes them fewer.
		{client.VariantSotW, seconds, 4*seconds + 10},
		{client.VariantDelta, 2, 5},
	} {
		wg.Go(func() { // not a subtest, since others would wait for it
			r := &refused{t: t, told: make(chan int, 2*seconds)}
			if err := r.live(test.variant, seconds); err != nil {
				t.Errorf("variant %d: %v", test.variant, err)
			}
			clusters, endpoints := r.clusters.Load(), r.endpoints.Load()
			t.Logf("variant %d: %d requests for clusters and %d for endpoints", test.variant, clusters, endpoints)
			if clusters < test.least || clusters > test.most {
				t.Errorf("variant %d: %d requests for clusters, want %d to %d", test.variant, clusters, test.least, test.most)
			}
			// The first one, and an answer to each response.
			if endpoints > seconds+2 {
				t.Errorf("variant %d: %d requests for endpoints, want at most %d", test.variant, endpoints, seconds+2)
			}
		})
	}
	wg.Wait()
}

// refused is a client at a server whose cluster it refuses.
type refused struct {
	t                   *testing.T
	clusters, endpoints atomic.Int64 // requests
	told                chan int     // revisions of the endpoints
}

func (r *refused) request(req *testutil.Request) {
	if req.TypeURL() == cds.Type.TypeURL() {
		r.clusters.Add(1)
	} else {
		r.endpoints.Add(1)
	}
}

// live goes on for some seconds, in each of which the endpoints change.
func (r *refused) live(variant client.Variant, seconds int) error {
	srv := testutil.StartManagementServer(r.t, testutil.ManagementConfig{OnRequest: r.request})
	boot, err := bootstrap.Server(srv.Addr())
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{Bootstrap: boot, Variant: variant})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Watch(r.t.Context(), cds.Type, "a", func(client.Event[any]) {})
	_, err2 := c.Watch(r.t.Context(), eds.Type, "e", func(ev client.Event[any]) {
		if ev.Kind == client.EventUpdated {
			r.told <- kinds()[1].revision(ev.Value)
		}
	})
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for i := range seconds + 1 {
		if err := srv.Cache().SetSnapshot(r.t.Context(), testutil.NodeKey, besideRefused(i)); err != nil {
			return err
		}
		select {
		case got := <-r.told:
			if got != i {
				return fmt.Errorf("revision %d of the endpoints was told, want %d", got, i)
			}
		case <-time.After(time.Minute):
			return fmt.Errorf("revision %d of the endpoints was not told", i)
		}
		if i < seconds {
			<-tick.C
		}
	}
	return nil
}

// besideRefused is a cluster that is refused and stays as it is, and endpoints that change.
func besideRefused(rev int) *cache.Snapshot {
	bad := item{Name: "a", Bad: true}.message(kinds())
	good := item{Kind: 1, Name: "e", Rev: rev}.message(kinds())
	s := &cache.Snapshot{}
	s.Resources[types.Cluster] = cache.NewResources("1", []types.Resource{bad})
	s.Resources[types.Endpoint] = cache.NewResources(strconv.Itoa(rev+1), []types.Resource{good})
	return s
}
