// Federation watches a cluster of each of two authorities, which have management servers of
// their own (gRFC A47):
//
//	go run ./examples/federation
//
// One sees the server of one authority die and come back. Its cluster stays good, and that
// of the other authority goes on changing and never hears of it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
)

// bootstrapJSON gives each authority a server; names without an authority have the first.
const bootstrapJSON = `{
  "xds_servers": [{"server_uri": %[1]q, "channel_creds": [{"type": "insecure"}]}],
  "authorities": {
    "east": {},
    "west": {"xds_servers": [{"server_uri": %[2]q, "channel_creds": [{"type": "insecure"}]}]}
  }
}`

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "federation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	east, err := testutil.NewCollectionServer()
	if err != nil {
		return err
	}
	defer east.Stop()
	west, err := testutil.NewCollectionServer()
	if err != nil {
		return err
	}
	defer west.Stop()
	boot, err := bootstrap.Parse("federation", fmt.Appendf(nil, bootstrapJSON, east.Addr(), west.Addr()))
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		return err
	}
	defer c.Close()

	return (&story{ctx, out, east, west}).tell(c)
}
