package httptransport

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/xdswatch/xdswatch/internal/hold"
	"github.com/xdswatch/xdswatch/load"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/circuit"
	"github.com/xdswatch/xdswatch/view/endpoint"
	"github.com/xdswatch/xdswatch/view/route"
)

// Config configures a [Transport]. Its zero value works.
type Config struct {
	// RouteConfig is the name of the route configuration, if the listener has several; "" is its
	// first.
	RouteConfig string
	// OnDemand has clusters that a request names itself (cluster_header), and that nothing else
	// names, looked up: see [view.View.Cluster]. Otherwise such requests fail.
	OnDemand bool
	// Base makes the transport to the endpoints of a cluster. It may look at the cluster's
	// transport socket, and set TLSClientConfig; requests are then sent by https. Its DialContext,
	// or net.Dialer's, is called with the endpoint's address. nil is a transport like
	// [http.DefaultTransport] without proxy, and an error for clusters with a transport socket,
	// which would otherwise be sent plain text.
	Base func(*view.Cluster) (*http.Transport, error)
	// Load has requests counted and reported to the management servers whose clusters ask for it. A
	// request without response fails, and one whose response's status is 500 or more; it is in
	// progress until the response's body is closed. nil counts nothing.
	Load *load.Reporter
	// Breakers counts the requests of clusters, for their limit (max_requests). nil counts those of
	// the transport alone.
	Breakers *circuit.Breakers
}

// Transport is an [http.RoundTripper]. It is safe for concurrent use.
type Transport struct {
	view   *view.View
	config Config
	next   endpoint.Smooth
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	updating sync.Mutex
	routing  atomic.Pointer[routing]
	clusters sync.Map // name → *cluster, of those that were used
}

// routing is how requests are routed by one snapshot.
type routing struct {
	snapshot *view.Snapshot
	table    *route.Table
	normal   route.Normalization // of requests, before they are routed
	origin   view.Origin         // of the routes
	err      error               // why there are none
}

// Error is a request that was not sent, or a response that is no response of an endpoint.
type Error struct {
	// Status is how a proxy answers: 404 without a route, 503 without a cluster or endpoint and after
	// [Transport.Close], 500 for a fault of the configuration, 400 for a request without a URL, for a URL without a
	// path to route by (url.URL.Opaque) and for a path that the listener refuses.
	Status int
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// New makes a transport over a view, whose root is a listener or a route configuration. It ends with
// [Transport.Close], which does not stop the view. After the view's end it goes on by the last snapshot, so that a proxy whose
// listener was removed can finish what its clients have begun.
func New(v *view.View, config Config) *Transport {
	if config.Base == nil {
		config.Base = plainText
	}
	if config.Breakers == nil {
		config.Breakers = &circuit.Breakers{}
	}
	t := &Transport{view: v, config: config}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	go t.follow()
	return t
}

// errClosed is why a request is not sent after Close.
var errClosed = errors.New("the transport is closed")

// Close ends the transport, and closes its connections as soon as they are idle. Requests that were sent finish. Others
// fail: those that wait for the configuration, and those that come later.
func (t *Transport) Close() {
	t.cancel()
	for _, c := range t.clusters.Range {
		c.(*cluster).retire()
	}
}

// CloseIdleConnections closes connections that no request uses, for [http.Client].
func (t *Transport) CloseIdleConnections() {
	for _, c := range t.clusters.Range {
		c.(*cluster).closeIdle()
	}
}

// follow drains connections of endpoints that leave, also while there are no requests.
func (t *Transport) follow() {
	for range t.view.Snapshots(t.ctx) {
		t.current()
	}
}

// current is the routing by the newest snapshot, nil before the first.
func (t *Transport) current() *routing {
	s, now := t.view.Snapshot(), t.routing.Load()
	if s == nil || now != nil && now.snapshot == s {
		return now
	}
	t.updating.Lock()
	defer t.updating.Unlock()
	// The snapshot that is the newest now is at least as new as the one compiled last.
	s, now = t.view.Snapshot(), t.routing.Load()
	if now == nil || now.snapshot != s {
		now = t.compile(s, now)
		t.routing.Store(now)
		t.drain()
	}
	return now
}

func (t *Transport) compile(s *view.Snapshot, old *routing) *routing {
	r := &routing{snapshot: s, err: s.Err}
	var known *route.Table
	if old != nil {
		known = old.table
	}
	if r.err != nil {
		return r
	}
	for _, rc := range s.Routes {
		switch {
		case t.config.RouteConfig != "" && rc.Name != t.config.RouteConfig:
		case rc.Err != nil:
			r.err = rc.Err
			return r
		default:
			r.table = route.Compile(rc.Message, known, rc.OnDemand()...)
			r.normal, r.origin = rc.Normalization, rc.Origin
			return r
		}
	}
	r.err = errors.New("the listener has no such route configuration")
	return r
}

// drain brings the clusters that were used up to date.
func (t *Transport) drain() {
	for name, c := range t.clusters.Range {
		if t.view.Snapshot().Cluster(name.(string)) == nil {
			t.clusters.Delete(name)
			c.(*cluster).retire()
			continue
		}
		c.(*cluster).update(nil)
	}
}

// RoundTrip implements [http.RoundTripper]. It waits for the view's first snapshot. An error is an
// *[Error] if the request was not sent, else that of the connection.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.roundTrip(r)
	if resp == nil && r.Body != nil {
		// As the contract of RoundTripper has it; a second time does nothing.
		_ = r.Body.Close()
	}
	return resp, err
}

