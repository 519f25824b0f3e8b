package transport_test

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

// A program sets what its connections are like, here with a server in memory.
func Example() {
	server := testutil.NewServer(testutil.OnRequest(func(st *testutil.Stream, request *testutil.Request) {
		if request.Nonce() == "" {
			_ = st.Send(testutil.SotW(request.TypeURL(), "1", "n1", &clusterv3.Cluster{
				Name: "orders", AltStatName: st.Metadata.Get("x-team")[0],
			}))
		}
	}))
	defer server.Close()
	boot, err := bootstrap.Server(server.Target())
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot, GRPC: transport.GRPCConfig{
		KeepaliveTime:  30 * time.Second,
		MaxReceiveSize: 256 << 20,
		Headers:        []bootstrap.Header{{Key: "x-team", Value: "blue"}},
		DialOptions:    server.DialOptions(),
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	cluster, err := watcher.Get(context.Background(), c, cds.Type, "orders")
	fmt.Println(cluster.GetAltStatName(), err)
	// Output: blue <nil>
}
