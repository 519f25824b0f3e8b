package lds_test

import (
	"context"
	"fmt"
	"log"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// A program looks a listener up.
func Example() {
	server, err := testutil.NewCollectionServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set(testutil.Wrapped("ingress", "1", &listenerv3.Listener{Name: "ingress", StatPrefix: "edge"})); err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: server.Bootstrap(true)})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	listener, err := watcher.Get(context.Background(), c, lds.Type, "ingress")
	fmt.Println(listener.GetStatPrefix(), err)
	// Output: edge <nil>
}
