package testutil

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	secretv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// everyType is a resource named "a" of each type that the server can serve.
func everyType() []proto.Message {
	return []proto.Message{
		&listenerv3.Listener{Name: "a"},
		&routev3.RouteConfiguration{Name: "a"},
		&routev3.ScopedRouteConfiguration{Name: "a"},
		&routev3.VirtualHost{Name: "a"},
		cluster("a"),
		&endpointv3.ClusterLoadAssignment{ClusterName: "a"},
		&secretv3.Secret{Name: "a"},
		&runtimev3.Runtime{Name: "a"},
		&corev3.TypedExtensionConfig{Name: "a"},
	}
}

// names are the names of the clusters in a response.
func names(t *testing.T, resp *discoveryv3.DiscoveryResponse) []string {
	t.Helper()
	var out []string
	for _, a := range resp.GetResources() {
		c := new(clusterv3.Cluster)
		must(t, a.UnmarshalTo(c))
		out = append(out, c.GetName())
	}
	slices.Sort(out)
	return out
}

func ack(resp *discoveryv3.DiscoveryResponse, names ...string) *discoveryv3.DiscoveryRequest {
	return &discoveryv3.DiscoveryRequest{
		TypeUrl: resp.GetTypeUrl(), VersionInfo: resp.GetVersionInfo(),
		ResponseNonce: resp.GetNonce(), ResourceNames: names,
	}
}

func TestManagedSotW(t *testing.T) {
	for _, cfg := range []ManagementConfig{{}, {ADS: true}, {Ordered: true}, {ADS: true, Ordered: true}} {
		t.Run(fmt.Sprintf("ads=%v,ordered=%v", cfg.ADS, cfg.Ordered), func(t *testing.T) {
			ctx := testContext(t)
			m := StartManagementServer(t, cfg)
			client := openSotW(t, ctx, connect(t, m.Addr()))
			first := clusterRequest()
			first.Node = &corev3.Node{Id: "whoever"}
			must(t, client.Send(first)) // answered once there is a snapshot
			must(t, m.Await(ctx, func(c Counters) bool { return c.Requests == 1 }))

			must(t, m.Set("1", cluster("a"), cluster("b")))
			resp := recv(t, client)
			if got := names(t, resp); resp.GetVersionInfo() != "1" || !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("first response is version %q of %q", resp.GetVersionInfo(), got)
			}
			must(t, client.Send(ack(resp)))
			must(t, m.Await(ctx, func(c Counters) bool { return c.Requests == 2 }))

			must(t, m.Set("2")) // the last resources of the type go
			resp = recv(t, client)
			if got := names(t, resp); resp.GetVersionInfo() != "2" || len(got) != 0 {
				t.Errorf("second response is version %q of %q", resp.GetVersionInfo(), got)
			}
		})
	}
}

func TestManagedDelta(t *testing.T) {
	ctx := testContext(t)
	m := StartManagementServer(t, ManagementConfig{})
	must(t, m.Set("1", cluster("a"), cluster("b")))
	client := openDelta(t, ctx, connect(t, m.Addr()))
	must(t, client.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusterURL, ResourceNamesSubscribe: []string{"a", "b"}}))
	resp := recv(t, client)
	if len(resp.GetResources()) != 2 || len(resp.GetRemovedResources()) != 0 {
		t.Errorf("first response is %v", resp)
	}
	must(t, client.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusterURL, ResponseNonce: resp.GetNonce()}))
	must(t, m.Await(ctx, func(c Counters) bool { return c.Requests == 2 }))
	must(t, m.Set("2", cluster("a")))
	resp = recv(t, client)
	if len(resp.GetResources()) != 0 || !slices.Equal(resp.GetRemovedResources(), []string{"b"}) {
		t.Errorf("second response is %v", resp)
	}
}

