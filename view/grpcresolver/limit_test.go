package grpcresolver_test

import (
	"net"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/view/circuit"
	"github.com/xdswatch/xdswatch/view/grpcresolver"
)

// The channels of a builder, and those of builders that share breakers, share the limit of a
// cluster. That of an aggregate is its leaf's. An RPC too many fails at once, and is a drop.
//
// spec: VIEW-66, VIEW-34
func TestMaxRequests(t *testing.T) {
	t.Parallel()
	loads := viewtest.NewLoads()
	ctx, m := viewtest.Patience(t), viewtest.Management(t, loads.Option())
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := stream.SendMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		<-stream.Context().Done()
		return nil
	}))
	go s.Serve(lis)
	t.Cleanup(s.Stop)
	limited := viewtest.Reported(viewtest.Cluster("a"))
	limited.CircuitBreakers = &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{MaxRequests: wrapperspb.UInt32(2)}}}
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, "listener",
		`{match: {path: /s/all}, route: {cluster: all}}`, `{match: {prefix: /}, route: {cluster: a}}`),
		limited, viewtest.Assignment("a", viewtest.At(uint32(lis.Addr().(*net.TCPAddr).Port))), viewtest.Aggregate(t, "all", "a"))...)
	c := viewtest.Client(t, m)
	r := loads.Reporter(t, c)
	shared := &circuit.Breakers{}
	one := grpcresolver.NewBuilder(c, grpcresolver.ShareBreakers(shared))
	two := grpcresolver.NewBuilder(c, grpcresolver.ShareBreakers(shared), grpcresolver.ReportLoad(r))
	alone := grpcresolver.NewBuilder(c)
	dial := func(b resolver.Builder) *grpc.ClientConn {
		channel, err := grpc.NewClient("xdswatch:///listener", grpc.WithResolvers(b), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { channel.Close() })
		return channel
	}
	// begin begins an RPC that runs until its channel is closed, unless it fails.
	begin := func(channel *grpc.ClientConn, method string) error {
		stream, err := channel.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, grpc.WaitForReady(true))
		if err == nil {
			err = stream.RecvMsg(&emptypb.Empty{})
		}
		return err
	}
	a, b, other := dial(one), dial(two), dial(alone)
	if err := begin(a, "/s/all"); err != nil {
		t.Fatal(err)
	}
	if err := begin(dial(one), "/s/m"); err != nil {
		t.Fatal(err)
	}
	b.Connect()
	loads.Await(t)
	for _, method := range []string{"/s/m", "/s/all"} {
		err := begin(b, method)
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), `cluster "a" has 2 RPCs at a time already (max_requests)`) {
			t.Errorf("the third RPC, %s, ended with %v", method, err)
		}
	}
	if err := begin(other, "/s/m"); err != nil {
		t.Errorf("with other breakers: %v", err)
	}
	a.Close() // ends its RPC
	for {
		if err = begin(b, "/s/m"); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		t.Errorf("when one has ended: %v", err)
	}
	b.Close()
	r.Close()
	if got := loads.Of("a"); got.Dropped < 2 || got.Issued != 1 {
		t.Errorf("reported: %+v", got)
	}
}
