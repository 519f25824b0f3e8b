package dialer_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/dialer"
)

// A program connects to an endpoint of a cluster, whose name stands in the place of a host.
func Example() {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer lis.Close()
	go func() {
		if conn, err := lis.Accept(); err == nil {
			_, _ = io.WriteString(conn, "ready for query")
			conn.Close()
		}
	}()
	server, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set("1", testutil.StaticCluster("postgres", lis.Addr().String())); err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: server.Bootstrap()})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	v, err := view.New(ctx, c, view.Root{Type: view.RootCluster, Name: "postgres"}, view.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer v.Stop()
	conn, err := dialer.New(v, dialer.Config{Attempts: 3}).DialContext(ctx, "tcp", "postgres:5432")
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	said, err := io.ReadAll(conn)
	fmt.Println(string(said), err)
	// Output: ready for query <nil>
}
