package route

import (
	"slices"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// Route is a compiled route. It is immutable and safe for concurrent use.
type Route struct {
	proto    *routev3.Route
	host     *VirtualHost
	match    match
	action   Action
	clusters clusters
	rewrite  rewrite
	redirect *redirect
	response *Response
	retry    *Retry
	timeout  time.Duration
	stream   time.Duration
	notGRPC  bool // gRPC leaves it out

	err, errInGRPC error
}

// Action is what a route does with a request.
type Action uint8

const (
	// ActionForward sends the request to a cluster; see [Route.Choose].
	ActionForward Action = iota
	// ActionRedirect answers with a redirect; see [Route.Redirect].
	ActionRedirect
	// ActionRespond answers with a fixed response; see [Route.Response].
	ActionRespond
	// ActionNone says that requests are not forwarded, as servers have it (gRFC A36).
	ActionNone
	// ActionUnknown is an action that this package does not know; the route is in fault.
	ActionUnknown
)

func (a Action) String() string {
	switch a {
	case ActionForward:
		return "forward"
	case ActionRedirect:
		return "redirect"
	case ActionRespond:
		return "respond"
	case ActionNone:
		return "none"
	case ActionUnknown:
		return "unknown"
	}
	return "invalid"
}

func compileRoute(r *routev3.Route, h *VirtualHost, f *faults) *Route {
	c := &Route{proto: r, host: h, match: compileMatch(r.GetMatch(), f)}
	c.notGRPC = len(r.GetMatch().GetQueryParameters()) > 0
	switch by := r.GetRoute().GetClusterSpecifier().(type) {
	case nil:
		c.notGRPC = c.notGRPC || r.GetRoute() != nil
	case *routev3.RouteAction_ClusterHeader, *routev3.RouteAction_InlineClusterSpecifierPlugin:
		c.notGRPC = true
	case *routev3.RouteAction_ClusterSpecifierPlugin:
		c.notGRPC = c.notGRPC || slices.Contains(h.settings.optional, by.ClusterSpecifierPlugin)
	}
	switch a := r.GetAction().(type) {
	case *routev3.Route_Route:
		c.forward(a.Route, f)
	case *routev3.Route_Redirect:
		c.action, c.redirect = ActionRedirect, compileRedirect(a.Redirect, f)
	case *routev3.Route_DirectResponse:
		c.action, c.response = ActionRespond, compileResponse(a.DirectResponse, f)
	case *routev3.Route_NonForwardingAction:
		c.action = ActionNone
	default:
		c.action = ActionUnknown
		f.addf("action", "none that is supported")
	}
	return c
}

// defaultTimeout is Envoy's.
const defaultTimeout = 15 * time.Second

func (c *Route) forward(a *routev3.RouteAction, f *faults) {
	c.clusters = compileClusters(a, f)
	c.rewrite = compileRewrite(a, f)
	c.timeout = defaultTimeout
	if a.GetTimeout() != nil {
		c.timeout = a.GetTimeout().AsDuration()
	}
	if s := a.GetMaxStreamDuration(); s.GetGrpcTimeoutHeaderMax() != nil {
		c.stream = s.GetGrpcTimeoutHeaderMax().AsDuration()
	} else {
		c.stream = s.GetMaxStreamDuration().AsDuration()
	}
	policy, where := a.GetRetryPolicy(), "route.retry_policy"
	if policy == nil {
		policy, where = c.host.proto.GetRetryPolicy(), "virtual host's retry_policy"
	}
	if policy != nil {
		c.retry = compileRetry(policy, where, f)
	}
}

// Proto is the route's message. It must not be changed.
func (c *Route) Proto() *routev3.Route { return c.proto }

// VirtualHost is the virtual host that the route belongs to.
func (c *Route) VirtualHost() *VirtualHost { return c.host }

// Action is what the route does with a request.
func (c *Route) Action() Action { return c.action }

// Err is the first fault of the route, a *[Fault], or nil. A route in fault cannot be used.
func (c *Route) Err() error { return c.err }

// Timeout is how long the response may take with all retries, from the end of the request on
// (RouteAction.timeout): 15 s if the route does not say, and 0 for any time. gRPC does not use it.
func (c *Route) Timeout() time.Duration { return c.timeout }

// MaxStreamDuration is how long a stream may take, as gRPC reads it (gRFC A31):
// grpc_timeout_header_max, else max_stream_duration, else 0 for any time.
func (c *Route) MaxStreamDuration() time.Duration { return c.stream }

// Retry is the route's retry policy, else its virtual host's, else nil. It must not be changed.
func (c *Route) Retry() *Retry { return c.retry }
