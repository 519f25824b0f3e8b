// Ondemand shows the three ways to resources that need no handler for each of them:
// Get for one value now, Events for a loop, NewSet for many names that come and go.
//
//	go run ./examples/ondemand
//
// One sees the same endpoints three times, from a management server in the process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ondemand:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	server, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		return err
	}
	defer server.Stop()
	boot, err := bootstrap.Server(server.Addr())
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := serve(server, "1", 0); err != nil {
		return err
	}
	return errors.Join(get(ctx, c, out), events(ctx, c, server, out), set(ctx, c, out))
}
