package grpcresolver

import (
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/endpointsharding"
)

// connections are the connections of a channel. They are kept from picker to picker, since each of
// ten thousand may change its state at any time.
type connections struct {
	mu  sync.RWMutex
	all map[string]*connection // by the first address of the endpoint
}

// connection is gRPC's policy for one endpoint, which has one connection to it.
type connection struct {
	balancer.Balancer
	of *connections

	// of.mu guards the fields below.
	address string // "" until the endpoint is known
	state   balancer.State
}

// build has the policies of a builder tell their state.
func (c *connections) build(build endpointsharding.ChildBuilderFunc) endpointsharding.ChildBuilderFunc {
	return func(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
		one := &connection{of: c}
		one.Balancer = build(told{cc, one}, opts)
		return one
	}
}

// UpdateClientConnState takes the endpoint, which stays the same but for the order of its addresses.
func (c *connection) UpdateClientConnState(s balancer.ClientConnState) error {
	c.of.move(c, s.ResolverState.Endpoints[0].Addresses[0].Addr)
	return c.Balancer.UpdateClientConnState(s)
}

// Close ends the policy.
func (c *connection) Close() {
	c.of.move(c, "")
	c.Balancer.Close()
}

// move gives a connection its address; "" is none. Another may have taken its old one meanwhile.
func (c *connections) move(one *connection, address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.address == address {
		return
	}
	if c.all[one.address] == one {
		delete(c.all, one.address)
	}
	if one.address = address; address == "" {
		return
	}
	if c.all == nil {
		c.all = map[string]*connection{}
	}
	c.all[address] = one
}

// state is that of the connection to an address. Without one it is idle.
func (c *connections) state(address string) balancer.State {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if one := c.all[address]; one != nil {
		return one.state
	}
	return balancer.State{}
}

// told is the channel as the policy of a connection sees it.
type told struct {
	balancer.ClientConn
	connection *connection
}

// UpdateState notes the state before the channel has a new picker.
func (t told) UpdateState(s balancer.State) {
	t.connection.of.mu.Lock()
	t.connection.state = s
	t.connection.of.mu.Unlock()
	t.ClientConn.UpdateState(s)
}
