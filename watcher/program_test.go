package watcher_test

import (
	"context"
	"fmt"
	"log"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// timingOut is the cluster that the management server of the example serves.
func timingOut(seconds int64) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: "backend", ConnectTimeout: &durationpb.Duration{Seconds: seconds}}
}

// A program watches a cluster and sees it change. The management server is a real one, of
// package testutil.
func Example() {
	server, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	server.Set("1", timingOut(1))

	boot, err := bootstrap.Server(server.Addr()) // or bootstrap.Load("bootstrap.json")
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	w, err := watcher.Watch(context.Background(), c, cds.Type, "backend",
		func(ev watcher.Event[*clusterv3.Cluster]) {
			timeout := ev.Value.GetConnectTimeout().AsDuration()
			fmt.Println(ev.Name, ev.Kind, timeout)
			switch timeout.Seconds() {
			case 1:
				server.Set("2", timingOut(2))
			case 2:
				c.Close() // a handler may do anything with the client
			}
		})
	if err != nil {
		log.Fatal(err)
	}
	<-w.Done()
	fmt.Println(w.Err())
	// Output:
	// backend updated 1s
	// backend updated 2s
	// xds: the client is closed
}
