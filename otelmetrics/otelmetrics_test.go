package otelmetrics_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/otelmetrics"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// collect writes down what a reader finds: one line a point, sorted.
func collect(reader sdk.Reader) (lines []string, err error) {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		return nil, err
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				lines = append(lines, points(m, data.DataPoints)...)
			case metricdata.Gauge[int64]:
				lines = append(lines, points(m, data.DataPoints)...)
			case metricdata.Gauge[float64]:
				lines = append(lines, points(m, data.DataPoints)...)
			default:
				return nil, fmt.Errorf("%s is a %T", m.Name, data)
			}
		}
	}
	slices.Sort(lines)
	return lines, nil
}

func points[N int64 | float64](m metricdata.Metrics, ps []metricdata.DataPoint[N]) (lines []string) {
	for _, p := range ps {
		lines = append(lines, fmt.Sprintf("%s %v %s %s", m.Name, p.Value, m.Unit, p.Attributes.Encoded(attribute.DefaultEncoder())))
	}
	return lines
}

// newClient makes a client of a scripted server, with its instruments.
func newClient(srv *testutil.Server, in *otelmetrics.Instruments, change ...func(*client.Config)) (*client.Client, error) {
	boot, err := bootstrap.Server(srv.Target())
	if err != nil {
		return nil, err
	}
	config := client.Config{
		Bootstrap: boot, Metrics: in.Hooks(), GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()},
	}
	for _, f := range change {
		f(&config)
	}
	return client.New(config)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// expect compares all that a reader finds.
func expect(t *testing.T, reader sdk.Reader, want ...string) {
	t.Helper()
	synctest.Wait()
	got, err := collect(reader)
	must(t, err)
	if !slices.Equal(got, want) {
		t.Errorf("metrics are\n%q, want\n%q", got, want)
	}
}

// Names, units, labels and values, from the first stream to the end.
// spec: METRIC-1 METRIC-2
func TestInstruments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		defer srv.Close()
		reader := sdk.NewManualReader()
		in, err := otelmetrics.New(sdk.NewMeterProvider(sdk.WithReader(reader)), otelmetrics.Config{Target: "xds:///echo"})
		must(t, err)
		c, err := newClient(srv, in)
		must(t, err)
		defer c.Close()
		reg, err := in.Observe(c)
		must(t, err)
		calm := []string{
			"xdswatch.handlers.blocked 0 {handler} grpc.target=xds:///echo",
			"xdswatch.handlers.waiting 0 {event} grpc.target=xds:///echo",
		}
		expect(t, reader, calm...)

		for _, name := range []string{"a", "b"} {
			_, err = c.Watch(context.Background(), cds.Type, name, func(client.Event[any]) {})
			must(t, err)
		}
		st, err := srv.Accept(t.Context())
		must(t, err)
		st.End(errors.New("not now"))
		st, err = srv.Accept(t.Context())
		must(t, err)
		const (
			target = "grpc.target=xds:///echo"
			server = ",grpc.xds.server=passthrough:///scripted"
			kind   = ",grpc.xds.resource_type=envoy.config.cluster.v3.Cluster"
			state  = ",grpc.xds.authority=#old,grpc.xds.cache_state="
		)
		files := "xdswatch.credentials.bad_files 0 {file} " + target + server
		failure := "grpc.xds_client.server_failure 1 {failure} " + target + server
		expect(t, reader,
			"grpc.xds_client.connected 0 {bool} "+target+server,
			"grpc.xds_client.resources 2 {resource} "+target+state+"requested"+kind,
			failure, files, calm[0], calm[1],
		)

		bad := &clusterv3.Cluster{Name: "b", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: -1}}
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n1", &clusterv3.Cluster{Name: "a"}, &clusterv3.Cluster{Name: "b"})))
		synctest.Wait()
		time.Sleep(1500 * time.Millisecond)
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "2", "n2", &clusterv3.Cluster{Name: "a"}, bad)))
		expect(t, reader,
			"grpc.xds_client.connected 1 {bool} "+target+server,
			"grpc.xds_client.resource_updates_invalid 1 {resource} "+target+kind+server,
			"grpc.xds_client.resource_updates_valid 3 {resource} "+target+kind+server,
			"grpc.xds_client.resources 1 {resource} "+target+state+"acked"+kind,
			"grpc.xds_client.resources 1 {resource} "+target+state+"nacked_but_cached"+kind,
			failure, files,
			calm[0], calm[1],
			"xdswatch.last_accepted_response.age 1.5 s "+target+kind+server,
			"xdswatch.last_update.age 1.5 s "+target+kind,
		)

		must(t, reg.Unregister())
		expect(t, reader,
			"grpc.xds_client.resource_updates_invalid 1 {resource} "+target+kind+server,
			"grpc.xds_client.resource_updates_valid 3 {resource} "+target+kind+server,
			failure,
		)
	})
}

