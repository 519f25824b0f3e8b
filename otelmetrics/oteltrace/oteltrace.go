// Package oteltrace makes spans of OpenTelemetry of what a client does: one for each response, from
// its receipt until the last handler has returned, and one for each Get and Ready of the program,
// linked to the responses that it had to wait for.
//
//	tracer := oteltrace.New(provider)
//	c, err := client.New(client.Config{Bootstrap: boot, Trace: tracer.Trace(nil)})
//	ev, err := tracer.Get(ctx, c, eds.Type, "backend")
//	err = tracer.Ready(ctx, c)
package oteltrace

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
)

// The names of spans, and their attributes.
const (
	ResponseSpan = "xds.response"
	GetSpan      = "xds.get"
	ReadySpan    = "xds.ready"

	ServerKey       = attribute.Key("grpc.xds.server")
	ResourceTypeKey = attribute.Key("grpc.xds.resource_type")
	VersionKey      = attribute.Key("xdswatch.version") // of a response
	ResourcesKey    = attribute.Key("xdswatch.resources")
	SizeKey         = attribute.Key("xdswatch.size") // in bytes
	InvalidKey      = attribute.Key("xdswatch.invalid")
	NameKey         = attribute.Key("xdswatch.name") // of a resource, of GetSpan
)

// scope is the tracer's.
const scope = "github.com/xdswatch/xdswatch/otelmetrics/oteltrace"

// Tracer makes the spans of one client. It is safe for concurrent use.
type Tracer struct {
	tracer trace.Tracer

	mu   sync.Mutex
	open map[place]trace.Span         // responses that are being handled
	last map[source]trace.SpanContext // the newest response of each type
}

// place is where a response is: a stream has one of a type at a time.
type place struct {
	stream uint64
	url    string
}

type source struct{ server, url string }

// New makes a tracer for one client.
func New(p trace.TracerProvider) *Tracer {
	return &Tracer{tracer: p.Tracer(scope), open: map[place]trace.Span{}, last: map[source]trace.SpanContext{}}
}

// Trace is for Config.Trace of the client. It also calls the functions of next, if that is not nil.
func (t *Tracer) Trace(next *client.Trace) *client.Trace {
	var all client.Trace
	if next != nil {
		all = *next
	}
	before := all
	all.Response = func(r client.ResponseInfo) {
		t.response(r)
		if before.Response != nil {
			before.Response(r)
		}
	}
	all.Handled = func(h client.HandledInfo) {
		t.handled(h)
		if before.Handled != nil {
			before.Handled(h)
		}
	}
	all.NACK = func(a client.AnswerInfo) {
		t.refused(a)
		if before.NACK != nil {
			before.NACK(a)
		}
	}
	all.StreamDown = func(s client.StreamInfo, err error) {
		t.streamDown(s)
		if before.StreamDown != nil {
			before.StreamDown(s, err)
		}
	}
	return &all
}

func (t *Tracer) response(r client.ResponseInfo) {
	if r.Ignored {
		return
	}
	_, span := t.tracer.Start(context.Background(), ResponseSpan, trace.WithTimestamp(r.Received), trace.WithNewRoot(),
		trace.WithAttributes(ServerKey.String(r.Stream.Server), resourceType(r.Type), VersionKey.String(cut(r.Version)),
			ResourcesKey.Int(r.Resources), SizeKey.Int(r.Size)))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[place{r.Stream.ID, r.Type}] = span
	t.last[source{r.Stream.Server, r.Type}] = span.SpanContext()
}

func (t *Tracer) take(stream uint64, url string) trace.Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	span := t.open[place{stream, url}]
	delete(t.open, place{stream, url})
	return span
}

func (t *Tracer) handled(h client.HandledInfo) {
	span := t.take(h.Stream.ID, h.Type)
	if span == nil {
		return
	}
	if h.Invalid > 0 {
		span.SetAttributes(InvalidKey.Int(h.Invalid))
		span.SetStatus(codes.Error, "resources are invalid")
	}
	span.End(trace.WithTimestamp(h.At))
}

// refused notes the text of a NACK, if the response is still being handled.
func (t *Tracer) refused(a client.AnswerInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if span := t.open[place{a.Stream.ID, a.Type}]; span != nil {
		span.AddEvent("NACK", trace.WithAttributes(attribute.String("error", cut(a.Err.Error()))))
	}
}

// streamDown ends the spans of a stream, whose end nobody tells.
func (t *Tracer) streamDown(s client.StreamInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at, span := range t.open {
		if at.stream == s.ID {
			span.AddEvent("stream down")
			span.End()
			delete(t.open, at)
		}
	}
}

// Get is [client.Client.Get] in a span, which is linked to the newest response of the type from the
// server that the value is of: the one that brought it, or one since.
func (t *Tracer) Get(ctx context.Context, c *client.Client, kind resource.AnyType, name string, opts ...client.WatchOption) (client.Event[any], error) {
	ctx, span := t.tracer.Start(ctx, GetSpan, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(resourceType(kind.TypeURL()), NameKey.String(cut(name))))
	defer span.End()
	ev, err := c.Get(ctx, kind, name, opts...)
	if err != nil {
		fail(span, err)
		return ev, err
	}
	span.SetAttributes(ServerKey.String(ev.Server))
	t.mu.Lock()
	link := t.last[source{ev.Server, kind.TypeURL()}]
	t.mu.Unlock()
	if link.IsValid() {
		span.AddLink(trace.Link{SpanContext: link})
	}
	return ev, nil
}

// Ready is [client.Client.Ready] in a span, which is linked to the newest response of each server
// and type.
func (t *Tracer) Ready(ctx context.Context, c *client.Client) error {
	ctx, span := t.tracer.Start(ctx, ReadySpan, trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	err := c.Ready(ctx)
	if err != nil {
		fail(span, err)
	}
	for _, link := range t.links() {
		span.AddLink(link)
	}
	return err
}

// links are the newest responses, in order.
func (t *Tracer) links() (all []trace.Link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sources := make([]source, 0, len(t.last))
	for s := range t.last {
		sources = append(sources, s)
	}
	slices.SortFunc(sources, func(a, b source) int { return cmp.Or(cmp.Compare(a.server, b.server), cmp.Compare(a.url, b.url)) })
	for _, s := range sources {
		all = append(all, trace.Link{SpanContext: t.last[s], Attributes: []attribute.KeyValue{ServerKey.String(s.server), resourceType(s.url)}})
	}
	return all
}

func fail(span trace.Span, err error) {
	span.RecordError(err)
	span.SetStatus(codes.Error, cut(err.Error()))
}

func resourceType(typeURL string) attribute.KeyValue {
	return ResourceTypeKey.String(typeURL[strings.LastIndexByte(typeURL, '/')+1:])
}

// maxText is how much of a text is kept that a server sent, in bytes.
const maxText = 1024

func cut(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "..."
	}
	return s
}
