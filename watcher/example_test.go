package watcher_test

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
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/watcher"
)

// backend answers the first request of each stream with one cluster.
func backend(st *testutil.Stream, req *testutil.Request) {
	if req.Nonce() == "" {
		_ = st.Send(testutil.SotW(req.TypeURL(), "1", "n1", &clusterv3.Cluster{Name: "backend", AltStatName: "blue"}))
	}
}

// connect makes a client of a server in memory. A program reads its bootstrap from a file,
// with bootstrap.Load, and needs no dial options.
func connect(srv *testutil.Server) *client.Client {
	boot, err := bootstrap.Server(srv.Target())
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{
		Bootstrap: boot, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()},
	})
	if err != nil {
		log.Fatal(err)
	}
	return c
}

// A handler hears of each change for as long as the watch lives.
func ExampleWatch() {
	srv := testutil.NewServer(testutil.OnRequest(backend))
	defer srv.Close()
	c := connect(srv)
	defer c.Close()

	told := make(chan struct{})
	w, err := watcher.Watch(context.Background(), c, cds.Type, "backend",
		func(ev watcher.Event[*clusterv3.Cluster]) {
			switch ev.Kind {
			case client.EventUpdated:
				fmt.Println(ev.Name, "is", ev.Value.AltStatName, "in version", ev.Version)
			case client.EventDoesNotExist, client.EventFailed:
				fmt.Println(ev.Name, "cannot be used:", ev.Reason, ev.Err)
			}
			close(told)
		})
	if err != nil {
		log.Fatal(err)
	}
	<-told
	w.Stop()
	fmt.Println(w.Err())
	// Output:
	// backend is blue in version 1
	// xds: the watch was stopped
}

// A lookup waits for the first answer, however often the connection is lost meanwhile; its
// context bounds that.
func ExampleGet() {
	srv := testutil.NewServer(testutil.OnRequest(backend))
	defer srv.Close()
	c := connect(srv)
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cluster, err := watcher.Get(ctx, c, cds.Type, "backend")
	fmt.Println(cluster.GetAltStatName(), err)
	// Output: blue <nil>
}

// Leaving the loop ends the watch.
func ExampleEvents() {
	srv := testutil.NewServer(testutil.OnRequest(backend))
	defer srv.Close()
	c := connect(srv)
	defer c.Close()

	for ev, err := range watcher.Events(context.Background(), c, cds.Type, "backend") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(ev.Kind, ev.Name)
		break
	}
	// Output: updated backend
}
