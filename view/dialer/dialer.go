// Package dialer connects to the endpoints of clusters: a DialContext for programs whose protocol
// is neither HTTP nor gRPC, such as clients of databases.
//
//	v, err := view.New(ctx, c, view.Root{Type: view.RootCluster, Name: "postgres"}, view.Config{})
//	d := dialer.New(v, dialer.Config{})
//	conn, err := d.DialContext(ctx, "tcp", "postgres:5432")
//
// The cluster of a connection is held until the connection is closed (gRFC A74).
package dialer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdswatch/xdswatch/load"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/endpoint"
)

// Config configures a [Dialer]. Its zero value works.
type Config struct {
	// Attempts is how many endpoints a call tries; 0 means one.
	Attempts int
	// Dial connects to an endpoint's address; nil is net.Dialer's DialContext, with the cluster's
	// connect_timeout for each attempt, or Envoy's default of 5 s.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// AllowTransportSocket has clusters with a transport socket, such as TLS, dialled like others:
	// Dial, or the program afterwards, does what the socket asks for. Otherwise they are an error,
	// since the connection would be plain text.
	AllowTransportSocket bool
	// Load has connections counted as requests, and reported to the management servers whose clusters
	// ask for it: one fails that cannot be made, and is in progress until it is closed. nil counts
	// nothing.
	Load *load.Reporter
}

// Dialer connects to clusters of a view. It is safe for concurrent use, and has nothing to close.
type Dialer struct {
	view   *view.View
	config Config
	next   endpoint.Smooth
	sets   sync.Map     // cluster → *set
	stores atomic.Int64 // until the next sweep
}

// set is the endpoints of a cluster, as they were read last.
type set struct {
	from *view.Endpoints
	*endpoint.Set
}

// New makes a dialer over a view.
func New(v *view.View, config Config) *Dialer {
	config.Attempts = max(config.Attempts, 1)
	return &Dialer{view: v, config: config}
}

// DialContext connects to the cluster that the address names: what is before a port in figures, or
// all of it. The network is ignored, since endpoints have their own. See [Dialer.Dial].
func (d *Dialer) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	if host, port, err := net.SplitHostPort(address); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err == nil {
			address = host
		}
	}
	return d.Dial(ctx, address)
}

// Dial connects to an endpoint of a cluster, chosen by weight. A cluster that nothing names is
// looked up on demand, so Dial blocks until it is known, or ctx ends; see [view.View.Cluster] for the
// errors. The connection has a CloseWrite, as *net.TCPConn does. Other errors say why there is no endpoint, or join those of all attempts.
func (d *Dialer) Dial(ctx context.Context, cluster string) (net.Conn, error) {
	release := d.view.Hold(cluster)
	conn, over, err := d.dial(ctx, cluster)
	if err != nil {
		release()
		return nil, err
	}
	return &held{Conn: conn, release: sync.OnceFunc(func() { over(); release() })}, nil
}

// dial also returns what is to be called when the connection is closed.
func (d *Dialer) dial(ctx context.Context, cluster string) (conn net.Conn, over func(), err error) {
	c, err := d.view.Cluster(ctx, cluster)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	for range d.config.Attempts {
		leaf, e, err := d.pick(c)
		if err != nil {
			return nil, nil, err
		}
		end := d.count(leaf, e)
		conn, err := d.connect(ctx, leaf, e)
		if err == nil {
			return conn, func() { end(true) }, nil
		}
		end(false)
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, nil, fmt.Errorf("cluster %q: %w", cluster, errors.Join(errs...))
}

// loadOf is what is counted of a cluster. It is to be closed.
func (d *Dialer) loadOf(c *view.Cluster) *load.Cluster {
	if c.Server == nil {
		return nil
	}
	return d.config.Load.Cluster(load.TargetOf(c.Server.URI, c.Message))
}

// count counts a connection until its end.
func (d *Dialer) count(c *view.Cluster, e *endpoint.Endpoint) (end func(ok bool)) {
	counted := d.loadOf(c)
	call := counted.Locality(e.Locality.GetLocality(), e.Priority).Begin(e.Message.GetEndpoint().GetAddress())
	return func(ok bool) {
		call.End(ok)
		counted.Close()
	}
}

// pick chooses an endpoint: of an aggregate's first leaf that has one.
func (d *Dialer) pick(c *view.Cluster) (*view.Cluster, *endpoint.Endpoint, error) {
	members := []*view.Cluster{c}
	if c.Kind() == view.KindAggregate {
		members = members[:0]
		for _, name := range c.Leaves() {
			if leaf := d.view.Snapshot().Cluster(name); leaf != nil {
				members = append(members, leaf)
			}
		}
	}
	why := fmt.Errorf("cluster %q has no members", c.Name)
	for _, m := range members {
		e, err := d.pickLeaf(m)
		if err == nil {
			return m, e, nil
		}
		why = err
	}
	return nil, nil, why
}

func (d *Dialer) pickLeaf(c *view.Cluster) (*endpoint.Endpoint, error) {
	why := func(reason string) error { return d.view.Snapshot().Why(c, reason) }
	plain := c.Message.GetTransportSocket() == nil && len(c.Message.GetTransportSocketMatches()) == 0
	switch {
	case c.Err() == nil && !plain && !d.config.AllowTransportSocket:
		return nil, fmt.Errorf("cluster %q has a transport socket, and dialer.Config.AllowTransportSocket is not set", c.Name)
	case c.Err() != nil || c.Endpoints == nil:
		return nil, why("")
	}
	known, _ := d.sets.Load(c.Name)
	s, ok := known.(*set)
	if !ok || s.from != c.Endpoints {
		s = &set{c.Endpoints, endpoint.New(c.Endpoints.Assignment(), endpoint.Config{DNS: c.Kind() == view.KindDNS})}
		d.store(c.Name, s)
	}
	if category, dropped := s.Drop(rand.Uint64); dropped {
		counted := d.loadOf(c)
		counted.Drop(category)
		counted.Close()
		return nil, fmt.Errorf("cluster %q drops the connection (%s)", c.Name, category)
	}
	e := s.Pick(d.next.Next())
	if e == nil {
		return nil, why(s.Reason())
	}
	return e, nil
}

// store keeps a set. Now and then it drops those of clusters that have left.
func (d *Dialer) store(cluster string, s *set) {
	d.sets.Store(cluster, s)
	if d.stores.Add(-1) >= 0 {
		return
	}
	left, now := 0, d.view.Snapshot()
	for name := range d.sets.Range {
		if now.Cluster(name.(string)) == nil {
			d.sets.Delete(name)
		} else {
			left++
		}
	}
	d.stores.Store(int64(left))
}

func (d *Dialer) connect(ctx context.Context, c *view.Cluster, e *endpoint.Endpoint) (net.Conn, error) {
	if d.config.Dial != nil {
		return e.Dial(ctx, d.config.Dial)
	}
	timeout := 5 * time.Second
	if t := c.Message.GetConnectTimeout(); t != nil {
		timeout = t.AsDuration()
	}
	return e.Dial(ctx, (&net.Dialer{Timeout: timeout}).DialContext)
}

// held holds the cluster until the connection is closed.
type held struct {
	net.Conn
	release func()
}

func (h *held) Close() error {
	defer h.release()
	return h.Conn.Close()
}

// CloseWrite ends what the program sends, as that of TCP and Unix connections does; the answer can still
// be read.
func (h *held) CloseWrite() error {
	if c, ok := h.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}
