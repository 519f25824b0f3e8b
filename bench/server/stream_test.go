package main

import (
	"net"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/xdswatch/xdswatch/bench/kit"
)

type deltaStream = discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient

// open opens a stream to the server of a number.
func open(t *testing.T, s *server, number int) deltaStream {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := s.grpc(number)
	go g.Serve(counted{l, s})
	t.Cleanup(g.Stop)
	cc, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	ss, err := discoveryv3.NewAggregatedDiscoveryServiceClient(cc).DeltaAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ss
}

// exchange sends a request and returns the response to it.
func exchange(t *testing.T, ss deltaStream, r *discoveryv3.DeltaDiscoveryRequest) *discoveryv3.DeltaDiscoveryResponse {
	t.Helper()
	r.TypeUrl = kit.CDS
	if err := ss.Send(r); err != nil {
		t.Fatal(err)
	}
	resp, err := ss.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestServersShareTheResources(t *testing.T) {
	sc := kit.Scenario{Variant: "delta", Type: "cds", Work: kit.Load, N: 8, Authorities: 4, Servers: 2}
	s := newServer("")
	s.do(kit.Op{Op: kit.OpScenario, Scenario: sc})
	names := sc.Names()
	for number := range 2 {
		mine := names[number*4 : number*4+4]
		resp := exchange(t, open(t, s, number), &discoveryv3.DeltaDiscoveryRequest{ResourceNamesSubscribe: mine})
		if len(resp.Resources) != 4 {
			t.Fatalf("server %d sent %d resources", number, len(resp.Resources))
		}
		for i, r := range resp.Resources {
			if r.Name != mine[i] {
				t.Errorf("server %d sent %q, want %q", number, r.Name, mine[i])
			}
		}
	}
	if st := s.do(kit.Op{Op: kit.OpStats}); st.Streams != 2 || st.Conns != 2 {
		t.Errorf("%d streams on %d connections, want 2 on 2", st.Streams, st.Conns)
	}
}

func TestGlobHeartbeats(t *testing.T) {
	sc := kit.Scenario{Variant: "delta", Type: "cds", Work: kit.Heartbeat, N: 3, Authorities: 1, Servers: 1, Glob: true, TTL: 60}
	s := newServer("")
	s.do(kit.Op{Op: kit.OpScenario, Scenario: sc})
	ss := open(t, s, 0)
	resp := exchange(t, ss, &discoveryv3.DeltaDiscoveryRequest{ResourceNamesSubscribe: sc.Names()})
	if len(resp.Resources) != 3 || resp.Resources[2].Resource == nil {
		t.Fatalf("the members are %v", resp.Resources)
	}
	s.do(kit.Op{Op: kit.OpUpdate, U: 2})
	for range 2 {
		resp = exchange(t, ss, &discoveryv3.DeltaDiscoveryRequest{ResponseNonce: resp.Nonce})
		if len(resp.Resources) != 3 || resp.Resources[2].Resource != nil || resp.Resources[2].Ttl.GetSeconds() != 60 {
			t.Fatalf("the heartbeats are %v", resp.Resources)
		}
		if st := s.do(kit.Op{Op: kit.OpIdle}); st.Err == "" {
			t.Error("idle with a round that is not acknowledged")
		}
	}
	if err := ss.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: kit.CDS, ResponseNonce: resp.Nonce}); err != nil {
		t.Fatal(err)
	}
	if st := s.do(kit.Op{Op: kit.OpIdle, WaitMS: int(10 * time.Second / time.Millisecond)}); st.Err != "" {
		t.Error(st.Err)
	}
}
