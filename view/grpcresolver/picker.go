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
	name, err := p.cluster(info)
	if err != nil {
		return balancer.PickResult{}, err
	}
	c := p.plan.clusters[name]
	if c == nil || len(c.leaves) == 0 {
		return balancer.PickResult{}, fmt.Errorf("there is no cluster %q", name)
	}
	var errs []error
	for _, l := range c.leaves {
		result, err := p.pick(l, info)
		if err == nil {
			return c.held(result), nil
		}
		if err == balancer.ErrNoSubConnAvailable || isStatus(err) {
			return result, err
		}
		errs = append(errs, err)
	}
	return balancer.PickResult{}, errors.Join(errs...)
}

// isStatus is whether an error has a status of its own.
func isStatus(err error) bool {
	_, ok := err.(interface{ GRPCStatus() *status.Status })
	return ok
}

// cluster routes an RPC.
func (p *picker) cluster(info balancer.PickInfo) (string, error) {
	if p.plan.table == nil {
		return "", nil
	}
	md, _ := metadata.FromOutgoingContext(info.Ctx)
	r := route.Request{Method: "POST", Scheme: "http", Path: info.FullMethodName, Header: md, GRPC: true}
	found, err := p.plan.table.VirtualHosts()[0].Match(&r)
	switch {
	case err != nil:
		return "", status.Errorf(codes.Unavailable, "%s: %v", info.FullMethodName, err)
	case found.Action() != route.ActionForward:
		return "", status.Errorf(codes.Unavailable, "%s: the route does not forward (%v)", info.FullMethodName, found.Action())
	}
	return found.Choose(&r).Cluster, nil
}

// pick chooses among the endpoints of a leaf that are connected.
func (p *picker) pick(l *leaf, info balancer.PickInfo) (balancer.PickResult, error) {
	if l.set == nil {
		return balancer.PickResult{}, l.why("it has no endpoints")
	}
	if category, dropped := l.set.Drop(rand.Uint64); dropped {
		l.load.Drop(category)
		return balancer.PickResult{}, status.Errorf(codes.Unavailable, "cluster %q drops the RPC (%s)", l.name, category)
	}
	ready := p.readyOf(l)
	e := ready.set.Pick(p.next.Next())
	switch {
	case e != nil:
		result, err := ready.pickers[e].Pick(info)
		if err == nil {
			result = l.counted(result, e)
		}
		return result, err
	case ready.waiting:
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	case ready.err != nil:
		return balancer.PickResult{}, ready.err
	default:
		return balancer.PickResult{}, l.why(l.set.Reason())
	}
}

// counted counts an RPC until it is over.
func (l *leaf) counted(result balancer.PickResult, e *endpoint.Endpoint) balancer.PickResult {
	locality := l.localities[e.Locality]
	if locality == nil {
		return result
	}
	call, done := locality.Begin(e.Message.GetEndpoint().GetAddress()), result.Done
	result.Done = func(info balancer.DoneInfo) {
		if done != nil {
			done(info)
		}
		if values := info.Trailer.Get(load.MetricsHeader); len(values) > 0 {
			call.EncodedMetrics([]byte(values[0]))
		}
		// gRPC picks again, after an RPC of which nothing was sent, if the connection has just gone.
		call.End(info.Err == nil && info.BytesSent)
	}
	return result
}

// why is the error of a leaf that has nothing to choose from.
func (l *leaf) why(reason string) error {
	if l.err != nil {
		return l.err
	}
	return fmt.Errorf("cluster %q: %s", l.name, reason)
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
		s := p.stateOf(e)
		if s.ConnectivityState != connectivity.Ready {
			return false
		}
		r.pickers[e] = s.Picker
		return true
	})
	p.ready.Store(l, r)
	return r
}

// look is whether a priority is the one to use: it is unless all connections to it have failed.
func (r *readySet) look(p *picker, priority endpoint.Priority) (use bool) {
	for _, locality := range priority.Localities {
		for _, e := range locality.Endpoints {
			switch s := p.stateOf(e); s.ConnectivityState {
			case connectivity.Ready:
				use = true
			case connectivity.Connecting, connectivity.Idle:
				use, r.waiting = true, true
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

func (p *picker) stateOf(e *endpoint.Endpoint) balancer.State {
	return p.connections.state(addressOf(e.Address))
}

// held holds the cluster until the RPC is over.
func (c *cluster) held(result balancer.PickResult) balancer.PickResult {
	if c.hold == nil {
		return result
	}
	c.hold.Enter()
	done := result.Done
	if done == nil {
		result.Done = c.over
		return result
	}
	result.Done = func(info balancer.DoneInfo) {
		done(info)
		c.hold.Leave()
	}
	return result
}
