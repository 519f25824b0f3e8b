package grpcresolver_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/view/grpcresolver"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // these tests wait and hardly compute
		panic(err)
	}
	m.Run()
}

// newChannel makes a channel over a client of its own.
func newChannel(t *testing.T, m *testutil.ManagementServer, target string, build func(*client.Client) resolver.Builder) (*grpc.ClientConn, *client.Client) {
	t.Helper()
	c := viewtest.Client(t, m)
	channel, err := grpc.NewClient(target, grpc.WithResolvers(build(c)), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { channel.Close() })
	return channel, c
}

func newBuilder(c *client.Client) resolver.Builder { return grpcresolver.NewBuilder(c) }

// backend is the port of a server that answers every method.
func backend(t *testing.T) uint32 {
	t.Helper()
	return counted(t, &atomic.Int64{})
}

// counting counts connections.
type counting struct {
	net.Listener
	n *atomic.Int64
}

func (l counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.n.Add(1)
	}
	return c, err
}

// counted is a backend that counts its connections.
func counted(t *testing.T, n *atomic.Int64) uint32 {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		return stream.SendMsg(&emptypb.Empty{})
	}))
	go s.Serve(counting{lis, n})
	t.Cleanup(s.Stop)
	return uint32(lis.Addr().(*net.TCPAddr).Port)
}

// closedPort is one that nobody listens on.
func closedPort(t *testing.T) uint32 { return uint32(viewtest.Nobody(t).Port) }

// invoke makes an RPC, and says which port answered.
func invoke(ctx context.Context, channel *grpc.ClientConn, method string, opts ...grpc.CallOption) (uint32, error) {
	var p peer.Peer
	err := channel.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}, append(opts, grpc.Peer(&p))...)
	if err != nil {
		return 0, err
	}
	return uint32(p.Addr.(*net.TCPAddr).Port), nil
}

// await makes RPCs until ok is true of the port that answered, or of the error.
func await(t *testing.T, ctx context.Context, channel *grpc.ClientConn, ok func(port uint32, err error) bool) {
	t.Helper()
	for {
		port, err := invoke(ctx, channel, "/s/m")
		if ok(port, err) {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("in the end port %d, %v", port, err)
		}
	}
}

func TestEDSFollowsEndpoints(t *testing.T) {
	t.Parallel()
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	a, b := backend(t), backend(t)
	viewtest.Set(t, m, "1", viewtest.Assignment("backend", viewtest.Locality(0, map[uint32]uint32{a: 1, b: 3})))
	channel, _ := newChannel(t, m, "xdswatch-eds:///backend", grpcresolver.NewEDSBuilder)
	// Both connections have to be there, until when one gets everything.
	for _, want := range []uint32{a, b} {
		await(t, ctx, channel, func(port uint32, err error) bool { return port == want })
	}
	got := map[uint32]int{}
	for range 400 {
		port, err := invoke(ctx, channel, "/s/m")
		if err != nil {
			t.Fatal(err)
		}
		got[port]++
	}
	if n := got[a]; n < 90 || n > 110 {
		t.Errorf("%d of 400 RPCs went to an endpoint with a quarter of the weight", n)
	}

	viewtest.Set(t, m, "2", viewtest.Assignment("backend", viewtest.At(a)))
	for until := 0; until < 20; {
		if port, err := invoke(ctx, channel, "/s/m"); err != nil {
			t.Fatal(err)
		} else if port == a {
			until++
		} else {
			until = 0
		}
	}
}

func TestRPCsAreToldWhy(t *testing.T) {
	t.Parallel()
	drop := viewtest.Assignment("drop", viewtest.At(1))
	drop.Policy = &endpointv3.ClusterLoadAssignment_Policy{}
	if err := protojson.Unmarshal([]byte(`{"drop_overloads": [{"category": "flood", "drop_percentage": {"numerator": 100}}]}`), drop.Policy); err != nil {
		t.Fatal(err)
	}
	sick := viewtest.Assignment("sick", viewtest.At(1))
	sick.Endpoints[0].LbEndpoints[0].HealthStatus = corev3.HealthStatus_UNHEALTHY
	m := viewtest.Complete(t)
	viewtest.Set(t, m, "1", drop, sick, viewtest.Assignment("empty"), viewtest.Assignment("refused", viewtest.At(closedPort(t))))
	for name, want := range map[string]string{
		"missing":                       `endpoints "missing" do not exist (`,
		"empty":                         `cluster "empty": the assignment has no localities (node "")`,
		"sick":                          `cluster "sick": none of 1 endpoints is healthy`,
		"drop":                          `cluster "drop" drops the RPC (flood)`,
		"refused":                       `connection refused`,
		"xdstp://nobody/no.such.Type/n": `nobody`,
	} {
		t.Run(name, func(t *testing.T) {
			channel, _ := newChannel(t, m, "xdswatch-eds:///"+name, grpcresolver.NewEDSBuilder)
			_, err := invoke(viewtest.Patience(t), channel, "/s/m")
			if status.Code(err) != codes.Unavailable || !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("the RPC ended with %v, want %v and %q", err, codes.Unavailable, want)
			}
		})
	}
}

