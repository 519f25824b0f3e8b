package watcher_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

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

// managed makes a client of a real management server that holds some clusters.
func managed(names ...string) (server *testutil.ManagementServer, c *client.Client) {
	server, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		log.Fatal(err)
	}
	set(server, "1", names...)
	c, err = client.New(client.Config{Bootstrap: server.Bootstrap()})
	if err != nil {
		log.Fatal(err)
	}
	return server, c
}

// set replaces what the server holds.
func set(server *testutil.ManagementServer, version string, names ...string) {
	var clusters []proto.Message
	for _, name := range names {
		clusters = append(clusters, testutil.EDSCluster(name))
	}
	if err := server.Set(version, clusters...); err != nil {
		log.Fatal(err)
	}
}

// A collection's handler is told what belongs together at once. The first batches end with all
// that the server has.
func ExampleWatchAll() {
	server, c := managed("backend", "frontend")
	defer server.Stop()
	defer c.Close()

	synced := make(chan struct{})
	_, err := watcher.WatchAll(context.Background(), c, cds.Type, "*",
		func(b watcher.Batch[*clusterv3.Cluster]) {
			var names []string
			for ev := range b.Changed() {
				names = append(names, ev.Name)
			}
			slices.Sort(names)
			fmt.Println(names)
			if b.Synced() {
				close(synced)
			}
		})
	if err != nil {
		log.Fatal(err)
	}
	<-synced
	// Output: [backend frontend]
}

// Batches are a collection's changes as a loop.
func ExampleBatches() {
	server, c := managed("backend", "frontend")
	defer server.Stop()
	defer c.Close()

	for b, err := range watcher.Batches(context.Background(), c, cds.Type, "*") {
		if err != nil {
			log.Fatal(err)
		}
		for ev := range b.Removed() {
			fmt.Println(ev.Name, "is gone:", ev.Reason)
			return
		}
		set(server, "2", "backend")
	}
	// Output: frontend is gone: absent
}

// A set has one handler for names that come and go, such as the clusters of a route.
func ExampleNewSet() {
	server, c := managed("backend", "frontend")
	defer server.Stop()
	defer c.Close()

	told := make(chan string, 2)
	set, err := watcher.NewSet(context.Background(), c, cds.Type,
		func(b watcher.Batch[*clusterv3.Cluster]) {
			for ev := range b.Changed() {
				told <- ev.Name
			}
		})
	if err != nil {
		log.Fatal(err)
	}
	defer set.Stop()
	if err := set.Add("backend"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-told)
	if err := set.Add("frontend"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-told)
	set.Remove("backend")
	// Output:
	// backend
	// frontend
}

// A store has the newest values of a collection, for a program that serves from them.
func ExampleNewStore() {
	server, c := managed("backend", "frontend")
	defer server.Stop()
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	clusters, err := watcher.NewStore(ctx, c, cds.Type, "*")
	if err != nil {
		log.Fatal(err)
	}
	defer clusters.Stop()
	if err := clusters.Synced(ctx); err != nil {
		log.Fatal(err)
	}
	changed := clusters.Changed()
	backend, ok := clusters.Get("backend")
	fmt.Println(clusters.Len(), backend.GetName(), ok)

	set(server, "2", "backend")
	<-changed
	_, ok = clusters.Get("frontend")
	fmt.Println(clusters.Len(), ok)
	// Output:
	// 2 backend true
	// 1 false
}

// A loop over the changes of a store makes something new of all its values, each time that they change.
func ExampleStore_Changes() {
	server, c := managed("backend", "frontend")
	defer server.Stop()
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	clusters, err := watcher.NewStore(ctx, c, cds.Type, "*")
	if err != nil {
		log.Fatal(err)
	}
	for range clusters.Changes(ctx) {
		fmt.Println("clusters:", clusters.Len())
		if clusters.Len() == 1 {
			break
		}
		set(server, "2", "backend")
	}
	// Output:
	// clusters: 2
	// clusters: 1
}
