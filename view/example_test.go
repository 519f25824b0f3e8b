package view_test

import (
	"context"
	"fmt"
	"log"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

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
