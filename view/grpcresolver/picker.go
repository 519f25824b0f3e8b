package grpcresolver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/load"
	"github.com/xdswatch/xdswatch/view/endpoint"
	"github.com/xdswatch/xdswatch/view/route"
)

// picker chooses an endpoint for an RPC. It lives as long as the plan and the connections stay as
// they are.
type picker struct {
	plan        *plan
	next        *endpoint.Smooth
	connections *connections
	ready       sync.Map // *leaf → *readySet, made when they are needed
}

// readySet is the endpoints of a leaf that are connected.
type readySet struct {
	set     *endpoint.Set
	pickers map[*endpoint.Endpoint]balancer.Picker // of their connections
	waiting bool                                   // one of the others is connecting
	late    bool                                   // it has been for too long
	err     error                                  // why none is connected
}

func newPicker(p *plan, next *endpoint.Smooth, all *connections) *picker {
	return &picker{plan: p, next: next, connections: all}
}

// Pick finds route, cluster and endpoint. Errors that are no status let RPCs wait that want to.
func (p *picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	if p.plan.err != nil {
		return balancer.PickResult{}, p.plan.err
	}
	found, name, err := p.route(info)
	if err != nil {
		return balancer.PickResult{}, err
	}
	c := p.plan.clusters[name]
	if c == nil || len(c.members) == 0 {
		return balancer.PickResult{}, fmt.Errorf("there is no cluster %q", name)
	}
	auto := found != nil && found.Proto().GetRoute().GetAutoHostRewrite().GetValue()
	var errs []error
	waiting := false
	for i, m := range c.members {
		result, e, err := p.pick(m.leaf, info, i == len(c.members)-1 && !waiting)
		if err == nil {
			if auto {
				result.Metadata = authority(p.plan.origin.AutoHost(e.Hostname))
			}
			return c.ended(result, m, e), nil
		}
		if err == balancer.ErrNoSubConnAvailable || isStatus(err) {
			return result, err
		}
		waiting = waiting || err == errLate
		errs = append(errs, err)
	}
	if waiting {
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	}
	return balancer.PickResult{}, errors.Join(errs...)
}

// authority replaces that of an RPC (gRFC A81).
func authority(host string) metadata.MD {
	if host == "" {
		return nil
	}
	return metadata.Pairs(":authority", host)
}

// errLate is that of a leaf whose endpoints have been connecting for too long: others go before them.
var errLate = errors.New("the endpoints are connecting")

// isStatus is whether an error has a status of its own.
func isStatus(err error) bool {
	_, ok := status.FromError(err)
	return ok
}

// route routes an RPC. There is no route without a table.
func (p *picker) route(info balancer.PickInfo) (found *route.Route, cluster string, err error) {
	if p.plan.table == nil {
		return nil, "", nil
	}
	md, _ := metadata.FromOutgoingContext(info.Ctx)
	r := route.Request{Host: p.plan.host, Method: "POST", Scheme: "http", Path: info.FullMethodName, Header: md, GRPC: true}
	found, err = p.plan.table.VirtualHosts()[0].Match(&r)
	switch {
	case err != nil:
		return nil, "", status.Errorf(codes.Unavailable, "%s: %v", info.FullMethodName, err)
	case found.Action() != route.ActionForward:
		return nil, "", status.Errorf(codes.Unavailable, "%s: the route does not forward (%v)", info.FullMethodName, found.Action())
	}
	return found, found.Choose(&r).Cluster, nil
}

// pick chooses among the endpoints of a leaf that are connected, and enters its limit.
// VIEW-63: a leaf without one drops nothing that a later leaf may take.
func (p *picker) pick(l *leaf, info balancer.PickInfo, last bool) (balancer.PickResult, *endpoint.Endpoint, error) {
	if l.set == nil {
		return balancer.PickResult{}, nil, l.why("")
	}
	ready := p.readyOf(l)
	e := ready.set.Pick(p.next.Next())
	if e != nil || last && !ready.waiting && !ready.late { // an RPC that waits is picked again
		if category, dropped := l.set.Drop(rand.Uint64); dropped {
			l.load.Drop(category)
			return balancer.PickResult{}, nil, status.Errorf(codes.Unavailable, "cluster %q drops the RPC (%s)", l.name, category)
		}
	}
	if e == nil {
		return balancer.PickResult{}, nil, ready.fault(l)
	}
	if !l.limit.Enter() {
		l.load.Drop("")
		return balancer.PickResult{}, nil, status.Errorf(codes.Unavailable, "cluster %q has %d RPCs at a time already (max_requests)", l.name, l.limit.Max())
	}
	result, err := ready.pickers[e].Pick(info)
	if err != nil {
		l.limit.Leave()
	}
	return result, e, err
}

// fault is why there is no endpoint to pick.
func (r *readySet) fault(l *leaf) error {
	switch {
	case r.waiting:
		return balancer.ErrNoSubConnAvailable
	case r.late:
		return errLate
	case r.err != nil:
		return r.err
	default:
		return l.why(l.set.Reason())
	}
}

func (p *picker) readyOf(l *leaf) *readySet {
	if known, ok := p.ready.Load(l); ok {
		return known.(*readySet)
	}
	r := &readySet{}
	chosen := -1
	for i, priority := range l.set.Priorities() {
		if chosen < 0 && r.look(p, priority) {
			chosen = i
		}
	}
	r.pickers = map[*endpoint.Endpoint]balancer.Picker{}
	r.set = l.set.Filter(func(e *endpoint.Endpoint) bool {
		if int(e.Priority) != chosen {
			return false
		}
		s, _ := p.stateOf(e)
		if s.ConnectivityState != connectivity.Ready {
			return false
		}
		r.pickers[e] = s.Picker
		return true
	})
	p.ready.Store(l, r)
	return r
}

// look is whether a priority is the one to use.
// VIEW-63: it is unless all connections to it have failed, or are late.
func (r *readySet) look(p *picker, priority endpoint.Priority) (use bool) {
	for _, locality := range priority.Localities {
		for _, e := range locality.Endpoints {
			switch s, late := p.stateOf(e); s.ConnectivityState {
			case connectivity.Ready:
				use = true
			case connectivity.Connecting, connectivity.Idle:
				if r.late = r.late || late; !late {
					use, r.waiting = true, true
				}
			case connectivity.TransientFailure:
				if _, err := s.Picker.Pick(balancer.PickInfo{}); r.err == nil && err != nil {
					r.err = err
				}
			case connectivity.Shutdown:
			}
		}
	}
	return use
}

func (p *picker) stateOf(e *endpoint.Endpoint) (s balancer.State, late bool) {
	return p.connections.state(addressOf(e.Address))
}

// ended holds the cluster, and has the RPC counted, until it is over.
func (c *cluster) ended(result balancer.PickResult, m member, e *endpoint.Endpoint) balancer.PickResult {
	if c.hold != nil {
		c.hold.Enter()
	}
	locality, done := m.localities[e.Locality], result.Done
	if locality == nil && done == nil {
		result.Done = m.over
		return result
	}
	call := locality.Begin(e.Message.GetEndpoint().GetAddress())
	result.Done = func(info balancer.DoneInfo) {
		if done != nil {
			done(info)
		}
		if values := info.Trailer.Get(load.MetricsHeader); len(values) > 0 {
			call.EncodedMetrics([]byte(values[0]))
		}
		// gRPC picks again, after an RPC of which nothing was sent, if the connection has just gone.
		call.End(info.Err == nil && info.BytesSent)
		if m.over != nil {
			m.over(info)
		}
	}
	return result
}
