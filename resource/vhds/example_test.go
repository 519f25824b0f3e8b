package vhds_test

import (
	"context"
	"fmt"
	"log"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/vhds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// A program looks up a virtual host of the route configuration "shop".
func Example() {
	server, err := testutil.NewCollectionServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set(testutil.Wrapped("shop/www.example", "1", &routev3.VirtualHost{Name: "www", Domains: []string{"www.example"}})); err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: server.Bootstrap(true)})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	host, err := watcher.Get(context.Background(), c, vhds.Type, "shop/www.example")
	fmt.Println(host.GetDomains(), err)
	// Output: [www.example] <nil>
}
