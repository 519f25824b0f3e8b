package dialer_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/dialer"
)

// database is a cluster with one endpoint.
func database(at *net.TCPAddr) *clusterv3.Cluster {
	address := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: at.IP.String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(at.Port)},
	}}}
	return &clusterv3.Cluster{Name: "postgres", LoadAssignment: &endpointv3.ClusterLoadAssignment{
		ClusterName: "postgres", Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address}},
		}}}},
	}}
}

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
	if err := server.Set("1", database(lis.Addr().(*net.TCPAddr))); err != nil {
		log.Fatal(err)
	}
	boot, err := bootstrap.Server(server.Addr())
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot})
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
