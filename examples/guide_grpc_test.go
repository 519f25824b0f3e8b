package examples_test

import (
	"fmt"
	"net"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/view/grpcresolver"
)

// dial makes a channel whose servers a management server names: of a listener with its routes
// ("xdswatch:///orders"), or of endpoints alone ("xdswatch-eds:///orders"). Channels share the client,
// and with it one stream.
func dial(c *client.Client, target string) (*grpc.ClientConn, error) {
	return grpc.NewClient(target,
		grpc.WithResolvers(grpcresolver.NewBuilder(c), grpcresolver.NewEDSBuilder(c)),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
}

func Example_grpc() {
	lis := must(net.Listen("tcp", "127.0.0.1:0"))
	backend := grpc.NewServer()
	defer backend.Stop()
	healthpb.RegisterHealthServer(backend, health.NewServer())
	go backend.Serve(lis)
	m := manage(slices.Concat(routed("orders"), clustered("orders", lis.Addr().String()))...)
	defer m.Stop()
	c := connect(m)
	defer c.Close()

	for _, target := range []string{"xdswatch:///ingress", "xdswatch-eds:///orders"} {
		channel := must(dial(c, target))
		defer channel.Close()
		answer, err := healthpb.NewHealthClient(channel).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
		fmt.Println(target, answer.GetStatus(), err)
	}
	// Output:
	// xdswatch:///ingress SERVING <nil>
	// xdswatch-eds:///orders SERVING <nil>
}
