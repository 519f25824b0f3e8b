package rds_test

import (
	"context"
	"fmt"
	"log"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// A program looks up the routes of a listener.
func Example() {
	server, err := testutil.NewCollectionServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set(testutil.Wrapped("shop", "1", &routev3.RouteConfiguration{Name: "shop", VirtualHosts: []*routev3.VirtualHost{{Name: "www", Domains: []string{"shop.example"}}}})); err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: server.Bootstrap(true)})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	routes, err := watcher.Get(context.Background(), c, rds.Type, "shop")
	fmt.Println(routes.GetVirtualHosts()[0].GetDomains(), err)
	// Output: [shop.example] <nil>
}
