package load_test

import (
	"fmt"
	"log"
	"net"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/load"
)

// collector is a server that wants the load of all clusters.
type collector struct {
	lrsv3.UnimplementedLoadReportingServiceServer
	reports chan *lrsv3.LoadStatsRequest
}

func (c *collector) StreamLoadStats(stream lrsv3.LoadReportingService_StreamLoadStatsServer) error {
	if _, err := stream.Recv(); err != nil { // says who the client is
		return err
	}
	if err := stream.Send(&lrsv3.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: durationpb.New(100 * time.Millisecond)}); err != nil {
		return err
	}
	for {
		report, err := stream.Recv()
		if err != nil {
			return nil
		}
		select {
		case c.reports <- report:
		case <-stream.Context().Done():
		}
	}
}

// A program counts its requests to one zone of a cluster.
func Example() {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server, wanted := grpc.NewServer(), &collector{reports: make(chan *lrsv3.LoadStatsRequest, 1)}
	lrsv3.RegisterLoadReportingServiceServer(server, wanted)
	go server.Serve(lis)
	defer server.Stop()

	boot, err := bootstrap.Server(lis.Addr().String()) // a program uses bootstrap.Load
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	r := load.New(c, load.Config{})
	defer r.Close() // sends a last report

	// A watch of the cluster brings both: the message, and the server that sent it.
	message := &clusterv3.Cluster{Name: "orders", LrsServer: &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Self{Self: &corev3.SelfConfigSource{}},
	}}
	cluster := r.Cluster(load.TargetOf(boot.Servers[0].URI, message))
	defer cluster.Close()
	zone := cluster.Locality(&corev3.Locality{Zone: "a"}, 0)
	for _, ok := range []bool{true, true, false} {
		call := zone.Begin(nil)
		call.End(ok)
	}
	var succeeded, failed uint64
	for succeeded+failed < 3 { // the reports say what is new
		report := <-wanted.reports
		for _, stats := range report.ClusterStats {
			for _, l := range stats.UpstreamLocalityStats {
				succeeded += l.TotalSuccessfulRequests
				failed += l.TotalErrorRequests
			}
		}
	}
	fmt.Println(succeeded, "succeeded,", failed, "failed")
	// Output: 2 succeeded, 1 failed
}
