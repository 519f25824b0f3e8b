package srds_test

import (
	"context"
	"fmt"
	"log"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/srds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// A program looks up which routes the requests of a scope have.
func Example() {
	server, err := testutil.NewCollectionServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set(testutil.Wrapped("tenant-1", "1", &routev3.ScopedRouteConfiguration{Name: "tenant-1", RouteConfigurationName: "shop", Key: &routev3.ScopedRouteConfiguration_Key{Fragments: []*routev3.ScopedRouteConfiguration_Key_Fragment{{Type: &routev3.ScopedRouteConfiguration_Key_Fragment_StringKey{StringKey: "t1"}}}}})); err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: server.Bootstrap(true)})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	scope, err := watcher.Get(context.Background(), c, srds.Type, "tenant-1")
	fmt.Println(scope.GetRouteConfigurationName(), err)
	// Output: shop <nil>
}
