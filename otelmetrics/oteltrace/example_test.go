package oteltrace_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/otelmetrics/oteltrace"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// A program brings the provider. A Get is a span that is linked to the responses it waited for.
func Example() {
	server, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set("1", testutil.EDSCluster("backend")); err != nil {
		log.Fatal(err)
	}
	spans := tracetest.NewSpanRecorder()
	tracer := oteltrace.New(trace.NewTracerProvider(trace.WithSpanProcessor(spans)))
	c, err := client.New(client.Config{Bootstrap: server.Bootstrap(), Trace: tracer.Trace(nil)})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ev, err := tracer.Get(ctx, c, cds.Type, "backend")
	fmt.Println(ev.Name, ev.Version, err)
	for _, span := range spans.Ended() {
		if span.Name() == oteltrace.GetSpan {
			fmt.Println(span.Name(), "is linked to", len(span.Links()), "response")
		}
	}
	// Output:
	// backend 1 <nil>
	// xds.get is linked to 1 response
}