func TestRemovedEndpointsAreNotUsed(t *testing.T) {
	t.Parallel()
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	viewtest.Set(t, m, "1", viewtest.Assignment("backend", viewtest.At(backend(t))))
	channel, _ := newChannel(t, m, "xdswatch-eds:///backend", grpcresolver.NewEDSBuilder)
	if _, err := invoke(ctx, channel, "/s/m"); err != nil {
		t.Fatal(err)
	}
	viewtest.Set(t, m, "2")
	await(t, ctx, channel, func(_ uint32, err error) bool { return status.Code(err) == codes.Unavailable })
	// An RPC that waits gets the endpoints that come.
	answered := make(chan error, 1)
	go func() {
		_, err := invoke(ctx, channel, "/s/m", grpc.WaitForReady(true))
		answered <- err
	}()
	viewtest.Set(t, m, "3", viewtest.Assignment("backend", viewtest.At(backend(t))))
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestPriorities(t *testing.T) {
	t.Parallel()
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	first, second := closedPort(t), backend(t)
	viewtest.Set(t, m, "1", viewtest.Assignment("backend", viewtest.At(first), viewtest.Locality(1, map[uint32]uint32{second: 1})))
	channel, _ := newChannel(t, m, "xdswatch-eds:///backend", grpcresolver.NewEDSBuilder)
	if port, err := invoke(ctx, channel, "/s/m", grpc.WaitForReady(true)); port != second {
		t.Errorf("port %d, %v: the second priority was not used", port, err)
	}
	first = backend(t)
	viewtest.Set(t, m, "2", viewtest.Assignment("backend", viewtest.At(first), viewtest.Locality(1, map[uint32]uint32{second: 1})))
	await(t, ctx, channel, func(port uint32, err error) bool { return port == first })
}

func TestClosedChannelStopsItsWatches(t *testing.T) {
	t.Parallel()
	for target, build := range map[string]func(*client.Client) resolver.Builder{
		"xdswatch-eds:///backend": grpcresolver.NewEDSBuilder, "xdswatch:///listener": newBuilder,
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			ctx, m := viewtest.Patience(t), viewtest.Management(t)
			port := backend(t)
			viewtest.Set(t, m, "1", append(viewtest.Listener(t, "listener", `{match: {prefix: /}, route: {cluster: backend}}`), viewtest.Cluster("backend"), viewtest.Assignment("backend", viewtest.At(port)))...)
			channel, c := newChannel(t, m, target, build)
			if got, err := invoke(ctx, channel, "/s/m"); got != port {
				t.Fatal(err)
			}
			channel.Close()
			// A stream that nobody uses is closed by the client.
			if err := m.Await(ctx, func(n testutil.Counters) bool { return n.Open == 0 }); err != nil {
				t.Error(err)
			}
			if rest := c.Dump(); len(rest) > 0 {
				t.Errorf("still there after the channel was closed: %+v", rest)
			}
		})
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	ctx, m := viewtest.Patience(t), viewtest.Complete(t)
	a, b := backend(t), backend(t)
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, "listener", `
		{match: {prefix: /a/, headers: [{name: x-canary, exact_match: "1"}]}, route: {cluster: b}},
		{match: {prefix: /a/, headers: [{name: ":authority", exact_match: other}]}, route: {cluster: b}},
		{match: {prefix: /a/}, route: {cluster_header: x-canary}},
		{match: {prefix: /a/o, headers: [{name: ":authority", exact_match: listener}]}, route: {cluster: b}},
		{match: {prefix: /a/}, route: {cluster: a}},
		{match: {path: /s/gone}, route: {cluster: missing}},
		{match: {path: /s/answer}, direct_response: {status: 200}},
		{match: {prefix: /s/m}, route: {weighted_clusters: {clusters: [{name: a, weight: 1}, {name: b, weight: 1}]}}}`),
		viewtest.Cluster("a"), viewtest.Cluster("b"), viewtest.Assignment("a", viewtest.At(a)), viewtest.Assignment("b", viewtest.At(b)))...)
	channel, _ := newChannel(t, m, "xdswatch:///listener", newBuilder)
	canary := metadata.AppendToOutgoingContext(ctx, "X-Canary", "1")
	for _, tt := range []struct {
		ctx    context.Context
		method string
		want   uint32
	}{{ctx, "/a/m", a}, {canary, "/a/m", b}, {ctx, "/a/n", a}, {ctx, "/a/o", b}} {
		if port, err := invoke(tt.ctx, channel, tt.method); port != tt.want {
			t.Errorf("%s went to %d, %v; want %d", tt.method, port, err, tt.want)
		}
	}
	for _, want := range []uint32{a, b} {
		await(t, ctx, channel, func(port uint32, err error) bool { return port == want })
	}
	for method, want := range map[string]string{
		"/nowhere":  "/nowhere: no route of the virtual host matches the request",
		"/s/answer": "/s/answer: the route does not forward (respond)",
		"/s/gone":   `"missing"`,
	} {
		if _, err := invoke(ctx, channel, method); status.Code(err) != codes.Unavailable || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s ended with %v, want %v and %q", method, err, codes.Unavailable, want)
		}
	}
}

