package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/transport/file"
	"github.com/xdswatch/xdswatch/watcher"
)

const clustersYAML = `
version_info: "1"
resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: backend
  connect_timeout: 5s
`

// A program that takes its clusters from a file, and servers that are none over gRPC.
func Example() {
	dir, err := os.MkdirTemp("", "xds")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "clusters.yaml")
	if err := os.WriteFile(path, []byte(clustersYAML), 0o644); err != nil {
		fmt.Println(err)
		return
	}

	c, err := client.New(client.Config{
		Bootstrap: &bootstrap.Config{Servers: []bootstrap.ManagementServer{{
			URI: "file://" + path, ChannelCreds: bootstrap.Insecure(),
			Carrier: &bootstrap.File{Path: path},
		}}},
		Transport: file.NewBuilder(file.Config{}, transport.NewGRPC(transport.GRPCConfig{})),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	var cluster *clusterv3.Cluster
	if cluster, err = watcher.Get(context.Background(), c, cds.Type, "backend"); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cluster.GetName(), cluster.GetConnectTimeout().AsDuration())
	// Output: backend 5s
}
