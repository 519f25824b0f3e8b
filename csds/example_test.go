package csds_test

import (
	"context"
	"fmt"
	"log"
	"net"

	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/csds"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// A program serves the status of its client on the loopback interface, and a tool reads it.
func Example() {
	boot, err := bootstrap.Server("127.0.0.1:18000")
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Watch(context.Background(), cds.Type, "backend", func(client.Event[any]) {}); err != nil {
		log.Fatal(err)
	}

	server := grpc.NewServer()
	csds.Register(server, csds.Config{}, c)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(lis)
	defer server.Stop()

	conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	resp, err := statusv3.NewClientStatusDiscoveryServiceClient(conn).FetchClientStatus(context.Background(), &statusv3.ClientStatusRequest{})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range resp.GetConfig()[0].GetGenericXdsConfigs() {
		fmt.Println(r.GetName(), r.GetClientStatus())
	}
	// Output: backend REQUESTED
}