// Endpoints of several clusters with the same first address, and others after it, have one connection, which stays while
// other clusters change.
func TestSameFirstAddress(t *testing.T) {
	t.Parallel()
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	var connections atomic.Int64
	same, moves := counted(t, &connections), []uint32{backend(t), backend(t)}
	several := viewtest.At(same)
	several.LbEndpoints[0].GetEndpoint().AdditionalAddresses = []*endpointv3.Endpoint_AdditionalAddress{
		{Address: viewtest.At(closedPort(t)).LbEndpoints[0].GetEndpoint().GetAddress()},
	}
	channel, _ := newChannel(t, m, "xdswatch:///listener", newBuilder)
	for i := range 20 {
		viewtest.Set(t, m, fmt.Sprint(i), append(viewtest.Listener(t, `"*"`, `{match: {prefix: /a}, route: {cluster: a}}`,
			`{match: {prefix: /b}, route: {cluster: b}}`, `{match: {prefix: /}, route: {cluster: c}}`),
			viewtest.Cluster("a"), viewtest.Cluster("b"), viewtest.Cluster("c"), viewtest.Assignment("a", several),
			viewtest.Assignment("b", viewtest.At(same)), viewtest.Assignment("c", viewtest.At(moves[i%2])))...)
		await(t, ctx, channel, func(port uint32, err error) bool { return port == moves[i%2] })
		for _, method := range []string{"/a/m", "/b/m"} {
			if port, err := invoke(ctx, channel, method); port != same {
				t.Fatalf("%s went to port %d, %v", method, port, err)
			}
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("there were %d connections", n)
	}
}

func TestMissingListener(t *testing.T) {
	t.Parallel()
	m := viewtest.Complete(t)
	viewtest.Set(t, m, "1")
	channel, _ := newChannel(t, m, "xdswatch:///nobody", newBuilder)
	_, err := invoke(viewtest.Patience(t), channel, "/s/m")
	if status.Code(err) != codes.Unavailable || !strings.Contains(fmt.Sprint(err), `"nobody"`) {
		t.Errorf("the RPC ended with %v, want %v and what is missing", err, codes.Unavailable)
	}
}

// An aggregate uses its first cluster that has endpoints.
func TestAggregates(t *testing.T) {
	t.Parallel()
	ctx, m := viewtest.Patience(t), viewtest.Complete(t)
	port := backend(t)
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, "listener", `{match: {prefix: /}, route: {cluster: all}}`),
		viewtest.Aggregate(t, "all", "missing", "empty", "b"), viewtest.Cluster("empty"), viewtest.Cluster("b"), viewtest.Assignment("empty"), viewtest.Assignment("b", viewtest.At(port)))...)
	channel, _ := newChannel(t, m, "xdswatch:///listener", newBuilder)
	if got, err := invoke(ctx, channel, "/s/m"); got != port {
		t.Errorf("the RPC went to %d, %v; want %d", got, err, port)
	}
}

// A leaf that has no endpoint to use neither drops nor limits the RPCs of its aggregate, which the next
// leaf takes. The last one drops them all the same.
//
// spec: VIEW-63, VIEW-34
func TestUnusableLeafDropsNothing(t *testing.T) {
	t.Parallel()
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	port := backend(t)
	drops, limited := viewtest.Assignment("drops"), viewtest.Cluster("limited")
	drops.Policy = &endpointv3.ClusterLoadAssignment_Policy{}
	if err := protojson.Unmarshal([]byte(`{"drop_overloads": [{"category": "flood", "drop_percentage": {"numerator": 100}}]}`), drops.Policy); err != nil {
		t.Fatal(err)
	}
	limited.CircuitBreakers = &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{MaxRequests: wrapperspb.UInt32(0)}}}
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, "listener",
		`{match: {path: /s/last}, route: {cluster: last}}`, `{match: {prefix: /}, route: {cluster: all}}`),
		viewtest.Aggregate(t, "all", "drops", "limited", "b"), viewtest.Aggregate(t, "last", "limited", "drops"),
		viewtest.Cluster("drops"), drops, limited, viewtest.Assignment("limited", viewtest.At(closedPort(t))),
		viewtest.Cluster("b"), viewtest.Assignment("b", viewtest.At(port)))...)
	channel, _ := newChannel(t, m, "xdswatch:///listener", newBuilder)
	if got, err := invoke(ctx, channel, "/s/m"); got != port {
		t.Errorf("the RPC went to %d, %v; want %d", got, err, port)
	}
	if _, err := invoke(ctx, channel, "/s/last"); err == nil || !strings.Contains(err.Error(), `cluster "drops" drops the RPC (flood)`) {
		t.Errorf("without another leaf the RPC ended with %v", err)
	}
}

