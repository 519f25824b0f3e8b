// Readme is the program in the project's README: it watches a cluster until it is killed.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/watcher"
)

func main() {
	boot, err := bootstrap.Load(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		log.Fatal(err)
	}
	w, err := watcher.Watch(context.Background(), c, cds.Type, "backend",
		func(ev watcher.Event[*clusterv3.Cluster]) {
			fmt.Println(ev.Name, ev.Kind, ev.Value.GetConnectTimeout().AsDuration(), ev.Err)
		})
	if err != nil {
		log.Fatal(err)
	}
	<-w.Done()
}
