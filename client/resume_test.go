package client_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
)

// A first request over what a gRPC server takes by default is cut down until it is taken.
//
// spec: DELTA-1
func TestLargeInterest(t *testing.T) {
	for _, variant := range []client.Variant{client.VariantDelta, client.VariantSotW} {
		synctest.Test(t, func(t *testing.T) {
			const limit = 4 << 20
			srv := testutil.NewServer(testutil.GRPCOptions(grpc.MaxRecvMsgSize(limit)))
			r := newRig(t, srv, func(c *client.Config) { c.Variant = variant })
			srv.SetRefuse(true)
			var names []string
			var last *record
			for i := range 6 {
				names = append(names, string(rune('a'+i))+strings.Repeat("x", 1<<20))
				_, last = r.watchType(eds.Type, names[i])
			}
			synctest.Wait()
			srv.SetRefuse(false)
			time.Sleep(time.Minute)
			synctest.Wait()
			if variant == client.VariantSotW {
				err := last.last().Err
				if err == nil || !strings.Contains(err.Error(), "state of the world cannot split it") {
					t.Errorf("the error is %.300v", err)
				}
				return
			}
			streams := srv.Streams()
			st := streams[len(streams)-1]
			if len(streams) != 2 {
				t.Errorf("%d streams, want 2", len(streams))
			}
			var got []string
			for _, req := range st.Requests() {
				if len(req.Raw) > limit {
					t.Errorf("a request of %d bytes", len(req.Raw))
				}
				got = append(got, req.Delta.ResourceNamesSubscribe...)
			}
			if !slices.Equal(got, names) {
				t.Errorf("%d names were asked for in %d requests, want %d", len(got), len(st.Requests()), len(names))
			}
			r.log.holds(t, "first requests are kept under")
		})
	}
}

// What is held of a wildcard may be more than a server takes in one request, here
// go-control-plane's with gRPC's default limit. The stream after an end names what fits: what
// changed and what is gone is told, be its version named or not, and nothing else is.
//
// spec: DELTA-1
func TestLargeResume(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a large resume")
	}
	limit, members := 4<<20, 60_000
	if race.Enabled {
		limit, members = limit/4, members/4
	}
	var resumes []*testutil.Request
	var mu sync.Mutex
	srv := testutil.StartManagementServer(t, testutil.ManagementConfig{
		GRPC: []grpc.ServerOption{grpc.MaxRecvMsgSize(limit)},
		OnRequest: func(r *testutil.Request) {
			mu.Lock()
			defer mu.Unlock()
			if len(r.Delta.GetInitialResourceVersions()) > 0 {
				resumes = append(resumes, r)
			}
		},
	})
	name := func(i int) string { return fmt.Sprintf("cluster-%05d", i) }
	resources := make([]proto.Message, members)
	for i := range resources {
		resources[i] = cluster(name(i), "one")
	}
	must(t, srv.Set("1", resources...))
	boot, err := bootstrap.Server(srv.Addr())
	must(t, err)
	log := &logBuffer{}
	c, err := client.New(client.Config{
		Bootstrap: boot, Variant: client.VariantDelta, ResourceTimeout: 3 * time.Second,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	must(t, err)
	defer c.Close()
	events := make(chan client.Event[any], 2*members)
	_, err = c.WatchAll(t.Context(), cds.Type, "*", func(b client.Batch[any]) {
		for _, ev := range b.Events {
			if ev.Kind != client.EventAmbientError && ev.Kind != client.EventRecovered {
				events <- ev
			}
		}
	})
	must(t, err)
	await(t, events, "synced *")

	srv.Stop()
	first, last := name(1), name(members-2) // of the members in their order the last do not fit
	resources[0], resources[members-1] = cluster(name(0), "two"), cluster(name(members-1), "two")
	must(t, srv.Set("2", slices.Delete(slices.Delete(resources, members-2, members-1), 1, 2)...))
	must(t, srv.Restart(true))
	var told []string
	for range 4 {
		select {
		case ev := <-events:
			told = append(told, fmt.Sprintf("%v %s", ev.Kind, ev.Name))
		case <-time.After(time.Minute):
			t.Fatalf("only %q were told", told)
		}
	}
	slices.Sort(told)
	want := []string{"does not exist " + first, "does not exist " + last, "updated " + name(0), "updated " + name(members-1)}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +told):\n%s", diff)
	}
	must(t, c.Close())
	<-c.Done()
	if len(events) > 0 {
		t.Errorf("%d more were told", len(events))
	}
	if len(resumes) != 1 || resumes[0].Size > limit {
		t.Fatalf("resumed by %v", resumes)
	}
	if listed := resumes[0].Delta.InitialResourceVersions; listed[first] == "" || listed[last] != "" {
		t.Errorf("%d versions were named, of %s %q and of %s %q", len(listed), first, listed[first], last, listed[last])
	}
	log.holds(t, "first requests are kept under")
}
