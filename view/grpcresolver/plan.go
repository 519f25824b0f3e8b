package grpcresolver

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/hold"
	"github.com/xdswatch/xdswatch/load"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/circuit"
	"github.com/xdswatch/xdswatch/view/endpoint"
	"github.com/xdswatch/xdswatch/view/route"
)

// plan is what the policy needs of one snapshot. It is immutable.
type plan struct {
	err      error        // why no RPC can be sent
	table    *route.Table // nil if there is one cluster, named ""
	origin   view.Origin  // of the routes
	host     string       // the channel's authority
	clusters map[string]*cluster
}

// cluster is what an RPC may be routed to.
type cluster struct {
	members []member     // in order of priority
	hold    *hold.Shared // of its RPCs; nil without a view
}

// member is a leaf of a cluster, or the cluster itself.
type member struct {
	*leaf
	over func(balancer.DoneInfo) // ends an RPC; nil without a view
}

func (c *cluster) add(l *leaf) {
	c.members = append(c.members, member{l, func(balancer.DoneInfo) {
		l.limit.Leave()
		c.hold.Leave()
	}})
}

// leaf is a cluster with endpoints of its own.
type leaf struct {
	name  string
	from  *view.Endpoints // nil without a view
	set   *endpoint.Set   // nil if there are no endpoints
	why   func(reason string) error
	limit *circuit.Limit // nil without a view

	load       *load.Cluster
	localities map[*endpointv3.LocalityLbEndpoints]*load.Locality
}

// absence is the error of endpoints that do not exist.
type absence struct {
	name   string
	reason client.Reason
}

func (a *absence) Error() string {
	return fmt.Sprintf("endpoints %q do not exist (%v)", a.name, a.reason)
}

func (a *absence) Unwrap() error { return client.ErrDoesNotExist }

// listenerResolver turns snapshots into plans.
type listenerResolver struct {
	channel  resolver.ClientConn
	breakers *circuit.Breakers

	mu     sync.Mutex // guards the fields below
	view   *view.View // nil until it was made, and there is no plan before
	plan   *plan
	leaves map[string]*leaf
	holds  map[string]*hold.Shared // by cluster
	loads  *load.Set
	closed bool
}

// begin takes the view, which may have published snapshots already.
func (r *listenerResolver) begin(v *view.View) {
	r.mu.Lock()
	r.view = v
	r.mu.Unlock()
	r.update()
}

// close ends the counting of load.
func (r *listenerResolver) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.loads.Close()
}

// update makes a plan of the newest snapshot.
func (r *listenerResolver) update() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.view == nil {
		return
	}
	s := r.view.Snapshot()
	if s == nil {
		return
	}
	p := &plan{err: s.Err, host: s.Root.Host, clusters: map[string]*cluster{}}
	leaves := map[string]*leaf{}
	for c := range s.Clusters() {
		p.clusters[c.Name] = &cluster{hold: r.hold(c)}
		if c.Kind() != view.KindAggregate {
			leaves[c.Name] = r.leaf(s, c)
			p.clusters[c.Name].add(leaves[c.Name])
		}
	}
	for c := range s.Clusters() {
		if c.Kind() != view.KindAggregate {
			continue
		}
		// VIEW-33: a member in error keeps its place.
		for _, name := range c.Leaves() {
			if l := leaves[name]; l != nil {
				p.clusters[c.Name].add(l)
			}
		}
		if err := c.Err(); err != nil { // it has no leaves then
			p.clusters[c.Name].add(&leaf{name: c.Name, why: func(string) error { return err }})
		}
	}
	switch {
	case p.err != nil:
	case len(s.Routes) == 0 || s.VirtualHost == nil:
		p.err = errors.New("the listener has no routes")
	default:
		p.origin = s.Routes[0].Origin
		// The view has chosen the virtual host.
		p.table = route.Compile(&routev3.RouteConfiguration{
			Name: s.Routes[0].Name, VirtualHosts: []*routev3.VirtualHost{s.VirtualHost},
			IgnorePathParametersInPathMatching: s.Routes[0].Message.GetIgnorePathParametersInPathMatching(),
		}, r.plan.table)
	}
	r.plan, r.leaves = p, leaves
	r.rest(s)
	r.loads.Sweep()
	publish(r.channel, p)
}

