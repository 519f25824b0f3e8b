package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/load"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/circuit"
	"github.com/xdswatch/xdswatch/view/endpoint"
	"github.com/xdswatch/xdswatch/view/route"
)

// proxy forwards requests. Its configuration is replaced as a whole.
type proxy struct {
	view      *view.View
	loads     *load.Set
	hold      func(cluster string) (release func())
	config    atomic.Pointer[config]
	transport http.RoundTripper
	next      endpoint.Smooth
	breakers  circuit.Breakers
}

// config is what the proxy needs of one snapshot, compiled.
type config struct {
	err    error // why there are no routes
	routes *route.Table
	normal route.Normalization  // of requests, before they are routed
	origin view.Origin          // of the routes
	sets   map[string]endpoints // by cluster
}

type endpoints struct {
	from  *view.Cluster
	set   *endpoint.Set
	limit *circuit.Limit // of requests at a time (max_requests)
	load  *load.Cluster  // nil unless the management server wants reports
}

func newProxy(ctx context.Context, c *client.Client, r *load.Reporter, listener string) (*proxy, error) {
	p := &proxy{loads: r.NewSet(), transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}}
	p.config.Store(&config{err: errors.New("no configuration yet")})
	v, err := view.New(ctx, c, view.Root{Type: view.RootListener, Name: listener}, view.Config{OnSnapshot: p.update})
	p.view, p.hold = v, v.Hold
	return p, err
}

// update compiles what has changed. Until it returns, what the configuration before needs stays watched.
func (p *proxy) update(s *view.Snapshot) {
	old, now := p.config.Load(), &config{err: cmp.Or(s.Err, errors.New("the listener has no routes")), sets: map[string]endpoints{}}
	for c := range s.Clusters() {
		if e := old.sets[c.Name]; c.Endpoints != nil {
			if c != e.from {
				e = endpoints{from: c, set: endpoint.New(c.Endpoints.Assignment(), endpoint.Config{}), limit: p.breakers.Of(c.Message)}
			}
			e.load = p.loads.Use(load.TargetOf(c.Server.URI, c.Message))
			now.sets[c.Name] = e
		}
	}
	for c := range s.Clusters() { // an aggregate is its first leaf that has endpoints
		usable := func(leaf string) bool { e := now.sets[leaf]; return e.set != nil && e.set.Reason() == "" }
		if i := slices.IndexFunc(c.Leaves(), usable); i >= 0 {
			now.sets[c.Name] = now.sets[c.Leaves()[i]]
		}
	}
	if len(s.Routes) > 0 {
		rc := s.Routes[0]
		now.err, now.origin, now.normal = rc.Err, rc.Origin, rc.Normalization
		now.routes = route.Compile(rc.Message, old.routes, rc.OnDemand()...)
	}
	p.config.Store(now)
	p.loads.Sweep()
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := p.config.Load()
	if c.err != nil {
		http.Error(w, c.err.Error(), http.StatusServiceUnavailable)
		return
	}
	req, ok := c.normal.Admit(w, r)
	if !ok {
		return
	}
	found, err := c.routes.Match(&req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if !found.Answer(w, r, &req) {
		p.forward(w, r, c, found, &req)
	}
}

// forward sends the request to an endpoint of its cluster, which is held meanwhile.
func (p *proxy) forward(w http.ResponseWriter, r *http.Request, c *config, found *route.Route, req *route.Request) {
	choice := found.Choose(req)
	to, err := p.endpoints(r.Context(), c, choice)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer p.hold(choice.Cluster)()
	e := to.set.Pick(p.next.Next())
	if e == nil || !to.limit.Enter() {
		why := cmp.Or(to.set.Reason(), fmt.Sprintf("it has %d requests at a time already", to.limit.Max()))
		http.Error(w, fmt.Sprintf("cluster %q: %s", choice.Cluster, why), http.StatusServiceUnavailable)
		return
	}
	defer to.limit.Leave()
	call, ok := to.load.Locality(e.Locality.GetLocality(), e.Priority).Begin(e.Message.GetEndpoint().GetAddress()), false
	defer func() { call.End(ok) }()
	forward := httputil.ReverseProxy{Transport: p.transport, Rewrite: func(out *httputil.ProxyRequest) {
		out.SetXForwarded()
		out.Out.URL.Scheme, out.Out.URL.Host, out.Out.URL.RawPath = "http", e.Address.Addr, found.RewritePath(req)
		out.Out.URL.Path, _ = url.PathUnescape(out.Out.URL.RawPath)
		out.Out.Host = found.RewriteHost(req, choice.Entry, c.origin.AutoHost(e.Hostname))
	}, ModifyResponse: func(resp *http.Response) error { ok = resp.StatusCode < 500; return nil }}
	forward.ServeHTTP(w, r)
}

// endpoints finds those of a cluster: in the snapshot that routed the request, or on demand.
func (p *proxy) endpoints(ctx context.Context, c *config, choice route.Choice) (endpoints, error) {
	e, err := c.sets[choice.Cluster], error(nil)
	if e.set == nil && choice.ByHeader && choice.Cluster != "" {
		_, err = p.view.Cluster(ctx, choice.Cluster)
		err = cmp.Or(err, p.view.Ready(ctx)) // update has returned
		e = p.config.Load().sets[choice.Cluster]
	}
	if e.set == nil {
		err = cmp.Or(err, fmt.Errorf("cluster %q has no endpoints", choice.Cluster))
	}
	return e, err
}
