package otelmetrics_test

import (
	"context"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/otelmetrics"
	"github.com/xdswatch/xdswatch/otelmetrics/oteltrace"
	"github.com/xdswatch/xdswatch/otelmetrics/viewmetrics"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/view"
)

// What docs/METRICS.md quotes of these functions compiles; the examples of the packages show what it does.
var _ = []any{observe, observeView, traceGet}

func observe(boot *bootstrap.Config, provider metric.MeterProvider) error {
	in, err := otelmetrics.New(provider, otelmetrics.Config{})
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{Bootstrap: boot, Metrics: in.Hooks()})
	if err != nil {
		return err
	}
	reg, err := in.Observe(c)
	if err != nil {
		return err
	}
	defer reg.Unregister()
	return nil
}

func observeView(v *view.View, provider metric.MeterProvider) (metric.Registration, error) {
	reg, err := viewmetrics.Observe(provider, viewmetrics.Config{Name: "ingress"}, v)
	return reg, err
}

func traceGet(
	ctx context.Context, boot *bootstrap.Config, provider trace.TracerProvider, apply func(any),
) error {
	tracer := oteltrace.New(provider)
	c, err := client.New(client.Config{Bootstrap: boot, Trace: tracer.Trace(nil)})
	if err != nil {
		return err
	}
	if err := tracer.Ready(ctx, c); err != nil {
		return err
	}
	ev, err := tracer.Get(ctx, c, eds.Type, "backend")
	if err != nil {
		return err
	}
	apply(ev.Value)
	return nil
}
