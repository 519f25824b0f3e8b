package viewmetrics_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/otelmetrics/viewmetrics"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/view"
)

// A program brings the provider; here its reader is asked by hand.
func Example() {
	server, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set("1", testutil.EDSCluster("backend"), testutil.Endpoints("backend", "10.0.0.1:80")); err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: server.Bootstrap()})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	v, err := view.New(ctx, c, view.Root{Type: view.RootCluster, Name: "backend"}, view.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer v.Stop()

	reader := metric.NewManualReader()
	reg, err := viewmetrics.Observe(metric.NewMeterProvider(metric.WithReader(reader)), viewmetrics.Config{Name: "backend"}, v)
	if err != nil {
		log.Fatal(err)
	}
	defer reg.Unregister()
	if err := v.Ready(ctx); err != nil {
		log.Fatal(err)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		log.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if gauge, ok := m.Data.(metricdata.Gauge[int64]); ok && m.Name == "xdswatch.view.ready" {
			fmt.Println(m.Name, gauge.DataPoints[0].Value)
		}
	}
	// Output: xdswatch.view.ready 1
}