// A handler that does not return is counted, with what waits for it.
// spec: U-3
func TestBlockedHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		defer srv.Close()
		reader := sdk.NewManualReader()
		in, err := otelmetrics.New(sdk.NewMeterProvider(sdk.WithReader(reader)), otelmetrics.Config{})
		must(t, err)
		c, err := newClient(srv, in)
		must(t, err)
		defer c.Close()
		_, err = in.Observe(c)
		must(t, err)
		release := make(chan struct{})
		defer close(release)
		for _, name := range []string{"a", "b"} {
			_, err = c.Watch(context.Background(), cds.Type, name, func(client.Event[any]) { <-release })
			must(t, err)
		}
		st, err := srv.Accept(t.Context())
		must(t, err)
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n1", &clusterv3.Cluster{Name: "a"}, &clusterv3.Cluster{Name: "b"})))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		got, err := collect(reader)
		must(t, err)
		for _, want := range []string{"xdswatch.handlers.blocked 1 {handler} ", "xdswatch.handlers.waiting 1 {event} "} {
			if !slices.Contains(got, want) {
				t.Errorf("metrics are\n%q, which lack %q", got, want)
			}
		}
	})
}

// A file of a certificate that has gone bad is counted.
func TestBadFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.pem")
	ca, err := testutil.NewCA()
	must(t, err)
	must(t, os.WriteFile(path, ca.PEM, 0o600))
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		defer srv.Close()
		reader := sdk.NewManualReader()
		in, err := otelmetrics.New(sdk.NewMeterProvider(sdk.WithReader(reader)), otelmetrics.Config{})
		must(t, err)
		c, err := newClient(srv, in, func(c *client.Config) {
			c.Bootstrap.Servers[0].ChannelCreds = bootstrap.ChannelCreds{Type: "tls", TLS: &bootstrap.TLS{CACertificateFile: path}}
		})
		must(t, err)
		defer c.Close()
		_, err = in.Observe(c)
		must(t, err)
		_, err = c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) {})
		must(t, err)
		time.Sleep(time.Minute)
		must(t, os.Remove(path))
		time.Sleep(time.Minute)
		got, err := collect(reader)
		must(t, err)
		if want := "xdswatch.credentials.bad_files 1 {file} grpc.xds.server=" + srv.Target(); !slices.Contains(got, want) {
			t.Errorf("metrics are\n%q, which lack %q", got, want)
		}
	})
}

// Without a target there is no label for it.
func TestWithoutTarget(t *testing.T) {
	reader := sdk.NewManualReader()
	in, err := otelmetrics.New(sdk.NewMeterProvider(sdk.WithReader(reader)), otelmetrics.Config{})
	must(t, err)
	in.Hooks().ServerFailure("s")
	got, err := collect(reader)
	must(t, err)
	if want := []string{"grpc.xds_client.server_failure 1 {failure} grpc.xds.server=s"}; !slices.Equal(got, want) {
		t.Errorf("metrics are %q, want %q", got, want)
	}
}

