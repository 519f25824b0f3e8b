// Grpcresolver has a gRPC client find its servers by EDS, with the resolver of package
// view/grpcresolver.
//
//	go run ./examples/grpcresolver
//
// One sees RPCs go to one backend, then to two, then to the second one alone, as the
// management server changes the endpoints; and go on while the management server is down.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/view/grpcresolver"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "grpcresolver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	management, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		return err
	}
	defer management.Stop()
	boot, err := bootstrap.Server(management.Addr())
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		return err
	}
	defer c.Close()

	channel, err := dial(c)
	if err != nil {
		return err
	}
	defer channel.Close()
	return tell(ctx, management, channel, out)
}

// dial makes a channel to whatever endpoints EDS has under the name "backend".
func dial(c *client.Client) (*grpc.ClientConn, error) {
	return grpc.NewClient(grpcresolver.EDSScheme+":///backend",
		grpc.WithResolvers(grpcresolver.NewEDSBuilder(c)),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	)
}
