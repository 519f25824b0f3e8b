package otelmetrics_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/xdswatch/xdswatch/otelmetrics"
	"github.com/xdswatch/xdswatch/otelmetrics/viewmetrics"
)

// register notes which instruments are made.
type register struct {
	noop.MeterProvider
	made *[]string
}

func (r register) Meter(string, ...metric.MeterOption) metric.Meter { return meter{made: r.made} }

type meter struct {
	noop.Meter
	made *[]string
}

func (r meter) add(name, kind, unit string) {
	*r.made = append(*r.made, fmt.Sprintf("%s %s %s", name, kind, unit))
}

func (r meter) Int64Counter(name string, opts ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	r.add(name, "counter", metric.NewInt64CounterConfig(opts...).Unit())
	return r.Meter.Int64Counter(name, opts...)
}

func (r meter) Int64ObservableGauge(name string, opts ...metric.Int64ObservableGaugeOption) (metric.Int64ObservableGauge, error) {
	r.add(name, "gauge", metric.NewInt64ObservableGaugeConfig(opts...).Unit())
	return r.Meter.Int64ObservableGauge(name, opts...)
}

func (r meter) Float64ObservableGauge(name string, opts ...metric.Float64ObservableGaugeOption) (metric.Float64ObservableGauge, error) {
	r.add(name, "gauge", metric.NewFloat64ObservableGaugeConfig(opts...).Unit())
	return r.Meter.Float64ObservableGauge(name, opts...)
}

// docs/METRICS.md is the contract: it lists each instrument, with its kind and unit.
func TestContract(t *testing.T) {
	var made []string
	_, err := otelmetrics.New(register{made: &made}, otelmetrics.Config{})
	must(t, err)
	_, err = viewmetrics.Observe(register{made: &made}, viewmetrics.Config{}, nil)
	must(t, err)
	text, err := os.ReadFile("../docs/METRICS.md")
	must(t, err)
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| (gauge|counter), `([^`]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, fmt.Sprintf("%s %s %s", row[1], row[2], row[3]))
	}
	slices.Sort(made)
	slices.Sort(listed)
	if !slices.Equal(made, listed) {
		t.Errorf("made are\n%q, listed\n%q", made, listed)
	}
}
