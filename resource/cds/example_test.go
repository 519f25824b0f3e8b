package cds_test

import (
	"context"
	"fmt"
	"log"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// A program looks a cluster up.
func Example() {
	server, err := testutil.NewCollectionServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set(testutil.Wrapped("orders", "1", &clusterv3.Cluster{Name: "orders", LbPolicy: clusterv3.Cluster_LEAST_REQUEST})); err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: server.Bootstrap(true)})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	cluster, err := watcher.Get(context.Background(), c, cds.Type, "orders")
	fmt.Println(cluster.GetLbPolicy(), err)
	// Output: LEAST_REQUEST <nil>
}
