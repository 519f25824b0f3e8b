package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// managed starts a real management server with two clusters, and makes a client of it.
func managed(config client.Config) (server *testutil.ManagementServer, c *client.Client) {
	server, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		log.Fatal(err)
	}
	set(server, "1", &clusterv3.Cluster{Name: "backend"}, &clusterv3.Cluster{Name: "frontend"})
	config.Bootstrap = server.Bootstrap()
	if c, err = client.New(config); err != nil {
		log.Fatal(err)
	}
	return server, c
}

func set(server *testutil.ManagementServer, version string, clusters ...proto.Message) {
	if err := server.Set(version, clusters...); err != nil {
		log.Fatal(err)
	}
}

// A server that lost its own sources often says that nothing exists. A guard refuses a response
// that takes away most of what is held; the values stay, and the server is told why.
func ExampleMaxShrink() {
	server, c := managed(client.Config{
		Guards: map[string][]client.Guard{cds.Type.TypeURL(): {client.MaxShrink(0.25)}},
	})
	defer server.Stop()
	defer c.Close()

	refused := make(chan error, 1)
	_, err := c.WatchAll(context.Background(), cds.Type, "*", func(b client.Batch[any]) {
		if b.Synced() {
			set(server, "2") // everything is gone
		}
		for _, ev := range b.Events {
			if ev.Kind == client.EventAmbientError {
				select {
				case refused <- ev.Err:
				default:
				}
			}
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	var why *client.ResourceError
	fmt.Println(errors.As(<-refused, &why))
	for s := range c.States() {
		if s.Raw != nil {
			fmt.Println(s.Name, "is held in version", s.Version)
		}
	}
	// Output:
	// true
	// backend is held in version 1
	// frontend is held in version 1
}

// A resource that a server deletes is kept for a while, in case it comes back.
func ExampleDeletionAfter() {
	server, c := managed(client.Config{
		Deletions: map[string]client.DeletionPolicy{cds.Type.TypeURL(): client.DeletionAfter(time.Hour)},
	})
	defer server.Stop()
	defer c.Close()

	deleted := make(chan error)
	_, err := c.Watch(context.Background(), cds.Type, "backend", func(ev client.Event[any]) {
		switch ev.Kind {
		case client.EventUpdated:
			set(server, "2", &clusterv3.Cluster{Name: "frontend"})
		case client.EventAmbientError:
			deleted <- ev.Err
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(errors.Is(<-deleted, client.ErrDeletionKept))
	// Output: true
}

// Ready says what the client still waits for when the context ends.
func ExampleNotReadyError() {
	server, c := managed(client.Config{})
	defer server.Stop()
	defer c.Close()

	_, err := c.Watch(context.Background(), cds.Type, "typo", func(client.Event[any]) {})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	var lacking *client.NotReadyError
	if err := c.Ready(ctx); errors.As(err, &lacking) {
		for _, l := range lacking.Lacking {
			fmt.Println(l.Type, l.Name)
		}
	}
	// Output: type.googleapis.com/envoy.config.cluster.v3.Cluster typo
}

// Get waits for one answer, of a resource that exists or does not.
func ExampleClient_Get() {
	server, c := managed(client.Config{})
	defer server.Stop()
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ev, err := c.Get(ctx, cds.Type, "backend")
	fmt.Println(ev.Kind, ev.Name, ev.Version, err)
	// Output: updated backend 1 <nil>
}
