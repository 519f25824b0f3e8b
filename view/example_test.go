package view_test

import (
	"context"
	"fmt"
	"log"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/view"
)

// A program follows a cluster with its endpoints, as a whole.
func Example() {
	server, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set("1",
		&clusterv3.Cluster{
			Name: "orders", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: &corev3.ConfigSource{
				ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
			}},
		},
		&endpointv3.ClusterLoadAssignment{ClusterName: "orders", Endpoints: []*endpointv3.LocalityLbEndpoints{
			{Locality: &corev3.Locality{Zone: "a"}}, {Locality: &corev3.Locality{Zone: "b"}, Priority: 1},
		}},
	); err != nil {
		log.Fatal(err)
	}
	boot, err := bootstrap.Server(server.Addr())
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	v, err := view.New(ctx, c, view.Root{Type: view.RootCluster, Name: "orders"}, view.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer v.Stop()
	if err := v.Ready(ctx); err != nil {
		log.Fatal(err) // it lists what is waited for
	}
	cluster := v.Snapshot().Cluster("orders")
	fmt.Println(cluster.Name, cluster.Kind(), cluster.Status())
	for priority, localities := range cluster.Endpoints.Priorities() {
		fmt.Println(priority, localities[0].GetLocality().GetZone())
	}
	// Output:
	// orders eds ok
	// 0 a
	// 1 b
}

// begin starts a management server with some resources, and a client of it.
func begin(resources ...proto.Message) (server *testutil.ManagementServer, c *client.Client) {
	server, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		log.Fatal(err)
	}
	if err := server.Set("1", resources...); err != nil {
		log.Fatal(err)
	}
	if c, err = client.New(client.Config{Bootstrap: server.Bootstrap()}); err != nil {
		log.Fatal(err)
	}
	return server, c
}

// A proxy follows every listener, each with its routes, clusters and endpoints.
func ExampleNewListeners() {
	server, c := begin(
		testutil.ProxyListener("ingress", "0.0.0.0:80", "shop"),
		testutil.RouteConfig("shop", testutil.VirtualHost("*", testutil.Route("/", "backend"))),
		testutil.EDSCluster("backend"),
		testutil.Endpoints("backend", "10.0.0.1:8080"),
	)
	defer server.Stop()
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	listeners, err := view.NewListeners(ctx, c, view.Config{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer listeners.Stop()
	if err := listeners.Ready(ctx); err != nil {
		log.Fatal(err)
	}
	for name, v := range listeners.All() {
		fmt.Println(name, v.Snapshot().Cluster("backend").Status())
	}
	// Output: ingress ok
}

// A cluster that no route names is subscribed to when a request needs it, and let go of some time
// after its last use (Envoy's on-demand discovery).
func ExampleView_Cluster() {
	server, c := begin(
		testutil.APIListener("shop", "shop"),
		testutil.RouteConfig("shop", testutil.VirtualHost("*", testutil.Route("/", "backend"))),
		testutil.EDSCluster("backend"), testutil.Endpoints("backend", "10.0.0.1:8080"),
		testutil.EDSCluster("canary"), testutil.Endpoints("canary", "10.0.0.2:8080"),
	)
	defer server.Stop()
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	v, err := view.New(ctx, c, view.Root{Type: view.RootListener, Name: "shop", Host: "shop.example"}, view.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer v.Stop()
	if err := v.Ready(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(v.Snapshot().Cluster("canary") == nil)
	canary, err := v.Cluster(ctx, "canary")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(canary.Name, canary.Status())
	// Output:
	// true
	// canary ok
}
