package edsresolver_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/examples/grpcresolver/edsresolver"
	"github.com/xdswatch/xdswatch/testutil"
)

// newChannel makes a channel to the target, over a client of its own.
func newChannel(t *testing.T, management *testutil.ManagementServer, target string, timeout time.Duration) (*grpc.ClientConn, *client.Client) {
	t.Helper()
	boot, err := bootstrap.Server(management.Addr())
	if err != nil {
		t.Fatal(err)
	}
	// Delta: only there can a server remove endpoints.
	c, err := client.New(client.Config{Bootstrap: boot, Variant: client.VariantDelta, ResourceTimeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	channel, err := grpc.NewClient(target,
		grpc.WithResolvers(edsresolver.NewBuilder(c)),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { channel.Close() })
	return channel, c
}

func newManagement(t *testing.T) *testutil.ManagementServer {
	t.Helper()
	m, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	return m
}

// serveHealth starts a backend and describes it as endpoints.
func serveHealth(t *testing.T, name string) *endpointv3.ClusterLoadAssignment {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	healthpb.RegisterHealthServer(s, health.NewServer())
	go s.Serve(lis)
	t.Cleanup(s.Stop)
	e := lb("127.0.0.1", corev3.HealthStatus_HEALTHY)
	e.GetEndpoint().GetAddress().GetSocketAddress().PortSpecifier = &corev3.SocketAddress_PortValue{
		PortValue: uint32(lis.Addr().(*net.TCPAddr).Port),
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{locality(0, e)}}
}

func check(ctx context.Context, channel *grpc.ClientConn) error {
	_, err := healthpb.NewHealthClient(channel).Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

func TestRemovedEndpointsAreNotUsed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	management := newManagement(t)
	if err := management.Set("1", serveHealth(t, "backend")); err != nil {
		t.Fatal(err)
	}
	channel, _ := newChannel(t, management, "eds:///backend", 0)
	if err := check(ctx, channel); err != nil {
		t.Fatal(err)
	}
	if err := management.Set("2"); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil {
		err = check(ctx, channel)
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("RPC ended with %v, want %v", err, codes.Unavailable)
	}
}

func TestMissingEndpointsFailRPCs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	management := newManagement(t)
	if err := management.Set("1"); err != nil {
		t.Fatal(err)
	}
	channel, _ := newChannel(t, management, "eds:///backend", 100*time.Millisecond)
	err := check(ctx, channel)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), `endpoints "backend" do not exist`) {
		t.Errorf("RPC ended with %v, want %v and what does not exist", err, codes.Unavailable)
	}
}

func TestMalformedNameFailsRPCs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	channel, _ := newChannel(t, newManagement(t), "eds:///xdstp://nobody/no.such.Type/name", 0)
	err := check(ctx, channel)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("RPC ended with %v, want %v and the name", err, codes.Unavailable)
	}
}

func TestClosedChannelStopsItsWatch(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	management := newManagement(t)
	if err := management.Set("1", serveHealth(t, "backend")); err != nil {
		t.Fatal(err)
	}
	channel, c := newChannel(t, management, "eds:///backend", 0)
	if err := check(ctx, channel); err != nil {
		t.Fatal(err)
	}
	if n := len(c.Dump()); n != 1 {
		t.Fatalf("the client has %d resources, want 1", n)
	}
	channel.Close()
	// A stream that nobody uses is closed by the client.
	if _, err := management.Await(ctx, func(n testutil.Counters) bool { return n.Open == 0 }); err != nil {
		t.Error(err)
	}
	if rest := c.Dump(); len(rest) > 0 {
		t.Errorf("still there after the channel was closed: %+v", rest)
	}
}