func (t *Transport) roundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case t.ctx.Err() != nil:
		return nil, &Error{http.StatusServiceUnavailable, errClosed}
	case r.URL == nil:
		return nil, &Error{http.StatusBadRequest, errors.New("the request has no URL")}
	case r.URL.Opaque != "": // it would be sent in place of the path that was routed
		return nil, &Error{http.StatusBadRequest, fmt.Errorf("the request's URL is opaque (%q)", r.URL.Opaque)}
	}
	now := t.current()
	if now == nil {
		if err := t.wait(r.Context(), t.view.Ready); err != nil {
			return nil, err
		}
		now = t.current()
	}
	if now.err != nil {
		return nil, &Error{http.StatusServiceUnavailable, now.err}
	}
	req := route.FromHTTP(r)
	switch redirect, err := now.normal.Apply(&req, 0); {
	case err != nil:
		return nil, &Error{http.StatusBadRequest, err}
	case redirect != "":
		return local(r, http.StatusTemporaryRedirect, http.Header{"Location": {redirect}}, nil), nil
	}
	found, err := now.table.Match(&req)
	var fault *route.Fault
	switch {
	case errors.As(err, &fault):
		return nil, &Error{http.StatusInternalServerError, err}
	case err != nil:
		return nil, &Error{http.StatusNotFound, err}
	case found.Action() == route.ActionForward:
		return t.forward(r, &req, now, found)
	default:
		return answer(r, &req, found)
	}
}

// wait waits for the configuration with a function of the view, at most until the transport is closed.
func (t *Transport) wait(ctx context.Context, until func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	err := until(ctx)
	if t.ctx.Err() != nil {
		err = errClosed
	}
	if err != nil {
		return &Error{http.StatusServiceUnavailable, err}
	}
	return nil
}

// forward sends a request to its cluster, which is held until the response is over.
func (t *Transport) forward(r *http.Request, req *route.Request, now *routing, found *route.Route) (*http.Response, error) {
	choice := found.Choose(req)
	c, err := t.find(r.Context(), now.snapshot, choice)
	if err != nil {
		return nil, err
	}
	root := t.cluster(c)
	root.hold.Enter()
	over := ends{root.hold.Leave}
	leaf, e, locality, err := t.pick(now.snapshot, c)
	if err != nil {
		over.end()
		return nil, &Error{http.StatusServiceUnavailable, err}
	}
	if leaf != root {
		leaf.hold.Enter()
		over = append(over, leaf.hold.Leave)
	}
	limit := leaf.state.Load().limit
	if !limit.Enter() {
		leaf.state.Load().load.Drop("")
		over.end()
		return nil, unavailable("cluster %q has %d requests at a time already (max_requests)", leaf.name, limit.Max())
	}
	over = append(over, limit.Leave)
	p, err := leaf.pool(e)
	if err != nil {
		over.end()
		return nil, &Error{http.StatusInternalServerError, err}
	}
	over = append(over, p.drain)
	out := rewritten(r, req, found, e, p)
	out.Host = found.RewriteHost(req, choice.Entry, now.origin.AutoHost(e.Hostname))
	if found.Proto().GetRoute().GetTimeout() != nil && found.Timeout() > 0 {
		var end func()
		out, end = timed(out, found.Timeout())
		over = append(over, end)
	}
	call := locality.Begin(e.Message.GetEndpoint().GetAddress())
	resp, err := p.transport.RoundTrip(out)
	if err != nil {
		call.End(false)
		over.end()
		return nil, err
	}
	over = append(over, counted(call, resp))
	resp.Request = r
	resp.Body = over.after(resp.Body)
	return resp, nil
}

