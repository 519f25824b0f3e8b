package httptransport

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/hold"
	"github.com/xdswatch/xdswatch/load"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/circuit"
	"github.com/xdswatch/xdswatch/view/endpoint"
)

// cluster is what the transport has of a cluster of the view that was used.
type cluster struct {
	name      string
	transport *Transport
	state     atomic.Pointer[state]
	hold      *hold.Shared // of its requests
	retired   atomic.Bool  // for good: no snapshot has it, or the transport is closed

	mu    sync.Mutex
	loads *load.Set
	pools map[endpoint.Address]*pool
}

// state is one version of a cluster.
type state struct {
	from  *view.Cluster
	set   *endpoint.Set // nil if there are no endpoints
	limit *circuit.Limit

	load       *load.Cluster // nil unless requests are counted
	localities map[*endpointv3.LocalityLbEndpoints]*load.Locality
}

// of is the cluster that the state was made of.
func (s *state) of() *view.Cluster {
	if s == nil {
		return nil
	}
	return s.from
}

// update takes the newest version of the cluster, which is found unless no snapshot has it yet. It
// drains the connections to endpoints that have left, or all if the cluster itself has changed.
func (c *cluster) update(found *view.Cluster) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.state.Load()
	// The snapshot is read under the lock, so that an older one never comes after a newer one.
	now := c.transport.view.Snapshot().Cluster(c.name)
	if now != nil && now.Status() == view.StatusWaiting {
		// A late request holds a cluster that has left. What is known of it is used until then.
		if old != nil && hold.Alone(now.ReferencedBy()) {
			c.hold.SetAlone(true)
		}
		now = nil
	}
	if now == nil {
		now = found
	}
	if now == nil || old.of() == now {
		return
	}
	s := &state{from: now, limit: c.transport.config.Breakers.Of(now.Message)}
	switch {
	case now.Endpoints == nil:
	case old != nil && old.from.Endpoints == now.Endpoints:
		s.set = old.set
	default:
		s.set = endpoint.New(now.Endpoints.Assignment(), endpoint.Config{DNS: now.Kind() == view.KindDNS})
	}
	c.count(s)
	c.state.Store(s)
	c.hold.SetAlone(c.retired.Load() || hold.Alone(now.ReferencedBy()))
	keep := map[endpoint.Address]*endpoint.Endpoint{}
	if s.set != nil && (old == nil || proto.Equal(old.from.Message, now.Message)) {
		for _, e := range s.set.Endpoints() {
			keep[e.Address] = e
		}
	}
	for address, p := range c.pools {
		if e := keep[address]; e == nil || !slices.Equal(e.More, p.more) {
			delete(c.pools, address)
			p.retire()
		}
	}
}

// count has the requests of a new state counted. The caller has mu.
func (c *cluster) count(s *state) {
	if s.from.Server == nil || c.retired.Load() {
		return
	}
	s.load = c.loads.Use(load.TargetOf(s.from.Server.URI, s.from.Message))
	c.loads.Sweep()
	if s.from.Endpoints != nil {
		s.localities = s.load.Localities(s.from.Endpoints.Assignment())
	}
}

// pick chooses an endpoint.
func (c *cluster) pick(next uint64, random func() uint64) (*endpoint.Endpoint, *load.Locality, error) {
	s := c.state.Load()
	why := func(reason string) error { return c.transport.view.Snapshot().Why(s.from, reason) }
	if s.from.Err() != nil || s.set == nil {
		return nil, nil, why("")
	}
	if category, dropped := s.set.Drop(random); dropped {
		s.load.Drop(category)
		return nil, nil, fmt.Errorf("cluster %q drops the request (%s)", c.name, category)
	}
	e := s.set.Pick(next)
	if e == nil {
		return nil, nil, why(s.set.Reason())
	}
	return e, s.localities[e.Locality], nil
}

// pool is the connections to one endpoint. A transport of its own for each lets them be closed
// alone.
type pool struct {
	transport *http.Transport
	more      []endpoint.Address // of the endpoint
	scheme    string
	retired   atomic.Bool
}

// pool is that of an endpoint, made when it is first used.
func (c *cluster) pool(e *endpoint.Endpoint) (*pool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.pools[e.Address]; ok {
		return p, nil
	}
	transport, err := c.transport.config.Base(c.state.Load().from)
	if err != nil {
		return nil, err
	}
	p := &pool{transport: transport, more: e.More, scheme: "http"}
	if transport.TLSClientConfig != nil {
		p.scheme = "https"
	}
	dial := transport.DialContext
	if dial == nil {
		dial = (&net.Dialer{Timeout: connectTimeout(c.state.Load().from), KeepAlive: 30 * time.Second}).DialContext
	}
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return e.Dial(ctx, dial)
	}
	// A request may have picked an endpoint that has left meanwhile.
	if c.retired.Load() || !c.has(e.Address) {
		p.retired.Store(true)
		return p, nil
	}
	c.pools[e.Address] = p
	return p, nil
}

// has is whether the cluster has an endpoint. The caller has mu.
func (c *cluster) has(a endpoint.Address) bool {
	s := c.state.Load()
	return s.set != nil && slices.ContainsFunc(s.set.Endpoints(), func(e *endpoint.Endpoint) bool { return e.Address == a })
}

// defaultConnectTimeout is Envoy's.
const defaultConnectTimeout = 5 * time.Second

func connectTimeout(c *view.Cluster) time.Duration {
	if t := c.Message.GetConnectTimeout(); t != nil {
		return t.AsDuration()
	}
	return defaultConnectTimeout
}

// retire drains all connections.
func (c *cluster) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired.Store(true)
	c.hold.SetAlone(true)
	c.loads.Close()
	for address, p := range c.pools {
		delete(c.pools, address)
		p.retire()
	}
}

func (c *cluster) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pools {
		p.transport.CloseIdleConnections()
	}
}

func (p *pool) retire() {
	p.retired.Store(true)
	p.transport.CloseIdleConnections()
}

// drain is called after each request. The connection of a request that ran on is closed when it
// becomes idle: the transport closes those while nobody has asked for another.
func (p *pool) drain() {
	if p.retired.Load() {
		p.transport.CloseIdleConnections()
	}
}

// plainText makes transports for clusters without a transport socket.
func plainText(c *view.Cluster) (*http.Transport, error) {
	const raw = "type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"
	socket := c.Message.GetTransportSocket()
	if socket != nil && socket.GetTypedConfig().GetTypeUrl() != raw || len(c.Message.GetTransportSocketMatches()) > 0 {
		return nil, fmt.Errorf("cluster %q has a transport socket (%s), and httptransport.Config.Base is not set", c.Name, socket.GetName())
	}
	return &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second}, nil
}
