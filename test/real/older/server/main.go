// Command server is a management server with the snapshot cache of go-control-plane v0.13.4, for nodes whose id is
// "node". It says on a line of standard output where it listens. Each line of standard input is a new state, the
// version and the clusters: "2 a b". It ends with standard input.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c := cache.NewSnapshotCache(false, cache.IDHash{}, nil)
	g := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, server.NewServer(context.Background(), c, nil))
	fmt.Println("listening", lis.Addr())
	go func() { log.Fatal(g.Serve(lis)) }()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		var clusters []types.Resource
		for _, name := range words[1:] {
			clusters = append(clusters, &clusterv3.Cluster{Name: name, AltStatName: words[0]})
		}
		s, err := cache.NewSnapshot(words[0], map[resource.Type][]types.Resource{resource.ClusterType: clusters})
		if err != nil {
			return err
		}
		if err := c.SetSnapshot(context.Background(), "node", s); err != nil {
			return err
		}
	}
	return lines.Err()
}
