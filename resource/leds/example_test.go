package leds_test

import (
	"context"
	"fmt"
	"log"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/leds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// A program looks up one endpoint of a locality.
func Example() {
	server, err := testutil.NewCollectionServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set(testutil.Wrapped("xdstp://prod/envoy.config.endpoint.v3.LbEndpoint/a/1", "1", &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_EndpointName{EndpointName: "orders-1"}})); err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: server.Bootstrap(true, "prod")})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	endpoint, err := watcher.Get(context.Background(), c, leds.Type, "xdstp://prod/envoy.config.endpoint.v3.LbEndpoint/a/1")
	fmt.Println(endpoint.GetEndpointName(), err)
	// Output: orders-1 <nil>
}
