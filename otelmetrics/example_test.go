package otelmetrics_test

import (
	"context"
	"fmt"
	"log"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/otelmetrics"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// A program brings the provider; here its reader is asked by hand.
func Example() {
	srv := testutil.NewServer(testutil.OnRequest(func(st *testutil.Stream, r *testutil.Request) {
		if r.Nonce() == "" {
			st.Send(testutil.SotW(r.TypeURL(), "1", "n1", &clusterv3.Cluster{Name: "backend"}))
		}
	}))
	defer srv.Close()
	boot, err := bootstrap.Server(srv.Target())
	if err != nil {
		log.Fatal(err)
	}

	reader := metric.NewManualReader()
	in, err := otelmetrics.New(metric.NewMeterProvider(metric.WithReader(reader)), otelmetrics.Config{})
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{
		Bootstrap: boot,
		Metrics:   in.Hooks(), // the counters
		GRPC:      transport.GRPCConfig{DialOptions: srv.DialOptions()},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	reg, err := in.Observe(c) // the gauges
	if err != nil {
		log.Fatal(err)
	}
	defer reg.Unregister()

	batches := make(chan client.Batch[any], 10)
	_, err = c.WatchAll(context.Background(), cds.Type, "*", func(b client.Batch[any]) { batches <- b })
	if err != nil {
		log.Fatal(err)
	}
	<-batches
	lines, err := collect(reader)
	if err != nil {
		log.Fatal(err)
	}
	for _, line := range lines[:3] {
		fmt.Println(line)
	}
	// Output:
	// grpc.xds_client.connected 1 {bool} grpc.xds.server=passthrough:///scripted
	// grpc.xds_client.resource_updates_valid 1 {resource} grpc.xds.resource_type=envoy.config.cluster.v3.Cluster,grpc.xds.server=passthrough:///scripted
	// grpc.xds_client.resources 1 {resource} grpc.xds.authority=#old,grpc.xds.cache_state=acked,grpc.xds.resource_type=envoy.config.cluster.v3.Cluster
}
