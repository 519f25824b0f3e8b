package grpcresolver_test

import (
	"net"
	"testing"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/load"
	"github.com/xdswatch/xdswatch/view/grpcresolver"
)

// RPCs are reported to the management server, if the cluster asks for it.
func TestReportLoad(t *testing.T) {
	t.Parallel()
	loads := viewtest.NewLoads()
	ctx, m := viewtest.Patience(t), viewtest.Management(t, loads.Option())
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	report, err := proto.Marshal(&orcav3.OrcaLoadReport{NamedMetrics: map[string]float64{"x": 2}})
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		// gRPC tells its policies that an RPC went well whose request came too late to be sent.
		if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		stream.SetTrailer(metadata.Pairs(load.MetricsHeader, string(report)))
		if method, _ := grpc.MethodFromServerStream(stream); method == "/s/fails" {
			return status.Error(codes.Internal, "as asked")
		}
		return stream.SendMsg(&emptypb.Empty{})
	}))
	go s.Serve(lis)
	t.Cleanup(s.Stop)
	port := uint32(lis.Addr().(*net.TCPAddr).Port)
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, "listener", `{match: {prefix: /s/}, route: {cluster: reported}}, {match: {prefix: /}, route: {cluster: silent}}`),
		viewtest.Reported(viewtest.Cluster("reported")), viewtest.Cluster("silent"),
		viewtest.Assignment("reported", viewtest.At(port)), viewtest.Assignment("silent", viewtest.At(port)))...)
	c := viewtest.Client(t, m)
	r := loads.Reporter(t, c)
	channel, err := grpc.NewClient("xdswatch:///listener",
		grpc.WithResolvers(grpcresolver.NewBuilder(c, grpcresolver.ReportLoad(r))), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer channel.Close()
	channel.Connect()
	loads.Await(t)
	for method, n := range map[string]int{"/s/works": 5, "/s/fails": 3, "/other": 2} {
		for range n {
			_, _ = invoke(ctx, channel, method, grpc.WaitForReady(true)) // some are to fail
		}
	}
	// What is counted of a closed channel is reported too.
	channel.Close()
	r.Close()
	if got, want := loads.Of("reported"), (viewtest.Load{Issued: 8, Succeeded: 5, Failed: 3, Localities: "here", Metrics: 16}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := loads.Of("silent"); got != (viewtest.Load{}) {
		t.Errorf("a cluster that asks for nothing: %+v", got)
	}
}
