package client_test

import (
	"context"
	"fmt"
	"log"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// A program watches a cluster, waits for the first answer and looks at what the client holds. Package
// watcher has the same with types.
func Example() {
	server, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set("1", &clusterv3.Cluster{Name: "orders"}); err != nil {
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

	_, err = c.Watch(context.Background(), cds.Type, "orders", func(ev client.Event[any]) {
		fmt.Println(ev.Kind, ev.Name, ev.Value.(*clusterv3.Cluster).GetName())
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := c.Ready(ctx); err != nil {
		log.Fatal(err) // it lists what is missing
	}
	for s := range c.States() {
		fmt.Println(s.Status, s.Name, "in version", s.Version)
	}
	// Output:
	// updated orders orders
	// ACKED orders in version 1
}
