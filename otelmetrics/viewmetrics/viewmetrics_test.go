package viewmetrics_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/otelmetrics/viewmetrics"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/view"
)

func points[N int64 | float64](m metricdata.Metrics, ps []metricdata.DataPoint[N]) (lines []string) {
	for _, p := range ps {
		lines = append(lines, fmt.Sprintf("%s %v %s %s", m.Name, p.Value, m.Unit, p.Attributes.Encoded(attribute.DefaultEncoder())))
	}
	return lines
}

func expect(t *testing.T, reader sdk.Reader, want ...string) {
	t.Helper()
	synctest.Wait()
	var all metricdata.ResourceMetrics
	must(t, reader.Collect(context.Background(), &all))
	var got []string
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Gauge[int64]:
				got = append(got, points(m, data.DataPoints)...)
			case metricdata.Gauge[float64]:
				got = append(got, points(m, data.DataPoints)...)
			}
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("metrics are\n%q, want\n%q", got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		defer srv.Close()
		boot, err := bootstrap.Server(srv.Target())
		must(t, err)
		c, err := client.New(client.Config{Bootstrap: boot, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()}})
		must(t, err)
		defer c.Close()
		v, err := view.New(t.Context(), c, view.Root{Type: view.RootCluster, Name: "backend"}, view.Config{})
		must(t, err)
		defer v.Stop()
		reader := sdk.NewManualReader()
		reg, err := viewmetrics.Observe(sdk.NewMeterProvider(sdk.WithReader(reader)), viewmetrics.Config{Name: "main", Target: "echo"}, v)
		must(t, err)
		st, err := srv.Accept(t.Context())
		must(t, err)
		const labels = "grpc.target=echo,xdswatch.view=main"
		time.Sleep(2 * time.Second)
		expect(t, reader,
			"xdswatch.view.ready 0 {bool} "+labels,
			"xdswatch.view.waiting 0 {resource} "+labels+",xdswatch.view.blocking=false",
			"xdswatch.view.waiting 1 {resource} "+labels+",xdswatch.view.blocking=true",
			"xdswatch.view.waiting.age 2 s "+labels)
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n", &clusterv3.Cluster{
			Name: "backend", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		})))
		expect(t, reader,
			"xdswatch.view.ready 1 {bool} "+labels,
			"xdswatch.view.waiting 0 {resource} "+labels+",xdswatch.view.blocking=false",
			"xdswatch.view.waiting 0 {resource} "+labels+",xdswatch.view.blocking=true",
			"xdswatch.view.waiting.age 0 s "+labels)
		must(t, reg.Unregister())
	})
}
