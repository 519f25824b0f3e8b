package load_test

import (
	"context"
	"log"
	"net"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/load"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/watcher"
)

// A program watches a cluster, and reports how it fares with the endpoints of one zone.
func Example() {
	boot, err := bootstrap.Load("bootstrap.json")
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	r := load.New(c, load.Config{})
	defer r.Close()

	clusters := r.NewSet()
	_, err = watcher.Watch(context.Background(), c, cds.Type, "backend", func(ev watcher.Event[*clusterv3.Cluster]) {
		if ev.Kind != client.EventUpdated {
			return
		}
		cluster := clusters.Use(load.TargetOf(ev.Server, ev.Value))
		clusters.Sweep() // what an earlier value asked for

		call := cluster.Locality(&corev3.Locality{Zone: "a"}, 0).Begin(nil)
		conn, err := net.Dial("tcp", "192.0.2.1:80")
		call.End(err == nil)
		if err == nil {
			conn.Close()
		}
	})
	if err != nil {
		log.Fatal(err)
	}
}