// A call keeps its cluster, and the cluster its endpoints, while routes have gone on.
func TestReplacedClusterServesRunningRPCs(t *testing.T) {
	t.Parallel()
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	a, b := backend(t), backend(t)
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, "listener", `{match: {prefix: /}, route: {cluster: a}}`), viewtest.Cluster("a"), viewtest.Assignment("a", viewtest.At(a)))...)
	channel, _ := newChannel(t, m, "xdswatch:///listener", newBuilder)
	stream, err := channel.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/s/stream")
	if err != nil {
		t.Fatal(err)
	}
	viewtest.Set(t, m, "2", append(viewtest.Listener(t, "listener", `{match: {prefix: /}, route: {cluster: b}}`), viewtest.Cluster("a"), viewtest.Cluster("b"), viewtest.Assignment("a", viewtest.At(a)), viewtest.Assignment("b", viewtest.At(b)))...)
	await(t, ctx, channel, func(port uint32, err error) bool {
		if err != nil {
			t.Fatal(err)
		}
		return port == b
	})
	if err := stream.SendMsg(&emptypb.Empty{}); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
		t.Error(err)
	}
}

// The status with which a management server ends its streams is none of an RPC: RPCs end with
// UNAVAILABLE, and those that wait for ready wait.
//
// spec: VIEW-28
func TestStatusOfTheServerIsNotTheRPCs(t *testing.T) {
	t.Parallel()
	for target, build := range map[string]func(*client.Client) resolver.Builder{
		"xdswatch-eds:///backend": grpcresolver.NewEDSBuilder, "xdswatch:///listener": newBuilder,
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			var admitted atomic.Bool
			ctx, m := viewtest.Patience(t), viewtest.Management(t, grpc.StreamInterceptor(func(srv any, st grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
				if !admitted.Load() {
					return status.Error(codes.PermissionDenied, "not for you")
				}
				return h(srv, st)
			}))
			viewtest.Set(t, m, "1", append(viewtest.Listener(t, "listener", `{match: {prefix: /}, route: {cluster: backend}}`),
				viewtest.Cluster("backend"), viewtest.Assignment("backend", viewtest.At(backend(t))))...)
			channel, _ := newChannel(t, m, target, build)
			if _, err := invoke(ctx, channel, "/s/m"); status.Code(err) != codes.Unavailable || !strings.Contains(fmt.Sprint(err), "not for you") {
				t.Errorf("the RPC ended with %v, want %v and the cause", err, codes.Unavailable)
			}
			answered := make(chan error, 1)
			go func() {
				_, err := invoke(ctx, channel, "/s/m", grpc.WaitForReady(true))
				answered <- err
			}()
			admitted.Store(true)
			if err := <-answered; err != nil {
				t.Errorf("an RPC that waits ended with %v", err)
			}
		})
	}
}

// A DNS cluster has its endpoint in itself, mostly without a weight of the locality, and gRPC resolves
// its host name.
//
// spec: VIEW-17
func TestDNSClusters(t *testing.T) {
	t.Parallel()
	for _, kind := range []clusterv3.Cluster_DiscoveryType{clusterv3.Cluster_LOGICAL_DNS, clusterv3.Cluster_STRICT_DNS, clusterv3.Cluster_STATIC} {
		ctx, m := viewtest.Patience(t), viewtest.Management(t)
		port := backend(t)
		at := viewtest.At(port)
		at.LoadBalancingWeight = nil
		if kind != clusterv3.Cluster_STATIC {
			at.LbEndpoints[0].GetEndpoint().GetAddress().GetSocketAddress().Address = "localhost"
		}
		viewtest.Set(t, m, "1", append(viewtest.Listener(t, "listener", `{match: {prefix: /}, route: {cluster: dns}}`), &clusterv3.Cluster{
			Name: "dns", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: kind}, LoadAssignment: viewtest.Assignment("dns", at),
		})...)
		channel, _ := newChannel(t, m, "xdswatch:///listener", newBuilder)
		if got, err := invoke(ctx, channel, "/s/m"); got != port {
			t.Errorf("%v: the RPC went to %d, %v; want %d", kind, got, err, port)
		}
	}
}