// find finds a cluster in the snapshot that routed the request, or on demand.
func (t *Transport) find(ctx context.Context, s *view.Snapshot, choice route.Choice) (*view.Cluster, error) {
	c := s.Cluster(choice.Cluster)
	switch {
	case c != nil && c.Status() != view.StatusWaiting:
		return c, nil
	case choice.Cluster == "":
		return nil, unavailable("the request does not name its cluster")
	case !choice.ByHeader || !t.config.OnDemand:
		return nil, unavailable("there is no cluster %q", choice.Cluster)
	}
	err := t.wait(ctx, func(ctx context.Context) (err error) {
		c, err = t.view.Cluster(ctx, choice.Cluster)
		return err
	})
	return c, err
}

// pick chooses an endpoint: of an aggregate's first leaf that has one. A leaf of which the newest snapshot
// knows nothing, since it has left, is that of the snapshot that routed the request.
func (t *Transport) pick(routed *view.Snapshot, c *view.Cluster) (*cluster, *endpoint.Endpoint, *load.Locality, error) {
	if c.Kind() != view.KindAggregate {
		leaf := t.cluster(c)
		e, locality, err := leaf.pick(t.next.Next(), rand.Uint64)
		return leaf, e, locality, err
	}
	why := fmt.Errorf("cluster %q has no members", c.Name)
	for _, name := range c.Leaves() {
		// VIEW-34: the leaf says how it is reached, and what its limits are.
		m := t.view.Snapshot().Cluster(name)
		if m == nil || m.Status() == view.StatusWaiting {
			m = cmp.Or(routed.Cluster(name), m)
		}
		if m == nil {
			continue
		}
		leaf := t.cluster(m)
		e, locality, err := leaf.pick(t.next.Next(), rand.Uint64)
		if err == nil {
			return leaf, e, locality, nil
		}
		why = err
	}
	return nil, nil, nil, why
}

// counted is called when the response is over. Its trailers are there only then.
func counted(call load.Call, resp *http.Response) func() {
	return func() {
		for _, h := range []http.Header{resp.Header, resp.Trailer} {
			if b, err := base64.StdEncoding.DecodeString(h.Get(load.MetricsHeader)); err == nil {
				call.EncodedMetrics(b)
			}
		}
		call.End(resp.StatusCode < http.StatusInternalServerError)
	}
}

// cluster is what the transport has of a cluster, brought up to date.
func (t *Transport) cluster(c *view.Cluster) *cluster {
	known, ok := t.clusters.Load(c.Name)
	if !ok {
		known, _ = t.clusters.LoadOrStore(c.Name, &cluster{
			name: c.Name, transport: t, pools: map[endpoint.Address]*pool{}, loads: t.config.Load.NewSet(),
			hold: hold.New(func() func() { return t.view.Hold(c.Name) }),
		})
	}
	k := known.(*cluster)
	if !ok && t.ctx.Err() != nil { // Close may not have seen it
		k.retire()
	}
	if k.state.Load().of() != c {
		k.update(c)
	}
	return k
}

// rewritten is the request as it is sent, but for its host.
func rewritten(r *http.Request, req *route.Request, found *route.Route, e *endpoint.Endpoint, p *pool) *http.Request {
	out := r.WithContext(r.Context()) // a shallow copy
	to := *r.URL
	to.Scheme, to.Host = p.scheme, e.Address.Addr
	if e.Address.Network == "unix" {
		to.Host = "localhost"
	}
	if path := found.RewritePath(req); path != r.URL.EscapedPath() {
		to.Path, _ = url.PathUnescape(path) // which it can
		to.RawPath = path
	}
	out.URL = &to
	return out
}

func unavailable(format string, args ...any) error {
	return &Error{http.StatusServiceUnavailable, fmt.Errorf(format, args...)}
}