// Every type of the cache is served, on the aggregated stream and on its own, in both variants.
func TestManagedTypes(t *testing.T) {
	ctx := testContext(t)
	m := StartManagementServer(t, ManagementConfig{})
	must(t, m.Set("1", everyType()...))
	cc := connect(t, m.Addr())
	served := 0
	for method, url := range methods() {
		switch {
		case url == "":
		case cache.GetResponseType(url) == types.UnknownType:
			st, err := cc.NewStream(ctx, bidi(), method)
			must(t, err)
			ended(t, st.RecvMsg(new(discoveryv3.DeltaDiscoveryResponse)), codes.Unimplemented)
		case isDelta(method):
			served++
			deltaServes(t, ctx, cc, method, url)
			deltaServes(t, ctx, cc, aggregatedDelta, url)
		default:
			served++
			sotwServes(t, ctx, cc, method, url)
			sotwServes(t, ctx, cc, aggregatedSotW, url)
		}
	}
	if served < 17 {
		t.Errorf("%d methods of single types are served, want 17", served)
	}
}

func deltaServes(t *testing.T, ctx context.Context, cc *grpc.ClientConn, method, url string) {
	t.Helper()
	st, err := cc.NewStream(ctx, bidi(), method)
	must(t, err)
	must(t, st.SendMsg(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, ResourceNamesSubscribe: []string{"a"}}))
	resp := new(discoveryv3.DeltaDiscoveryResponse)
	must(t, st.RecvMsg(resp))
	if got := resp.GetResources(); len(got) != 1 || got[0].GetName() != "a" {
		t.Errorf("%s on %s: got %v", url, method, got)
	}
	must(t, st.CloseSend())
	ended(t, st.RecvMsg(resp), codes.OK)
}

func sotwServes(t *testing.T, ctx context.Context, cc *grpc.ClientConn, method, url string) {
	t.Helper()
	st, err := cc.NewStream(ctx, bidi(), method)
	must(t, err)
	must(t, st.SendMsg(&discoveryv3.DiscoveryRequest{TypeUrl: url, ResourceNames: []string{"a"}}))
	resp := new(discoveryv3.DiscoveryResponse)
	must(t, st.RecvMsg(resp))
	if got := resp.GetResources(); len(got) != 1 || got[0].GetTypeUrl() != url {
		t.Errorf("%s on %s: got %v", url, method, got)
	}
	must(t, st.CloseSend())
	ended(t, st.RecvMsg(resp), codes.OK)
}

