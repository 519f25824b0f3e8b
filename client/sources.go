package client

import (
	"fmt"
	"time"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/apiv2"
	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/sources"
	"github.com/xdswatch/xdswatch/resource"
)

// FromSource gives a watch a source of its own, which goes before the bootstrap's: the one that
// comes with the name, such as the eds_config of a Cluster (xRFC TP1). It serves old-style names
// and the authorities that it lists; see [bootstrap.Config.ConfigSource]. Servers that the
// bootstrap has too share their connections; if the whole list is the same, the watch is like
// any other. The client keeps sources until it is closed.
func FromSource(s bootstrap.Source) WatchOption {
	return func(o *watchOptions) { o.source = &s }
}

// DeltaOnly makes a watch an error whose names some server is asked for in state of the world. It
// is for types that the protocol has in delta alone, such as virtual hosts on demand
// (VHDS); without it an aggregated stream asks for any type in either variant.
func DeltaOnly() WatchOption { return func(o *watchOptions) { o.deltaOnly = true } }

// Received marks names that the program has from a server, such as those of the clusters in a
// RouteConfiguration, or from a template of the bootstrap: they may have context parameters that begin with
// "xds.", as members of a collection have those of the collection, and values that begin with '@'. A program's own
// names may not, since the client adds the former itself and the latter are reserved (xRFC TP1).
func Received() WatchOption { return func(o *watchOptions) { o.received = true } }

// InScope keeps a watch apart from those of other scopes: it has streams and values of its own,
// over shared connections, so that a fallback in one part of a program does not affect another
// (gRFC A71). Without it a watch is in the scope "". The client keeps a scope until it is
// closed.
func InScope(name string) WatchOption {
	return func(o *watchOptions) { o.scope = name }
}

// InitialFetchTimeout is how long a watch waits for its first answer until its handler gets one
// event of kind [EventFailed] whose error is a [*FetchTimeoutError]: the program may start
// without the resource, and [Client.Ready] does. The watch goes on and takes a later answer. An
// answer is a value, an absence or a rejection; that a server cannot be reached is none. The
// time begins with the watch, also while there is no stream, and does not run while handlers
// hold up the stream's reading; it begins anew in each place that the name leads to before its
// first answer. 0 is no bound. With a negative time, as [bootstrap.WaitForever],
// the server may also be silent for longer than Config.ResourceTimeout, and the watch gets no
// absence for that, unless another watch of the same name would.
//
// Without it the source of the name decides (initial_fetch_timeout of
// envoy.config.core.v3.ConfigSource). Names without such a source have no bound but
// Config.ResourceTimeout, which is another thing: how long a server may be silent after the
// client subscribed to the resource.
func InitialFetchTimeout(d time.Duration) WatchOption {
	return func(o *watchOptions) { o.fetch = &d }
}

// AtStartup marks a watch as one that the bootstrap asks for, with the type and the collection
// of the subscription; see [bootstrap.Config.Startup].
func AtStartup(s bootstrap.Subscription) WatchOption {
	return func(o *watchOptions) {
		o.source, o.fetch = s.Source, &s.InitialFetchTimeout
	}
}

// server is one that the machine knows.
func (c *Client) server(i int) bootstrap.ManagementServer { return c.sources.Server(i) }

// first is the server that a watch's source prefers.
func (c *Client) first(w *machine.Watch) int { return c.sources.Source(int(w.Source)).Servers[0] }

// newSources makes the sources of the bootstrap, and has the engine know them.
func (c *Client) newSources(ec *engine.Config) (err error) {
	c.sources, ec.Servers, ec.Sources, err = sources.New(sources.Config{
		Override: c.config.override, Make: c.engineServer, Extend: c.extend, Params: c.paramsOf, Stored: c.config.Store != nil,
	}, c.table)
	return err
}

// extend has the engine know more of them.
func (c *Client) extend(servers []engine.Server, all []machine.Source) error {
	if !c.engine.Extend(servers, all) {
		return ErrClosed
	}
	return nil
}

// paramsOf are the dynamic parameters of a key's names.
func (c *Client) paramsOf(k authority.Key) map[string]string {
	if k.Old {
		return c.boot.DynamicParameters.Old
	}
	return c.boot.DynamicParameters.Authorities[k.Authority]
}

// view is how the names of a watch are looked up. It is immutable.
type view struct {
	table *authority.Table
	watchOptions
}

// fetchTimeout is that of a watch whose name was resolved: 0 for no bound, negative if silence is no absence.
func (v *view) fetchTimeout(r authority.Resolved) time.Duration {
	if v.fetch != nil {
		return *v.fetch
	}
	return r.InitialFetchTimeout
}

// viewOf is how the names of a watch are looked up.
func (c *Client) viewOf(opts []WatchOption) (v *view, err error) {
	if len(opts) == 0 {
		return c.view, nil
	}
	v = &view{table: c.table}
	for _, opt := range opts {
		if opt != nil {
			opt(&v.watchOptions)
		}
	}
	if v.source != nil {
		// AUTH-1: the watch's own source answers for its authorities.
		if v.table, err = c.table.WithPeer(*v.source); err != nil {
			return nil, fmt.Errorf("xds: %w", err)
		}
	}
	return v, nil
}

// place gives a watch its type and its source, which is its lane too. What cannot be
// watched has no source made for it.
func (c *Client) place(kind resource.AnyType, r authority.Resolved, v *view, w *machine.Watch) error {
	for _, server := range r.Servers {
		server = c.config.override(server)
		err := carries(server, kind)
		if v.deltaOnly && !server.Delta {
			err = fmt.Errorf("it is to be asked for in delta, and server %q is asked in state of the world", server.Name())
		}
		if err != nil {
			return err
		}
	}
	t, err := c.kinds.typeOf(kind)
	if err != nil {
		return err
	}
	source, err := c.sources.Find(v.table, sources.Place{Key: r.Key(), Scope: v.scope}, r)
	if err != nil {
		return err
	}
	w.Type, w.Source, w.Lane, w.Name = t, int32(source), int32(source), r.Name
	if r.Spelling != "" {
		spelling := r.Spelling // r stays off the heap
		w.Spelling = &spelling
	}
	timeout := v.fetchTimeout(r)
	w.FetchTimeout, w.Patient = max(timeout, 0), timeout < 0
	return nil
}

// carries says why a server's streams cannot carry a type; nil if they can.
func carries(s bootstrap.ManagementServer, kind resource.AnyType) error {
	url := kind.TypeURL()
	if v3 := apiv2.ToV3(url); s.TransportV2 && v3 != url {
		return fmt.Errorf("resources of server %q are those of version 3; want type %s", s.Name(), v3)
	}
	if s.PerType && s.REST() == nil && methodOf(s, kind) == "" {
		return fmt.Errorf("the type has no stream of its own, as server %q asks for", s.Name())
	}
	return nil
}

// methodOf is the gRPC method of a type's own stream; "" if it has none.
func methodOf(s bootstrap.ManagementServer, kind resource.AnyType) string {
	method, delta := kind.Methods()
	if s.Delta {
		method = delta
	}
	if s.TransportV2 {
		return apiv2.Method(method)
	}
	return method
}
