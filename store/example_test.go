package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/store"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/watcher"
)

// A program runs with a server, and is started again while the server is down.
func ExampleDir() {
	dir, err := os.MkdirTemp("", "xds")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	server := testutil.NewServer()
	defer server.Close()

	run := func(during func()) {
		kept := store.Dir(filepath.Join(dir, "kept"), store.Options{MaxAge: 24 * time.Hour})
		defer kept.Close()
		boot, err := bootstrap.Server(server.Target())
		if err != nil {
			panic(err)
		}
		c, err := client.New(client.Config{
			Bootstrap: boot, Store: kept, GRPC: transport.GRPCConfig{DialOptions: server.DialOptions()},
		})
		if err != nil {
			panic(err)
		}
		defer c.Close()
		told := make(chan struct{}, 10)
		_, err = watcher.Watch(context.Background(), c, cds.Type, "backend", func(ev watcher.Event[*clusterv3.Cluster]) {
			if ev.Kind == client.EventUpdated {
				fmt.Println(ev.Name, ev.Version, "stale:", ev.Stale)
				told <- struct{}{}
			}
		})
		if err != nil {
			panic(err)
		}
		during()
		<-told
	}

	run(func() {
		st, err := server.Accept(context.Background())
		if err != nil {
			panic(err)
		}
		if err := st.Send(testutil.SotW(cds.Type.TypeURL(), "v1", "n1", &clusterv3.Cluster{Name: "backend"})); err != nil {
			panic(err)
		}
	})
	server.SetRefuse(true)
	run(func() {})
	// Output:
	// backend v1 stale: false
	// backend v1 stale: true
}
