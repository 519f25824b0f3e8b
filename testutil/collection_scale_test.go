package testutil

import (
	"fmt"
	"maps"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"

	"github.com/xdswatch/xdswatch/internal/race"
)

// scale is the number of members of the large glob: the race detector makes it slow.
func scale() int {
	if race.Enabled {
		return 10_000
	}
	return 100_000
}

// A hundred thousand members come, each once; a resume of them all costs nothing, and a change of
// them all is one push.
func TestCollectionScale(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a hundred thousand members")
	}
	ctx := testContext(t)
	s := StartCollectionServer(t)
	n := scale()
	resources, want := many(n, "f/", "1")
	must(t, s.Set(resources...))
	p := newDeltaPeer(t, ctx, s, clusterURL)
	p.ask(clustersAt + "f/*")
	sameVersions(t, p.gather(n), want)
	settle(t, ctx, s)

	p = newDeltaPeer(t, ctx, s, clusterURL)
	p.resume(want, clustersAt+"f/*")
	p.want()
	settle(t, ctx, s)

	resources, want = many(n, "f/", "2")
	must(t, s.Set(resources...))
	sameVersions(t, p.gather(n), want)
}

// A client that does not read delays nobody, is owed no more than the newest state, and can
// be got rid of.
func TestCollectionSilentReader(t *testing.T) {
	if testing.Short() {
		t.Skip("long: many responses")
	}
	ctx := testContext(t)
	s := StartCollectionServer(t)
	const n = 1000
	resources, _ := many(n, "f/", "0")
	must(t, s.Set(resources...))
	cc := connect(t, s.Addr(), grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))
	slow := deltaPeerOn(t, ctx, s, cc, clusterURL)
	slow.ask(clustersAt + "f/*")
	gone := deltaPeerOn(t, ctx, s, connect(t, s.Addr()), clusterURL)
	gone.ask(clustersAt + "f/*")

	brisk := newDeltaPeer(t, ctx, s, clusterURL)
	brisk.ask(clustersAt + "f/*")
	brisk.gather(n)
	for v := 1; v <= 10; v++ {
		resources, want := many(n, "f/", fmt.Sprint(v))
		must(t, s.Set(resources...))
		sameVersions(t, brisk.gather(n), want)
	}
	seen, last := 0, make(map[string]string)
	_, want := many(n, "f/", "10")
	for !maps.Equal(last, want) {
		for _, r := range slow.take().GetResources() {
			last[r.GetName()] = r.GetVersion()
			seen++
		}
	}
	if seen >= 11*n {
		t.Errorf("the slow reader was sent %d resources, every change of %d", seen, n)
	}
}

// Stop ends streams whose clients do not read.
func TestCollectionStopWithSilentReader(t *testing.T) {
	if testing.Short() {
		t.Skip("long: large responses")
	}
	ctx := testContext(t)
	s := StartCollectionServer(t)
	const n = 5000
	resources, _ := many(n, "f/", "1")
	must(t, s.Set(resources...))
	cc := connect(t, s.Addr(), grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))
	p := deltaPeerOn(t, ctx, s, cc, clusterURL)
	p.ask(clustersAt + "f/*")
	for v := range 3 { // of which the first may lie in the connection's buffers
		must(t, s.Await(ctx, func(c Counters) bool { return c.Responses > 0 }))
		resources, _ := many(n, "f/", fmt.Sprint("more", v))
		must(t, s.Set(resources...))
	}
	s.Stop()
	if c := s.Counters(); c.Open != 0 || c.Responses > 3 {
		t.Errorf("%+v with a client that does not read", c)
	}
	noLeak(t)
}

// Many clients and many changes at once end in the same state for all.
func TestCollectionManyClients(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	_, want := many(50, "f/", "30")
	done := make(chan error)
	const clients = 8
	for range clients {
		stream := openDelta(t, ctx, connect(t, s.Addr()))
		must(t, stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusterURL, ResourceNamesSubscribe: []string{clustersAt + "f/*"}}))
		go func() { done <- follow(stream, want) }()
	}
	for v := 1; v < 30; v++ {
		resources, _ := many(50, "f/", fmt.Sprint(v))
		for _, r := range resources {
			must(t, s.Set(r))
		}
		s.Remove(clusterURL, resources[v].GetName())
	}
	resources, _ := many(50, "f/", "30")
	must(t, s.Set(resources...))
	for range clients {
		must(t, <-done)
	}
	settle(t, ctx, s)
}

// follow receives and accepts until the client holds what is wanted.
func follow(stream deltaClient, want map[string]string) error {
	held := make(map[string]string)
	for !maps.Equal(held, want) {
		resp, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("with %d held: %w", len(held), err)
		}
		for _, r := range resp.GetResources() {
			held[r.GetName()] = r.GetVersion()
		}
		for _, name := range resp.GetRemovedResources() {
			delete(held, name)
		}
		if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusterURL, ResponseNonce: resp.GetNonce()}); err != nil {
			return err
		}
	}
	return nil
}
