// Failstatic shows a program that starts while its management server is down: with the resources
// of its last run, marked as stale, until the server speaks again.
//
//	go run ./examples/failstatic
//
// It runs twice in a directory of its own: with the server, and without it, until the server comes
// back with something else.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/store"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "failstatic:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "failstatic")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		return err
	}
	defer s.Stop()
	if err := errors.Join(serve(s, "1", 2), start(ctx, dir, s.Addr(), out, nil)); err != nil {
		return err
	}
	s.Stop()
	return start(ctx, dir, s.Addr(), out, func() error { return errors.Join(s.Restart(false), serve(s, "2", 3)) })
}

// start is one run of the program. It ends with the first value that a server says; lost is called
// when one that none has said is all there is.
func start(ctx context.Context, dir, addr string, out io.Writer, lost func() error) error {
	kept := store.Dir(dir, store.Options{})
	defer kept.Close()
	boot, err := bootstrap.Server(addr)
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{Bootstrap: boot, Store: kept})
	if err != nil {
		return err
	}
	defer c.Close()
	for ev, err := range watcher.Events(ctx, c, eds.Type, "backend") {
		switch {
		case err != nil:
			return err
		case ev.Kind == client.EventUpdated && !ev.Stale:
			tell(out, "the server says", ev)
			return nil
		case ev.Kind == client.EventUpdated:
			tell(out, "known from the last run", ev)
		case ev.Kind == client.EventAmbientError && ev.Stale && lost != nil:
			fmt.Fprintln(out, "the server is down; requests go to what is known")
			if err := lost(); err != nil {
				return err
			}
			lost = nil
			c.ResetBackoff()
		}
	}
	return ctx.Err()
}

func tell(out io.Writer, who string, ev watcher.Event[*endpointv3.ClusterLoadAssignment]) {
	fmt.Fprintf(out, "%s: %s has %d localities (version %s)\n", who, ev.Name, len(ev.Value.GetEndpoints()), ev.Version)
}