func TestManagedCountsAndReports(t *testing.T) {
	ctx := testContext(t)
	var mu sync.Mutex
	var log []*Request
	m := StartManagementServer(t, ManagementConfig{OnRequest: func(r *Request) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, r)
	}})
	must(t, m.Set("1", cluster("a")))
	cc := connect(t, m.Addr())
	client := openSotW(t, ctx, cc)
	first := clusterRequest("a")
	first.Node = &corev3.Node{Id: "n"}
	must(t, client.Send(first))
	nack := ack(recv(t, client), "a")
	nack.VersionInfo = ""
	nack.ErrorDetail = &statuspb.Status{Code: 3, Message: "no"}
	must(t, client.Send(nack))
	recv(t, client) // go-control-plane answers a NACK with the same again
	must(t, openDelta(t, ctx, cc).Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusterURL}))
	must(t, client.CloseSend())
	must(t, m.Await(ctx, func(c Counters) bool {
		return c.Requests == 3 && c.Open == 1 && c.Responses == 3
	}))
	if got, want := m.Counters(), (Counters{Streams: 2, Open: 1, Requests: 3, NACKs: 1, Responses: 3}); got != want {
		t.Errorf("counters are %+v, want %+v", got, want)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, r := range log {
		switch {
		case r.Delta != nil:
			if r.Stream != 2 {
				t.Errorf("delta request on stream %d, want 2", r.Stream)
			}
		case r.ErrorDetail() != nil:
			// What the client left out is not filled in.
			if r.Stream != 1 || r.Node() != nil || r.Size != proto.Size(nack) {
				t.Errorf("NACK is %v with node %v, %d bytes", r, r.Node(), r.Size)
			}
		default:
			if r.Node().GetId() != "n" {
				t.Errorf("first request has node %v", r.Node())
			}
		}
	}
	if len(log) != 3 {
		t.Errorf("%d requests were reported, want 3", len(log))
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := m.Await(ended, func(Counters) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("await with a context that ended: %v", err)
	}
}

func TestManagedRestart(t *testing.T) {
	ctx := testContext(t)
	m := StartManagementServer(t, ManagementConfig{})
	must(t, m.Set("1", cluster("a")))
	if err := m.Restart(true); !errors.Is(err, ErrRunning) {
		t.Errorf("restart of a running server: %v", err)
	}
	cc := connect(t, m.Addr(), eager())
	ask := func() sotwClient {
		client := openSotW(t, ctx, cc)
		must(t, client.Send(clusterRequest("a")))
		return client
	}
	// stop stops the server and waits until the client knows it.
	stop := func(client sotwClient) {
		m.Stop()
		m.Stop()
		_, err := client.Recv()
		ended(t, err, codes.Unavailable)
	}
	client := ask()
	recv(t, client)

	stop(client)
	if conn, err := net.Dial("tcp", m.Addr()); err == nil {
		conn.Close()
		t.Error("a stopped server takes connections")
	}
	if c := m.Counters(); c.Open != 0 {
		t.Errorf("after the stop %d streams are open", c.Open)
	}

	must(t, m.Restart(true))
	client = ask()
	if resp := recv(t, client); resp.GetVersionInfo() != "1" {
		t.Errorf("kept snapshot has version %q, want 1", resp.GetVersionInfo())
	}

	stop(client)
	must(t, m.Set("2", cluster("a")))
	must(t, m.Restart(true))
	client = ask()
	if resp := recv(t, client); resp.GetVersionInfo() != "2" {
		t.Errorf("snapshot set while stopped has version %q, want 2", resp.GetVersionInfo())
	}

	stop(client)
	must(t, m.Restart(false))
	if _, err := m.Cache().GetSnapshot(NodeKey); err == nil {
		t.Error("the snapshot outlived a restart that drops it")
	}
	client = ask()
	must(t, m.Await(ctx, func(c Counters) bool { return c.Requests == 4 }))
	must(t, m.Set("3", cluster("a")))
	if resp := recv(t, client); resp.GetVersionInfo() != "3" {
		t.Errorf("first snapshot after the restart has version %q, want 3", resp.GetVersionInfo())
	}
}

// A restart waits for its port, which may be taken for a while.
func TestManagedRestartWaitsForThePort(t *testing.T) {
	m := StartManagementServer(t, ManagementConfig{})
	m.Stop()
	lis, err := net.Listen("tcp", m.Addr())
	must(t, err)
	timer := time.AfterFunc(100*time.Millisecond, func() { lis.Close() })
	defer timer.Stop()
	must(t, m.Restart(true))
}

func TestManagedFaults(t *testing.T) {
	m := StartManagementServer(t, ManagementConfig{})
	if err := m.Set("1", &anypb.Any{}); !errors.Is(err, ErrUnsupportedType) {
		t.Errorf("set of an unknown type: %v", err)
	}
	if _, err := NewManagementServer(ManagementConfig{Addr: m.Addr()}); err == nil {
		t.Error("two servers listen on one port")
	}
}

// A connection that never finishes its handshake does not hold up Stop.
func TestManagedStopWithSilentConnection(t *testing.T) {
	m := StartManagementServer(t, ManagementConfig{})
	conn, err := net.Dial("tcp", m.Addr())
	must(t, err)
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	m.Stop()
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("stop took %v", took)
	}
	noLeak(t)
}

func TestManagedTLSAndMaxAge(t *testing.T) {
	ctx := testContext(t)
	ca, cert := issue(t, CertOptions{IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	pair, err := cert.TLS()
	must(t, err)
	m := StartManagementServer(t, ManagementConfig{
		TLS:  &tls.Config{Certificates: []tls.Certificate{pair}},
		GRPC: []grpc.ServerOption{grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 50 * time.Millisecond})},
	})
	must(t, m.Set("1", cluster("a")))
	cc := connectTo(t, m.Addr(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: ca.Pool()})))
	client := openSotW(t, ctx, cc)
	awaitIdle(t, ctx, cc)
	must(t, client.Send(clusterRequest("a")))
	if got := names(t, recv(t, client)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("after GOAWAY the stream gave %q", got)
	}
}
