// Quickstart shows in a few seconds what an xDS client does, and needs nothing but Go:
//
//	go run ./examples/quickstart
//
// A real management server (go-control-plane with its snapshot cache) runs in the same
// process, on loopback TCP. The client loads a bootstrap file, follows a listener to the
// endpoints behind it, sees changes, refuses an invalid cluster and keeps the good one,
// learns that a resource does not exist, and loses nothing while the server is down.
//
// Each of these is checked. The exit status is 0 only if all of them were seen.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
)

// patience is how long the whole story may take.
const patience = 30 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run tells the whole story. Its error says what was not seen.
func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	server, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		return err
	}
	defer server.Stop()

	boot, err := writeAndLoad(out, server.Addr())
	if err != nil {
		return err
	}
	// Two seconds of silence mean that a resource does not exist; the default is fifteen.
	c, err := client.New(client.Config{Bootstrap: boot, ResourceTimeout: 2 * time.Second})
	if err != nil {
		return err
	}
	defer c.Close()

	return newStory(server, c, out).tell(ctx)
}

// bootstrapJSON is the format that gRPC's clients read too.
const bootstrapJSON = `{
  "xds_servers": [{
    "server_uri": %q,
    "channel_creds": [{"type": "insecure"}],
    "server_features": ["xds_v3"]
  }],
  "node": {"id": "quickstart"}
}
`

// writeAndLoad writes a bootstrap file and loads it, as a program loads the one that its
// operator wrote.
func writeAndLoad(out io.Writer, server string) (*bootstrap.Config, error) {
	dir, err := os.MkdirTemp("", "xdswatch-quickstart")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "bootstrap.json")
	if err := os.WriteFile(path, fmt.Appendf(nil, bootstrapJSON, server), 0o600); err != nil {
		return nil, err
	}
	boot, err := bootstrap.Load(path)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "loaded %s: node %q, management server %s\n", filepath.Base(path), boot.Node.GetId(), boot.Servers[0].URI)
	return boot, nil
}
