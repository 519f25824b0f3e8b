// Package otelmetrics gives a client's metrics to OpenTelemetry, with the names, labels and
// units of gRFC A78. It uses the API only; the program chooses what collects.
//
// It is a module of its own, so that programs without OpenTelemetry need not have it.
package otelmetrics

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/xdswatch/xdswatch/client"
)

// The labels (gRFC A78).
const (
	TargetKey       = attribute.Key("grpc.target")
	ServerKey       = attribute.Key("grpc.xds.server")
	AuthorityKey    = attribute.Key("grpc.xds.authority")
	ResourceTypeKey = attribute.Key("grpc.xds.resource_type")
	CacheStateKey   = attribute.Key("grpc.xds.cache_state")
)

// scope is the instruments'.
const scope = "github.com/xdswatch/xdswatch/otelmetrics"

// Config says what to label.
type Config struct {
	// Target is the label grpc.target of everything: what the client is for. A78 has a
	// gRPC channel's target there, or "#server". If it is empty there is no such label.
	Target string
}

// Instruments are the instruments of one or more clients. Clients that share them should
// differ in their servers: counters add up, but of gauges with equal labels one wins. Safe
// for concurrent use.
type Instruments struct {
	base []attribute.KeyValue

	meter                   metric.Meter
	failures                metric.Int64Counter
	valid, invalid          metric.Int64Counter
	connected, resources    metric.Int64ObservableGauge
	lastAcceptedResponseAge metric.Float64ObservableGauge
	lastUpdateAge           metric.Float64ObservableGauge
	blocked, waiting        metric.Int64ObservableGauge
	unsavedAge              metric.Float64ObservableGauge
	badFiles                metric.Int64ObservableGauge
	stale                   metric.Int64ObservableGauge
}

// New makes the instruments of a provider; an error is the provider's.
func New(p metric.MeterProvider, c Config) (*Instruments, error) {
	in := &Instruments{meter: p.Meter(scope)}
	if c.Target != "" {
		in.base = []attribute.KeyValue{TargetKey.String(c.Target)}
	}
	var faults [12]error
	in.connected, faults[0] = in.meter.Int64ObservableGauge("grpc.xds_client.connected",
		metric.WithUnit("{bool}"),
		metric.WithDescription("1 while the client can reach the xDS server, 0 since a stream failed without a response."))
	in.failures, faults[1] = in.meter.Int64Counter("grpc.xds_client.server_failure",
		metric.WithUnit("{failure}"),
		metric.WithDescription("How often the xDS server went from reachable to not reachable."))
	in.valid, faults[2] = in.meter.Int64Counter("grpc.xds_client.resource_updates_valid",
		metric.WithUnit("{resource}"),
		metric.WithDescription("Resources received that were good, with those that had not changed."))
	in.invalid, faults[3] = in.meter.Int64Counter("grpc.xds_client.resource_updates_invalid",
		metric.WithUnit("{resource}"),
		metric.WithDescription("Resources received that were refused."))
	in.resources, faults[4] = in.meter.Int64ObservableGauge("grpc.xds_client.resources",
		metric.WithUnit("{resource}"),
		metric.WithDescription("Resources by what the client knows of them."))
	in.lastAcceptedResponseAge, faults[5] = in.meter.Float64ObservableGauge("xdswatch.last_accepted_response.age",
		metric.WithUnit("s"),
		metric.WithDescription("Time since the server's last response of the type in which nothing was invalid."))
	in.blocked, faults[6] = in.meter.Int64ObservableGauge("xdswatch.handlers.blocked",
		metric.WithUnit("{handler}"),
		metric.WithDescription("Handlers that have run for client.Config.HandlerTimeout or longer."))
	in.waiting, faults[7] = in.meter.Int64ObservableGauge("xdswatch.handlers.waiting",
		metric.WithUnit("{event}"),
		metric.WithDescription("Events that wait for those handlers."))
	in.lastUpdateAge, faults[8] = in.meter.Float64ObservableGauge("xdswatch.last_update.age",
		metric.WithUnit("s"),
		metric.WithDescription("Time since a held resource of the type last changed."))
	in.unsavedAge, faults[9] = in.meter.Float64ObservableGauge("xdswatch.store.unsaved.age",
		metric.WithUnit("s"),
		metric.WithDescription("Time that the oldest change has waited for client.Config.Store to save it; 0 if none waits."))
	in.stale, faults[10] = in.meter.Int64ObservableGauge("xdswatch.resources.stale",
		metric.WithUnit("{resource}"),
		metric.WithDescription("Values from client.Config.Store of which no server has spoken since the start."))
	in.badFiles, faults[11] = in.meter.Int64ObservableGauge("xdswatch.credentials.bad_files",
		metric.WithUnit("{file}"),
		metric.WithDescription("Files of certificates and tokens that have gone bad, so that an earlier state of them is in use."))
	if err := errors.Join(faults[:]...); err != nil {
		return nil, err
	}
	return in, nil
}

