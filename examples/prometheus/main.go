// Prometheus serves the metrics of a client and a view to Prometheus.
//
//	cd examples/prometheus && go run . bootstrap.json LISTENER 127.0.0.1:9090 STORE
//
// STORE is the directory of the last-known-good store. dashboard.json is for Grafana, alerts.yaml
// for Prometheus (rule_files). It is a module of its own, since the exporter has many dependencies.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/otelmetrics"
	"github.com/xdswatch/xdswatch/otelmetrics/viewmetrics"
	"github.com/xdswatch/xdswatch/store"
	"github.com/xdswatch/xdswatch/view"
)

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: prometheus BOOTSTRAP LISTENER ADDRESS STORE")
	}
	boot, err := bootstrap.Load(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	handler, closeAll, err := serve(context.Background(), boot, os.Args[2], os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()
	server := &http.Server{Addr: os.Args[3], Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	log.Print(server.ListenAndServe())
}

// serve follows a listener, and makes the handler that Prometheus asks.
func serve(ctx context.Context, boot *bootstrap.Config, listener, dir string) (handler http.Handler, closeAll func(), err error) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		return nil, nil, err
	}
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	in, err := otelmetrics.New(provider, otelmetrics.Config{})
	if err != nil {
		return nil, nil, err
	}
	c, err := client.New(client.Config{Bootstrap: boot, Metrics: in.Hooks(), Store: store.Dir(dir, store.Options{})})
	if err != nil {
		return nil, nil, err
	}
	closeAll = func() {
		_ = provider.Shutdown(ctx) // nobody reads any more
		c.Close()
	}
	if _, err = in.Observe(c); err != nil {
		closeAll()
		return nil, nil, err
	}
	v, err := view.New(ctx, c, view.Root{Type: view.RootListener, Name: listener}, view.Config{})
	if err == nil {
		_, err = viewmetrics.Observe(provider, viewmetrics.Config{Name: listener}, v)
	}
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), closeAll, nil
}
