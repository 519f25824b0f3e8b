package testutil

import (
	"context"
	"errors"
	"slices"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// A rejected resource does not come again until it changes.
func TestCollectionReject(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	must(t, s.Set(named("a", "1")))
	p := newDeltaPeer(t, ctx, s, clusterURL)
	p.ask("a")
	p.take()
	p.reject("no such thing")
	settle(t, ctx, s)
	all := s.Requests()
	if n := all[len(all)-1]; s.Counters().NACKs != 1 || n.ErrorDetail().GetMessage() != "no such thing" || n.Stream != 1 {
		t.Errorf("%+v, the last request is %v", s.Counters(), n)
	}
	must(t, s.Set(named("a", "1")))
	must(t, s.Set(named("a", "2")))
	p.want("a@2")
}

// A change that was undone before it could be sent is none, and a name that is gone is not told again.
func TestCollectionUndone(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	must(t, s.Set(named("a", "1")))
	p := newDeltaPeer(t, ctx, s, clusterURL)
	p.ask("a", "b")
	p.want("a@1", "-b")
	settle(t, ctx, s)
	s.Hold(true)
	must(t, s.Set(named("a", "2"), named("b", "1")))
	must(t, s.Set(named("a", "1")))
	s.Remove(clusterURL, "b")
	s.Hold(false)
	must(t, s.Set(named("a", "3")))
	p.want("a@3")
}

// Requests that no server can understand end their stream.
func TestCollectionBadRequests(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	cc := connect(t, s.Addr())
	st := openDelta(t, ctx, cc)
	must(t, st.Send(&discoveryv3.DeltaDiscoveryRequest{}))
	_, err := st.Recv()
	ended(t, err, codes.InvalidArgument)
	own, err := cc.NewStream(ctx, bidi(), "/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters")
	must(t, err)
	must(t, own.SendMsg(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: endpointsURL}))
	ended(t, own.RecvMsg(new(discoveryv3.DeltaDiscoveryResponse)), codes.InvalidArgument)
	raw, err := cc.NewStream(ctx, bidi(), aggregatedDelta, grpc.ForceCodecV2(rawCodec{}))
	must(t, err)
	must(t, raw.SendMsg([]byte{0xff}))
	ended(t, raw.RecvMsg(new([]byte)), codes.InvalidArgument)
	none, err := cc.NewStream(ctx, bidi(), "/envoy.service.cluster.v3.ClusterDiscoveryService/None")
	must(t, err)
	ended(t, none.RecvMsg(new(discoveryv3.DeltaDiscoveryResponse)), codes.Unimplemented)
}

// The streams of single types know their type, and each service that there is.
func TestCollectionOwnStreams(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	must(t, s.Set(named("a", "1")))
	cc := connect(t, s.Addr())
	delta, err := cc.NewStream(ctx, bidi(), "/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters")
	must(t, err)
	must(t, delta.SendMsg(&discoveryv3.DeltaDiscoveryRequest{}))
	resp := new(discoveryv3.DeltaDiscoveryResponse)
	must(t, delta.RecvMsg(resp))
	if got := deltaText(resp); !slices.Equal(got, []string{"a@1"}) || resp.GetTypeUrl() != clusterURL {
		t.Errorf("delta gave %q of %s", got, resp.GetTypeUrl())
	}
	sotw, err := cc.NewStream(ctx, bidi(), "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters")
	must(t, err)
	must(t, sotw.SendMsg(&discoveryv3.DiscoveryRequest{ResourceNames: []string{"a"}}))
	full := new(discoveryv3.DiscoveryResponse)
	must(t, sotw.RecvMsg(full))
	if got := names(t, full); !slices.Equal(got, []string{"a"}) {
		t.Errorf("sotw gave %q", got)
	}
	must(t, sotw.CloseSend())
	ended(t, sotw.RecvMsg(full), codes.OK)
}

// Death and rebirth: the resources and the records stay, streams and connections do not.
func TestCollectionRestart(t *testing.T) {
	ctx := testContext(t)
	s := StartCollectionServer(t)
	if err := s.Restart(); !errors.Is(err, ErrRunning) {
		t.Errorf("restart of a running server: %v", err)
	}
	must(t, s.Set(named("a", "1"), named("b", "1")))
	cc := connect(t, s.Addr(), eager())
	p := deltaPeerOn(t, ctx, s, cc, clusterURL)
	p.ask("a", "b")
	p.want("a@1", "b@1")
	settle(t, ctx, s)
	s.Stop()
	s.Stop()
	_, err := p.stream.Recv()
	ended(t, err, codes.Unavailable)
	if c := s.Counters(); c.Open != 0 || len(s.Subscribed(clusterURL)) != 0 {
		t.Errorf("after the stop: %+v", c)
	}
	noLeak(t)
	s.Remove(clusterURL, "a")
	must(t, s.Restart())
	p = deltaPeerOn(t, ctx, s, cc, clusterURL)
	p.resume(map[string]string{"a": "1", "b": "1"}, "a", "b")
	p.want("-a")
	settle(t, ctx, s)
	if c, want := s.Counters(), (Counters{Streams: 2, Open: 1, Requests: 4, Responses: 2}); c != want {
		t.Errorf("counters are %+v, want %+v", c, want)
	}
	must(t, cc.Close())
	must(t, s.Await(ctx, func(c Counters) bool { return c.Open == 0 }))
}

func TestCollectionAwait(t *testing.T) {
	ctx := testContext(t)
	var hooked []*Request
	s := StartCollectionServer(t, OnRequest(func(_ *Stream, r *Request) { hooked = append(hooked, r) }))
	p := newDeltaPeer(t, ctx, s, clusterURL)
	p.ask("a")
	p.want("-a")
	all := s.Requests()
	if len(all) != 2 || all[1].Nonce() != "1" || all[0].Raw == nil {
		t.Errorf("requests are %v", all)
	}
	if !slices.Equal(hooked, all) {
		t.Errorf("the hook saw %v", hooked)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	must(t, s.Set(named("a", "1")))
	p.take() // and no answer
	if err := s.Settle(over); !errors.Is(err, context.Canceled) {
		t.Errorf("settle without an answer: %v", err)
	}
}

func TestCollectionBootstrap(t *testing.T) {
	s := StartCollectionServer(t)
	for _, delta := range []bool{false, true} {
		c := s.Bootstrap(delta, "au", "")
		must(t, c.Validate())
		if len(c.Servers) != 1 || c.Servers[0].URI != s.Addr() || c.Servers[0].Delta != delta {
			t.Errorf("servers are %+v", c.Servers)
		}
		for _, a := range []string{"au", ""} {
			if got := c.Authorities[a].Servers; len(got) != 1 || got[0].URI != s.Addr() {
				t.Errorf("servers of authority %q are %+v", a, got)
			}
		}
	}
}
