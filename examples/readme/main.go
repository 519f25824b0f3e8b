// Readme is the program in the project's README: it watches a cluster until it is killed.
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/watcher"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: readme bootstrap.json")
	}
	boot, err := bootstrap.Load(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot, Logger: slog.Default()})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	w, err := watcher.Watch(context.Background(), c, cds.Type, "backend",
		func(ev watcher.Event[*clusterv3.Cluster]) {
			switch ev.Kind {
			case client.EventUpdated:
				fmt.Println("use", ev.Name, "with timeout", ev.Value.GetConnectTimeout().AsDuration())
			case client.EventDoesNotExist:
				fmt.Println("there is no", ev.Name, "because:", ev.Reason)
			case client.EventFailed:
				fmt.Println("no usable", ev.Name, "yet:", ev.Err)
			case client.EventAmbientError:
				fmt.Println("keep", ev.Name, "in spite of:", ev.Err)
			case client.EventRecovered:
				fmt.Println("all is well with", ev.Name, "again")
			}
		})
	if err != nil {
		log.Fatal(err)
	}
	<-w.Done()
}