// Hooks is for client.Config.Metrics: the counters.
func (in *Instruments) Hooks() *client.Metrics {
	ctx := context.Background()
	return &client.Metrics{
		ServerFailure: func(server string) {
			in.failures.Add(ctx, 1, in.labels(ServerKey.String(server)))
		},
		ResourceUpdatesValid: func(u client.UpdateCount) {
			in.valid.Add(ctx, int64(u.Resources), in.labels(ServerKey.String(u.Server), resourceType(u.Type)))
		},
		ResourceUpdatesInvalid: func(u client.UpdateCount) {
			in.invalid.Add(ctx, int64(u.Resources), in.labels(ServerKey.String(u.Server), resourceType(u.Type)))
		},
	}
}

// Observe has the gauges of a client measured at each collection, which reads
// [client.Client.Gauges] once. Unregister the result when the client is closed. The error
// is the provider's.
func (in *Instruments) Observe(c *client.Client) (metric.Registration, error) {
	return in.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		in.observe(o, c.Gauges(), time.Now())
		return nil
	}, in.connected, in.resources, in.lastAcceptedResponseAge, in.lastUpdateAge, in.blocked, in.waiting, in.unsavedAge, in.stale, in.badFiles)
}

func (in *Instruments) observe(o metric.Observer, g client.Gauges, now time.Time) {
	bad := map[string]int64{}
	for _, f := range g.CredentialFiles {
		bad[f.Server]++
	}
	for _, s := range g.Servers {
		o.ObserveInt64(in.badFiles, bad[s.Server], in.labels(ServerKey.String(s.Server)))
		var v int64
		if s.Connected {
			v = 1
		}
		o.ObserveInt64(in.connected, v, in.labels(ServerKey.String(s.Server)))
	}
	for _, r := range g.Resources {
		o.ObserveInt64(in.resources, int64(r.Count), in.labels(
			AuthorityKey.String(r.Authority), CacheStateKey.String(string(r.State)), resourceType(r.Type)))
	}
	for _, a := range g.Accepted {
		age := max(now.Sub(a.At), 0)
		o.ObserveFloat64(in.lastAcceptedResponseAge, age.Seconds(), in.labels(ServerKey.String(a.Server), resourceType(a.Type)))
	}
	for _, u := range g.Updated {
		o.ObserveFloat64(in.lastUpdateAge, max(now.Sub(u.At), 0).Seconds(), in.labels(resourceType(u.Type)))
	}
	for _, s := range g.Stale {
		o.ObserveInt64(in.stale, int64(s.Count), in.labels(resourceType(s.Type)))
	}
	waiting := 0
	for _, b := range g.Blocked {
		waiting += b.Waiting
	}
	o.ObserveInt64(in.blocked, int64(len(g.Blocked)), in.labels())
	o.ObserveInt64(in.waiting, int64(waiting), in.labels())
	if u := g.Unsaved; u != nil {
		var age time.Duration
		if !u.Since.IsZero() {
			age = max(now.Sub(u.Since), 0)
		}
		o.ObserveFloat64(in.unsavedAge, age.Seconds(), in.labels())
	}
}

func (in *Instruments) labels(own ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(append(own, in.base...)...)
}

// resourceType is the label of a type, which A78 writes without the host of its URL.
func resourceType(typeURL string) attribute.KeyValue {
	return ResourceTypeKey.String(typeURL[strings.LastIndexByte(typeURL, '/')+1:])
}
