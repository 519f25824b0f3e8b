package eds_test

import (
	"context"
	"fmt"
	"log"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// A program looks up the endpoints of a cluster.
func Example() {
	server, err := testutil.NewCollectionServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set(testutil.Wrapped("orders", "1", &endpointv3.ClusterLoadAssignment{ClusterName: "orders", Endpoints: []*endpointv3.LocalityLbEndpoints{{Priority: 1}}})); err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: server.Bootstrap(true)})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	assignment, err := watcher.Get(context.Background(), c, eds.Type, "orders")
	fmt.Println(assignment.GetEndpoints()[0].GetPriority(), err)
	// Output: 1 <nil>
}
