// Package viewmetrics gives the state of a view to OpenTelemetry: whether it is ready, and what it
// waits for.
//
//	reg, err := viewmetrics.Observe(provider, viewmetrics.Config{Name: "ingress"}, v)
//	defer reg.Unregister()
//
// It is apart from package otelmetrics, so that programs without a view do not link one.
package viewmetrics

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/xdswatch/xdswatch/otelmetrics"
	"github.com/xdswatch/xdswatch/view"
)

// The labels, beside [otelmetrics.TargetKey].
const (
	ViewKey     = attribute.Key("xdswatch.view")          // Config.Name
	BlockingKey = attribute.Key("xdswatch.view.blocking") // whether it holds back the next snapshot
)

// scope is the instruments'.
const scope = "github.com/xdswatch/xdswatch/otelmetrics/viewmetrics"

// Config says what to label.
type Config struct {
	// Name tells views apart: few names, chosen by the program.
	Name string
	// Target is that of [otelmetrics.Config].
	Target string
}

type instruments struct {
	ready, waiting metric.Int64ObservableGauge
	waitingAge     metric.Float64ObservableGauge
}

func newInstruments(m metric.Meter) (in instruments, err error) {
	var faults [3]error
	in.ready, faults[0] = m.Int64ObservableGauge("xdswatch.view.ready",
		metric.WithUnit("{bool}"),
		metric.WithDescription("1 if the view has a snapshot without an error of its root."))
	in.waiting, faults[1] = m.Int64ObservableGauge("xdswatch.view.waiting",
		metric.WithUnit("{resource}"),
		metric.WithDescription("Resources that the view waits for."))
	in.waitingAge, faults[2] = m.Float64ObservableGauge("xdswatch.view.waiting.age",
		metric.WithUnit("s"),
		metric.WithDescription("How long the oldest resource has been waited for that holds back the next snapshot; 0 if none does."))
	return in, errors.Join(faults[:]...)
}

// Observe has a view measured at each collection. Unregister the result when the view has ended.
// The error is the provider's.
func Observe(p metric.MeterProvider, c Config, v *view.View) (metric.Registration, error) {
	m := p.Meter(scope)
	in, err := newInstruments(m)
	if err != nil {
		return nil, err
	}
	base := []attribute.KeyValue{ViewKey.String(c.Name)}
	if c.Target != "" {
		base = append(base, otelmetrics.TargetKey.String(c.Target))
	}
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		in.observe(o, base, v, time.Now())
		return nil
	}, in.ready, in.waiting, in.waitingAge)
}

func (in instruments) observe(o metric.Observer, base []attribute.KeyValue, v *view.View, now time.Time) {
	var ready int64
	if s := v.Snapshot(); s != nil && s.Err == nil {
		ready = 1
	}
	counts := map[bool]int64{}
	var age time.Duration
	for _, w := range v.Waiting() {
		counts[w.Blocking]++
		if w.Blocking {
			age = max(age, now.Sub(w.Since))
		}
	}
	all := metric.WithAttributes(base...)
	o.ObserveInt64(in.ready, ready, all)
	for _, blocking := range []bool{true, false} {
		o.ObserveInt64(in.waiting, counts[blocking], all, metric.WithAttributes(BlockingKey.Bool(blocking)))
	}
	o.ObserveFloat64(in.waitingAge, age.Seconds(), all)
}
