package testutil_test

import (
	"context"
	"fmt"
	"log"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/testutil"
)

const clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

// openStream opens an aggregated stream, as the client under test would.
func openStream(ctx context.Context, target string, opts ...grpc.DialOption) (*grpc.ClientConn, discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient) {
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))
	cc, err := grpc.NewClient(target, opts...)
	if err != nil {
		log.Fatal(err)
	}
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(cc).StreamAggregatedResources(ctx)
	if err != nil {
		log.Fatal(err)
	}
	return cc, stream
}

// A test plays the server's part step by step.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	srv := testutil.NewServer()
	defer srv.Close()

	cc, client := openStream(ctx, srv.Target(), srv.DialOptions()...)
	defer cc.Close()
	client.Send(&discoveryv3.DiscoveryRequest{TypeUrl: clusters, ResourceNames: []string{"backend"}})

	st, err := srv.Accept(ctx)
	if err != nil {
		log.Fatal(err)
	}
	req, err := st.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("asked for", req.Names())
	st.Send(testutil.SotW(clusters, "1", "n1", &clusterv3.Cluster{Name: "backend"}))
	st.End(status.Error(codes.Unavailable, "restarting"))

	resp, err := client.Recv()
	fmt.Println("got version", resp.GetVersionInfo(), err)
	_, err = client.Recv()
	fmt.Println("then", status.Code(err))
	// Output:
	// asked for [backend]
	// got version 1 <nil>
	// then Unavailable
}

// A server that answers every request by itself, but never an ACK.
func ExampleOnRequest() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	srv := testutil.NewServer(testutil.OnRequest(func(st *testutil.Stream, req *testutil.Request) {
		if req.Nonce() == "" {
			st.Send(testutil.SotW(req.TypeURL(), "7", "n1"))
		}
	}))
	defer srv.Close()

	cc, client := openStream(ctx, srv.Target(), srv.DialOptions()...)
	defer cc.Close()
	client.Send(&discoveryv3.DiscoveryRequest{TypeUrl: clusters})
	resp, err := client.Recv()
	fmt.Println(resp.GetVersionInfo(), err)
	// Output: 7 <nil>
}

// The real server of go-control-plane, restarted under its client.
func ExampleNewManagementServer() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	srv, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Stop()
	if err := srv.Set("1", &clusterv3.Cluster{Name: "backend"}); err != nil {
		log.Fatal(err)
	}

	cc, client := openStream(ctx, srv.Addr())
	defer cc.Close()
	client.Send(&discoveryv3.DiscoveryRequest{TypeUrl: clusters})
	resp, err := client.Recv()
	fmt.Println(len(resp.GetResources()), "cluster of version", resp.GetVersionInfo(), err)

	srv.Stop()
	_, err = client.Recv()
	fmt.Println(status.Code(err))
	fmt.Println(srv.Restart(true))
	// Output:
	// 1 cluster of version 1 <nil>
	// Unavailable
	// <nil>
}

// A server of structured names, with a glob whose members come and go.
func ExampleCollectionServer() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	srv, err := testutil.NewCollectionServer()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Stop()
	const prod = "xdstp://au/envoy.config.cluster.v3.Cluster/prod/"
	if err := srv.Set(testutil.Wrapped(prod+"a", "1", &clusterv3.Cluster{Name: prod + "a"})); err != nil {
		log.Fatal(err)
	}
	if err := srv.Redirect(prod+"b", "xdstp://au/envoy.config.cluster.v3.Cluster/shared/b"); err != nil {
		log.Fatal(err)
	}

	cc, err := grpc.NewClient(srv.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer cc.Close()
	client, err := discoveryv3.NewAggregatedDiscoveryServiceClient(cc).DeltaAggregatedResources(ctx)
	if err != nil {
		log.Fatal(err)
	}
	client.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusters, ResourceNamesSubscribe: []string{prod + "*"}})
	resp, err := client.Recv()
	for _, r := range resp.GetResources() {
		fmt.Println(r.GetName(), r.GetResource().GetTypeUrl(), err)
	}

	srv.Remove(clusters, prod+"a")
	resp, err = client.Recv()
	fmt.Println("removed", resp.GetRemovedResources(), err)
	fmt.Println("asked for", srv.Subscribed(clusters))
	// Output:
	// xdstp://au/envoy.config.cluster.v3.Cluster/prod/a type.googleapis.com/envoy.config.cluster.v3.Cluster <nil>
	// xdstp://au/envoy.config.cluster.v3.Cluster/prod/b type.googleapis.com/xds.core.v3.ResourceLocator <nil>
	// removed [xdstp://au/envoy.config.cluster.v3.Cluster/prod/a] <nil>
	// asked for [xdstp://au/envoy.config.cluster.v3.Cluster/prod/*]
}
