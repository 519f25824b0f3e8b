package ecds_test

import (
	"context"
	"fmt"
	"log"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/ecds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// A program looks up the configuration of a filter, in which an Any contains the filter's own message.
func Example() {
	server, err := testutil.NewCollectionServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set(testutil.Wrapped("router", "1", &corev3.TypedExtensionConfig{Name: "router", TypedConfig: testutil.Wrapped("", "", &routerv3.Router{}).GetResource()})); err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: server.Bootstrap(true)})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	config, err := watcher.Get(context.Background(), c, ecds.Type, "router")
	fmt.Println(config.GetTypedConfig().GetTypeUrl(), err)
	// Output: type.googleapis.com/envoy.extensions.filters.http.router.v3.Router <nil>
}
