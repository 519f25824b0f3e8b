package oteltrace_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/otelmetrics/oteltrace"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// docs/METRICS.md is the contract: it lists each span and each attribute.
func TestContract(t *testing.T) {
	text, err := os.ReadFile("../../docs/METRICS.md")
	must(t, err)
	for _, name := range []string{
		oteltrace.ResponseSpan, oteltrace.GetSpan, oteltrace.ReadySpan, string(oteltrace.ServerKey), string(oteltrace.ResourceTypeKey),
		string(oteltrace.VersionKey), string(oteltrace.ResourcesKey), string(oteltrace.SizeKey), string(oteltrace.InvalidKey), string(oteltrace.NameKey),
	} {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/METRICS.md has no %s", name)
		}
	}
}

// rig is a client with a tracer, and its server.
func rig(t *testing.T, next *client.Trace) (*tracetest.SpanRecorder, *oteltrace.Tracer, *testutil.Server, *client.Client) {
	srv := testutil.NewServer()
	recorder := tracetest.NewSpanRecorder()
	tracer := oteltrace.New(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)))
	boot, err := bootstrap.Server(srv.Target())
	must(t, err)
	c, err := client.New(client.Config{
		Bootstrap: boot, Trace: tracer.Trace(next), GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()},
	})
	must(t, err)
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
		srv.Close()
	})
	return recorder, tracer, srv, c
}

func cluster(name string) *clusterv3.Cluster { return &clusterv3.Cluster{Name: name} }

// The span of a response goes from its receipt to the return of the last handler, and those of Get
// and Ready are linked to it.
func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called atomic.Int32
		recorder, tracer, srv, c := rig(t, &client.Trace{
			Response: func(client.ResponseInfo) { called.Add(1) }, Handled: func(client.HandledInfo) { called.Add(1) },
			NACK: func(client.AnswerInfo) { called.Add(1) }, StreamDown: func(client.StreamInfo, error) { called.Add(1) },
		})
		for range 2 {
			_, err := c.Watch(t.Context(), cds.Type, "a", func(client.Event[any]) { time.Sleep(time.Second) })
			must(t, err)
		}
		got := make(chan error, 2)
		go func() {
			_, err := tracer.Get(context.Background(), c, cds.Type, "a")
			got <- err
		}()
		st, err := srv.Accept(t.Context())
		must(t, err)
		time.Sleep(time.Minute / 10)
		received := time.Now()
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "7", "n1", cluster("a"))))
		must(t, <-got)
		must(t, tracer.Ready(t.Context(), c))
		time.Sleep(10 * time.Second)
		bad := testutil.SotW(cds.Type.TypeURL(), "8", "n2", cluster("a"))
		bad.Resources[0].Value = []byte("no message")
		must(t, st.Send(bad))
		time.Sleep(10 * time.Second)

		byName := map[string][]trace.ReadOnlySpan{}
		for _, s := range recorder.Ended() {
			byName[s.Name()] = append(byName[s.Name()], s)
		}
		responses := byName[oteltrace.ResponseSpan]
		if len(responses) != 2 {
			t.Fatalf("%d spans of responses", len(responses))
		}
		good := responses[0]
		if from, took := good.StartTime(), good.EndTime().Sub(good.StartTime()); !from.Equal(received) || took != 2*time.Second {
			t.Errorf("a span from %v took %v, want %v and the two handlers", from, took, received)
		}
		set := attribute.NewSet(good.Attributes()...)
		const want = "grpc.xds.resource_type=envoy.config.cluster.v3.Cluster,grpc.xds.server=passthrough:///scripted,xdswatch.resources=1,xdswatch.size=120,xdswatch.version=7"
		if got := set.Encoded(attribute.DefaultEncoder()); got != want || good.Status().Code != codes.Unset {
			t.Errorf("attributes are %s, status %v", got, good.Status())
		}
		if refused := responses[1]; refused.Status().Code != codes.Error {
			t.Errorf("the status of a refused response is %v", refused.Status())
		}
		for _, name := range []string{oteltrace.GetSpan, oteltrace.ReadySpan} {
			spans := byName[name]
			if len(spans) != 1 || len(spans[0].Links()) != 1 || spans[0].Links()[0].SpanContext.SpanID() != good.SpanContext().SpanID() {
				t.Errorf("%s: %d spans, without the link", name, len(spans))
			}
		}
		if n := called.Load(); n != 5 { // two responses, twice handled, one NACK
			t.Errorf("%d calls of the next trace", n)
		}
	})
}

// A response whose stream ends has a span that ends; what goes wrong stands in the others.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, tracer, srv, c := rig(t, nil)
		block := make(chan struct{})
		_, err := c.Watch(t.Context(), cds.Type, "a", func(client.Event[any]) { <-block })
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := tracer.Ready(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ready: %v", err)
		}
		if _, err := tracer.Get(t.Context(), c, cds.Type, "*"); err == nil {
			t.Error("Get of everything")
		}
		st, err := srv.Accept(t.Context())
		must(t, err)
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "7", "n1", cluster("a"))))
		synctest.Wait()
		st.End(errors.New("gone"))
		synctest.Wait()
		close(block)
		time.Sleep(time.Minute)
		ended := recorder.Ended()
		if len(ended) != 3 || ended[0].Status().Code != codes.Error || ended[1].Status().Code != codes.Error {
			t.Errorf("%d spans have ended: %v", len(ended), ended)
		}
		if n := len(recorder.Started()); n != len(ended) {
			t.Errorf("%d spans were started", n)
		}
	})
}
