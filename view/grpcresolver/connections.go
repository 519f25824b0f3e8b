package grpcresolver

import (
	"sync"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/endpointsharding"
	"google.golang.org/grpc/connectivity"
)

// connections are the connections of a channel. They are kept from picker to picker, since each of
// ten thousand may change its state at any time.
type connections struct {
	late func() // some are late; called without mu

	mu    sync.RWMutex
	all   map[string]*connection // by the first address of the endpoint
	timer *time.Timer            // nil unless some are connecting
	ended bool
}

// failover is how long those of an endpoint wait that is connecting (gRFC A56), until others are used.
const failover = 10 * time.Second

// connection is gRPC's policy for one endpoint, which has one connection to it.
type connection struct {
	balancer.Balancer
	of *connections

	// of.mu guards the fields below.
	address string // "" until the endpoint is known
	state   balancer.State
	since   time.Time // of the state
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

// state is that of the connection to an address. Without one it is idle. A late one has been
// connecting for too long.
func (c *connections) state(address string) (s balancer.State, late bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if one := c.all[address]; one != nil {
		return one.state, one.connecting() && time.Since(one.since) >= failover
	}
	return balancer.State{}, false
}

func (c *connection) connecting() bool { return c.state.ConnectivityState == connectivity.Connecting }

// watch has the timer ring when the next connection is late. The caller has mu.
func (c *connections) watch(after time.Duration) {
	if c.timer == nil && !c.ended {
		c.timer = time.AfterFunc(after, c.ring)
	}
}

func (c *connections) ring() {
	c.mu.Lock()
	c.timer = nil
	for _, one := range c.all {
		if rest := failover - time.Since(one.since); one.connecting() && rest > 0 {
			c.watch(rest)
		}
	}
	c.mu.Unlock()
	c.late()
}

// end ends the timer.
func (c *connections) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended = true; c.timer != nil {
		c.timer.Stop()
	}
}

// told is the channel as the policy of a connection sees it.
type told struct {
	balancer.ClientConn
	connection *connection
}

// UpdateState notes the state before the channel has a new picker.
func (t told) UpdateState(s balancer.State) {
	t.connection.set(s)
	t.ClientConn.UpdateState(s)
}

func (c *connection) set(s balancer.State) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.state.ConnectivityState != s.ConnectivityState {
		c.since = time.Now()
	}
	if c.state = s; c.connecting() {
		c.of.watch(failover)
	}
}