// leaf reads the endpoints of a cluster, if they have changed.
func (r *listenerResolver) leaf(s *view.Snapshot, c *view.Cluster) *leaf {
	l := &leaf{name: c.Name, from: c.Endpoints, limit: r.breakers.Of(c.Message)}
	l.why = func(reason string) error { return s.Why(c, reason) }
	if c.Server != nil {
		l.load = r.loads.Use(load.TargetOf(c.Server.URI, c.Message))
	}
	switch old := r.leaves[c.Name]; {
	case c.Endpoints == nil:
		return l
	case old != nil && old.from == c.Endpoints:
		l.set, l.localities = old.set, old.localities
		if l.load == old.load {
			return l
		}
	default:
		// VIEW-17: the locality of endpoints that the cluster has in itself needs no weight.
		l.set = endpoint.New(c.Endpoints.Assignment(), endpoint.Config{
			GRPC: c.Kind() == view.KindEDS, DNS: c.Kind() == view.KindDNS,
		})
	}
	l.localities = l.load.Localities(c.Endpoints.Assignment())
	return l
}

// hold is the one of a cluster, in each plan that has it.
func (r *listenerResolver) hold(c *view.Cluster) *hold.Shared {
	h := r.holds[c.Name]
	if h == nil {
		v := r.view
		h = hold.New(func() func() { return v.Hold(c.Name) })
		r.holds[c.Name] = h
	}
	return h
}

// rest lets go of clusters that only RPCs hold, when these are over.
func (r *listenerResolver) rest(s *view.Snapshot) {
	for name, h := range r.holds {
		c := s.Cluster(name)
		h.SetAlone(c == nil || hold.Alone(c.ReferencedBy()))
		if c == nil {
			delete(r.holds, name)
		}
	}
}

type (
	planKey     struct{}
	endpointKey struct{}
)

// publish replaces the channel's state.
func publish(channel resolver.ClientConn, p *plan) {
	state := resolver.State{
		ServiceConfig: channel.ParseServiceConfig(serviceConfig),
		Attributes:    attributes.New(planKey{}, p),
	}
	seen := map[string]bool{}
	// Of endpoints with the same first address it is always the same one that counts: gRPC connects anew where the others differ.
	for _, name := range slices.Sorted(maps.Keys(p.clusters)) {
		for _, l := range p.clusters[name].members {
			if l.set == nil {
				continue
			}
			for _, e := range l.set.Endpoints() {
				if key := addressOf(e.Address); !seen[key] {
					seen[key] = true
					state.Endpoints = append(state.Endpoints, channelEndpoint(e))
				}
			}
		}
	}
	// The error is the policy's opinion of the state. It would have a polling resolver try again;
	// here the server will send a better one.
	_ = channel.UpdateState(state)
}

// channelEndpoint has all addresses of an endpoint.
func channelEndpoint(e *endpoint.Endpoint) resolver.Endpoint {
	re := resolver.Endpoint{
		Addresses:  []resolver.Address{{Addr: addressOf(e.Address)}},
		Attributes: attributes.New(endpointKey{}, e),
	}
	for _, more := range e.More {
		re.Addresses = append(re.Addresses, resolver.Address{Addr: addressOf(more)})
	}
	return re
}

// addressOf is how gRPC writes an address.
func addressOf(a endpoint.Address) string {
	if a.Network == "unix" {
		return "unix:" + a.Addr
	}
	return a.Addr
}

// Endpoint is what the assignment says of a channel's endpoint: its weight, locality, priority and
// hostname. It is nil for endpoints of other resolvers. It is for load balancing policies that a
// program brings itself, over [NewEDSBuilder], with grpc.WithDisableServiceConfig and a default service config that
// names the policy.
func Endpoint(e resolver.Endpoint) *endpoint.Endpoint {
	found, _ := e.Attributes.Value(endpointKey{}).(*endpoint.Endpoint)
	return found
}
