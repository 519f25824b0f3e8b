package grpcresolver_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/view/grpcresolver"
)

// A channel finds its backends through a listener, its routes and their clusters.
func Example() {
	backend, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	service := grpc.NewServer()
	healthpb.RegisterHealthServer(service, health.NewServer())
	go service.Serve(backend)
	defer service.Stop()
	server, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set("1",
		testutil.APIListener("orders.example", "orders"),
		testutil.RouteConfig("orders", testutil.VirtualHost("*", testutil.Route("/", "orders"))),
		testutil.EDSCluster("orders"),
		testutil.Endpoints("orders", backend.Addr().String()),
	); err != nil {
		log.Fatal(err)
	}

	c, err := client.New(client.Config{Bootstrap: server.Bootstrap()}) // a program uses bootstrap.Load
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	channel, err := grpc.NewClient("xdswatch:///orders.example",
		grpc.WithResolvers(grpcresolver.NewBuilder(c), grpcresolver.NewEDSBuilder(c)),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer channel.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	answer, err := healthpb.NewHealthClient(channel).Check(ctx, &healthpb.HealthCheckRequest{})
	fmt.Println(answer.GetStatus(), err)
	// Output: SERVING <nil>
}
