package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
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
	if len(s.Routes) > 0 {
		rc := s.Routes[0]
		now.err, now.origin, now.routes = rc.Err, rc.Origin, route.Compile(rc.Message, old.routes, rc.OnDemand...)
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
	req := route.FromHTTP(r)
	found, err := c.routes.Match(&req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	switch found.Action() {
	case route.ActionForward:
		p.forward(w, r, c, found, &req)
	case route.ActionRedirect:
		location, status := found.Redirect(&req)
		http.Redirect(w, r, location, status)
	case route.ActionRespond:
		w.WriteHeader(found.Response().Status)
		_, _ = w.Write(found.Response().Body)
	default:
		http.Error(w, "the route forwards nothing", http.StatusNotFound)
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
	if e == nil {
		http.Error(w, fmt.Sprintf("cluster %q: %s", choice.Cluster, to.set.Reason()), http.StatusServiceUnavailable)
		return
	}
	if !to.limit.Enter() {
		http.Error(w, fmt.Sprintf("cluster %q has %d requests at a time already", choice.Cluster, to.limit.Max()), http.StatusServiceUnavailable)
		return
	}
	defer to.limit.Leave()
	call, ok := to.load.Locality(e.Locality.GetLocality(), e.Priority).Begin(e.Message.GetEndpoint().GetAddress()), false
	defer func() { call.End(ok) }()
	forward := httputil.ReverseProxy{Transport: p.transport, Rewrite: func(out *httputil.ProxyRequest) {
		out.SetXForwarded()
		out.Out.URL.Scheme, out.Out.URL.Host, out.Out.URL.RawPath = "http", e.Address.Addr, found.RewritePath(req)
		if plain, err := url.PathUnescape(out.Out.URL.RawPath); err == nil {
			out.Out.URL.Path = plain
		}
		out.Out.Host = found.RewriteHost(req, choice.Entry, c.origin.AutoHost(e.Hostname))
	}, ModifyResponse: func(resp *http.Response) error { ok = resp.StatusCode < 500; return nil }}
	forward.ServeHTTP(w, r)
}

// endpoints finds those of a cluster: in the snapshot that routed the request, or on demand.
func (p *proxy) endpoints(ctx context.Context, c *config, choice route.Choice) (endpoints, error) {
	if e, ok := c.sets[choice.Cluster]; ok {
		return e, nil
	}
	if choice.ByHeader && choice.Cluster != "" {
		switch found, err := p.view.Cluster(ctx, choice.Cluster); {
		case err != nil:
			return endpoints{}, err
		case found.Endpoints != nil:
			return endpoints{set: endpoint.New(found.Endpoints.Assignment(), endpoint.Config{}), limit: p.breakers.Of(found.Message)}, nil
		}
	}
	return endpoints{}, fmt.Errorf("cluster %q has no endpoints", choice.Cluster)
}