// refusing is a provider that makes no counters.
type refusing struct{ noop.MeterProvider }

func (refusing) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{} }

type refusingMeter struct{ noop.Meter }

var errRefused = errors.New("no counters")

func (refusingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errRefused
}

func TestProviderRefuses(t *testing.T) {
	if in, err := otelmetrics.New(refusing{}, otelmetrics.Config{}); in != nil || !errors.Is(err, errRefused) {
		t.Errorf("New gives %v, %v; want the provider's error", in, err)
	}
}

// A store that saves nothing is seen by its age.
func TestUnsaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		defer srv.Close()
		reader := sdk.NewManualReader()
		in, err := otelmetrics.New(sdk.NewMeterProvider(sdk.WithReader(reader)), otelmetrics.Config{})
		must(t, err)
		c, err := newClient(srv, in, func(c *client.Config) { c.Store = full{} })
		must(t, err)
		defer c.Close()
		_, err = in.Observe(c)
		must(t, err)
		has := func(want string) {
			t.Helper()
			synctest.Wait()
			got, err := collect(reader)
			must(t, err)
			if !slices.Contains(got, want) {
				t.Errorf("metrics are\n%q, which lack %q", got, want)
			}
		}
		has("xdswatch.store.unsaved.age 0 s ")
		_, err = c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) {})
		must(t, err)
		st, err := srv.Accept(t.Context())
		must(t, err)
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n1", &clusterv3.Cluster{Name: "a"})))
		time.Sleep(30 * time.Second)
		has("xdswatch.store.unsaved.age 30 s ")
	})
}

// What a client has of the store counts as stale until a server speaks of it.
func TestStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		defer srv.Close()
		srv.SetRefuse(true)
		reader := sdk.NewManualReader()
		in, err := otelmetrics.New(sdk.NewMeterProvider(sdk.WithReader(reader)), otelmetrics.Config{})
		must(t, err)
		c, err := newClient(srv, in, func(c *client.Config) { c.Store = lastRun{server: srv.Target()} })
		must(t, err)
		defer c.Close()
		_, err = in.Observe(c)
		must(t, err)
		for _, name := range []string{"a", "b"} {
			_, err = c.Watch(context.Background(), cds.Type, name, func(client.Event[any]) {})
			must(t, err)
		}
		has := func(want string) {
			t.Helper()
			synctest.Wait()
			got, err := collect(reader)
			must(t, err)
			if !slices.Contains(got, want) {
				t.Errorf("metrics are\n%q, which lack %q", got, want)
			}
		}
		time.Sleep(2 * time.Second)
		const label = "grpc.xds.resource_type=envoy.config.cluster.v3.Cluster"
		has("xdswatch.resources.stale 1 {resource} " + label)
		srv.SetRefuse(false)
		st, err := srv.Accept(t.Context())
		must(t, err)
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n1", &clusterv3.Cluster{Name: "a"})))
		has("xdswatch.resources.stale 0 {resource} " + label)
	})
}

// lastRun is a store with the cluster a of a server.
type lastRun struct {
	full
	server string
}

func (l lastRun) Load(_ client.StoreSection, _ []string, yield func(client.StoredResource)) error {
	value, err := anypb.New(&clusterv3.Cluster{Name: "a"})
	if err != nil {
		return err
	}
	b, err := proto.Marshal(&discoveryv3.Resource{Name: "a", Version: "7", Resource: value})
	if err != nil {
		return err
	}
	yield(client.StoredResource{Name: "a", Resource: b, Server: l.server, Updated: time.Now()})
	return nil
}

// full is a store without room.
type full struct{}

func (full) Load(client.StoreSection, []string, func(client.StoredResource)) error { return nil }
func (full) Save(client.StoreSection, []client.StoredResource) error               { return client.ErrNotSaved }
func (full) Names(client.StoreSection) ([]string, error)                           { return nil, nil }
