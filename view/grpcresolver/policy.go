package grpcresolver

import (
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/endpointsharding"
	"google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/connectivity"

	"github.com/xdswatch/xdswatch/view/endpoint"
)

type policyBuilder struct{}

func (policyBuilder) Name() string { return Policy }

func (policyBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	p := &policy{channel: cc, next: &endpoint.Smooth{}}
	p.connections.late = p.late
	// gRPC's own policy has a connection to each endpoint, by the first of its addresses that works.
	p.Balancer = endpointsharding.NewBalancer(aggregated{cc, p}, opts, p.connections.build(balancer.Get(pickfirst.Name).Build), endpointsharding.Options{})
	return p
}

// policy chooses among the connections of its child by plan.
type policy struct {
	balancer.Balancer // the child
	channel           balancer.ClientConn
	next              *endpoint.Smooth
	connections       connections

	mu    sync.Mutex
	plan  *plan // nil until the first
	child balancer.State
	ended bool
}

// Close ends the policy.
func (p *policy) Close() {
	p.connections.end()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.Balancer.Close()
}

// late has RPCs look for others than the endpoints that have been connecting for too long.
func (p *policy) late() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.updatePicker()
}

// aggregated is the channel as the child sees it.
type aggregated struct {
	balancer.ClientConn
	policy *policy
}

func (c aggregated) UpdateState(s balancer.State) {
	c.policy.mu.Lock()
	defer c.policy.mu.Unlock()
	c.policy.child = s
	c.policy.updatePicker()
}

// UpdateClientConnState takes a plan. That it has no endpoints is no error: RPCs are told why.
func (p *policy) UpdateClientConnState(s balancer.ClientConnState) error {
	plan, ok := s.ResolverState.Attributes.Value(planKey{}).(*plan)
	if !ok {
		return balancer.ErrBadResolverState
	}
	p.mu.Lock()
	p.plan = plan
	p.mu.Unlock()
	err := p.Balancer.UpdateClientConnState(s)
	if len(s.ResolverState.Endpoints) == 0 {
		return nil
	}
	return err
}

// updatePicker publishes a picker for the plan and the connections as they are. The caller has mu.
func (p *policy) updatePicker() {
	if p.plan == nil || p.child.Picker == nil || p.ended {
		return
	}
	state := p.child.ConnectivityState
	if p.plan.err != nil {
		state = connectivity.TransientFailure
	}
	p.channel.UpdateState(balancer.State{
		ConnectivityState: state,
		Picker:            newPicker(p.plan, p.next, &p.connections),
	})
}
