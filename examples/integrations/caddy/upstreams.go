// Package caddy lets Caddy's reverse proxy have its upstreams from a cluster of a management
// server.
package caddy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/endpoint"
)

func init() { caddy.RegisterModule(new(Upstreams)) }

// Upstreams are the endpoints of a cluster that a request may go to: those that are healthy, of the
// priority that has to serve. The first is chosen by the weights of localities and endpoints, so
// with lb_policy first the server decides how requests are shared.
type Upstreams struct {
	// Cluster is the name; it may be that of an aggregate.
	Cluster string `json:"cluster"`
	// Bootstrap is the path of a bootstrap file, of gRPC's form or Envoy's. All upstreams with
	// the same path share a client, also while the configuration is loaded anew.
	Bootstrap string `json:"bootstrap"`
	// Timeout is how long the first requests wait for endpoints. Default: 5s
	Timeout caddy.Duration `json:"timeout,omitempty"`

	view *view.View
	sets atomic.Pointer[[]*endpoint.Set] // of the cluster, or of the leaves of an aggregate in order
}

// clients are by the path of their bootstrap.
var clients = caddy.NewUsagePool()

type shared struct{ *client.Client }

func (s shared) Destruct() error { return s.Close() }

func (*Upstreams) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.reverse_proxy.upstreams.xds", New: func() caddy.Module { return new(Upstreams) }}
}

// Provision subscribes. It does not wait for the server.
func (u *Upstreams) Provision(caddy.Context) error {
	if u.Timeout == 0 {
		u.Timeout = caddy.Duration(5 * time.Second)
	}
	c, _, err := clients.LoadOrNew(u.Bootstrap, func() (caddy.Destructor, error) {
		boot, err := bootstrap.Load(u.Bootstrap)
		if err != nil {
			return nil, err
		}
		c, err := client.New(client.Config{Bootstrap: boot})
		return shared{c}, err
	})
	if err != nil {
		return err
	}
	u.view, err = view.New(context.Background(), c.(shared).Client, view.Root{Type: view.RootCluster, Name: u.Cluster}, view.Config{
		OnSnapshot: u.use,
	})
	return err
}

// use reads the endpoints of a snapshot, once for all requests.
func (u *Upstreams) use(s *view.Snapshot) {
	var sets []*endpoint.Set
	add := func(c *view.Cluster) {
		if c != nil && c.Endpoints != nil {
			sets = append(sets, endpoint.New(c.Endpoints.Assignment(), endpoint.Config{}))
		}
	}
	if cluster := s.Cluster(u.Cluster); cluster != nil {
		add(cluster)
		for _, leaf := range cluster.Leaves() {
			add(s.Cluster(leaf))
		}
	}
	u.sets.Store(&sets)
}

// Cleanup unsubscribes.
func (u *Upstreams) Cleanup() error {
	if u.view != nil {
		u.view.Stop()
	}
	_, err := clients.Delete(u.Bootstrap)
	return err
}

// GetUpstreams takes no lock. It blocks only while there is no endpoint and the server has not
// said yet that there is none.
func (u *Upstreams) GetUpstreams(r *http.Request) ([]*reverseproxy.Upstream, error) {
	if upstreams := u.pick(); upstreams != nil {
		return upstreams, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(u.Timeout))
	defer cancel()
	if err := u.view.Ready(ctx); err != nil {
		return nil, err
	}
	if upstreams := u.pick(); upstreams != nil {
		return upstreams, nil
	}
	return nil, fmt.Errorf("no endpoint of cluster %q can be used", u.Cluster)
}

func (u *Upstreams) pick() (upstreams []*reverseproxy.Upstream) {
	sets := u.sets.Load()
	if sets == nil {
		return nil
	}
	for _, set := range *sets {
		first := set.Pick(rand.Uint64())
		if first == nil {
			continue
		}
		upstreams = append(upstreams, &reverseproxy.Upstream{Dial: first.Address.Addr})
		for _, e := range set.Endpoints() {
			if e != first && e.Priority == first.Priority {
				upstreams = append(upstreams, &reverseproxy.Upstream{Dial: e.Address.Addr})
			}
		}
		return upstreams
	}
	return nil
}

// UnmarshalCaddyfile reads
//
//	dynamic xds <cluster> {
//	    bootstrap <path>
//	    timeout <duration>
//	}
func (u *Upstreams) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&u.Cluster) {
		return d.ArgErr()
	}
	for d.NextBlock(0) {
		var value string
		option := d.Val()
		if !d.AllArgs(&value) {
			return d.ArgErr()
		}
		switch option {
		case "bootstrap":
			u.Bootstrap = value
		case "timeout":
			timeout, err := caddy.ParseDuration(value)
			if err != nil {
				return d.Err(err.Error())
			}
			u.Timeout = caddy.Duration(timeout)
		default:
			return d.Errf("xds has no option %q", option)
		}
	}
	if u.Bootstrap == "" {
		return d.Err("xds needs a bootstrap")
	}
	return nil
}

var (
	_ caddy.Provisioner           = (*Upstreams)(nil)
	_ caddy.CleanerUpper          = (*Upstreams)(nil)
	_ reverseproxy.UpstreamSource = (*Upstreams)(nil)
	_ caddyfile.Unmarshaler       = (*Upstreams)(nil)
)
