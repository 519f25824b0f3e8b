package main

import (
	"context"
	"fmt"
	"io"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// get waits for the server once; for a minute from then on the value is there at once.
func get(ctx context.Context, c *client.Client, out io.Writer) error {
	a, err := watcher.Get(ctx, c, eds.Type, "a")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "get: a has", len(a.GetEndpoints()), "localities")
	return nil
}

// events lasts as long as its loop.
func events(ctx context.Context, c *client.Client, server *testutil.ManagementServer, out io.Writer) error {
	for ev, err := range watcher.Events(ctx, c, eds.Type, "a") {
		if err != nil {
			return err
		}
		localities := len(ev.Value.GetEndpoints())
		fmt.Fprintln(out, "events: a", ev.Kind, "with", localities, "localities")
		if localities == 2 {
			break
		}
		if err := serve(server, "2", 2); err != nil {
			return err
		}
	}
	return nil
}

// set has one handler for all its names.
func set(ctx context.Context, c *client.Client, out io.Writer) error {
	names := make(chan string, 2)
	s, err := watcher.NewSet(ctx, c, eds.Type, func(b watcher.Batch[*endpointv3.ClusterLoadAssignment]) {
		for ev := range b.Changed() {
			names <- ev.Name
		}
	})
	if err != nil {
		return err
	}
	defer s.Stop()
	for _, name := range []string{"a", "b"} {
		if err := s.Add(name); err != nil {
			return err
		}
		select {
		case got := <-names:
			fmt.Fprintln(out, "set:", got)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.Remove("a")
	return nil
}
