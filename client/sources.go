package client

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/apiv2"
	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/transport"
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

// place is the key of a source: who answers for a name, and the scope.
type place struct {
	authority.Key
	scope string
}

// sources are the servers and sources that the machine knows. They only grow.
type sources struct {
	servers atomic.Pointer[[]bootstrap.ManagementServer] // by machine server

	mu     sync.Mutex
	byKey  map[string]int    // servers
	placed map[place]int     // machine sources
	apart  map[[2]string]int // machine scopes: of a scope and a peer
	scopes []string          // what states call them, by machine scope
	all    []located         // by machine source
}

// located is a machine source.
type located struct {
	place
	servers []int
}

// server is one that the machine knows.
func (c *Client) server(i int) bootstrap.ManagementServer { return (*c.sources.servers.Load())[i] }

// start makes the sources of the bootstrap.
func (s *sources) start(c *Client, ec *engine.Config) error {
	s.servers.Store(&[]bootstrap.ManagementServer{})
	s.byKey, s.placed, s.apart = map[string]int{}, map[place]int{}, map[[2]string]int{{}: 0}
	s.scopes = []string{""}
	var faults []error
	for _, from := range c.table.Sources() {
		servers, source, err := s.add(c, c.table, place{Key: from.Key}, from.Servers, from.FallbackOnReachabilityOnly)
		faults = append(faults, err)
		ec.Servers, ec.Sources = append(ec.Servers, servers...), append(ec.Sources, source)
	}
	return errors.Join(faults...)
}

// add makes a source of a list of servers, and those of them that are new. Equal servers
// are one (gRFC A47). A server that cannot be configured leaves nothing behind; one whose URI
// cannot be dialled is as one that is down, if the source has another.
func (s *sources) add(c *Client, table *authority.Table, at place, list []bootstrap.ManagementServer, reachabilityOnly bool) ([]engine.Server, machine.Source, error) {
	var added []engine.Server
	var faults, unusable []error
	known, byKey := *s.servers.Load(), map[string]int{} // who reads it keeps its length, so what is appended later is not seen
	source := machine.Source{Stored: c.config.Store != nil, ReachabilityOnly: reachabilityOnly, Params: wire.NewParams(c.paramsOf(at.Key))}
	for _, server := range list {
		server = c.config.override(server)
		source.Stored = source.Stored && server.File() == nil // the file is there, with its own permissions
		key := server.Key()
		i, old := s.byKey[key]
		if !old {
			var twice bool
			// CFG-3, STREAM-2: equal servers are one.
			if i, twice = byKey[key]; !twice {
				i, byKey[key] = len(known), len(known)
				es := c.engineServer(server)
				known, added = append(known, server), append(added, es)
				if err := configured(es); errors.Is(err, transport.ErrTarget) {
					// C-4: it is as a server that is down.
					unusable = append(unusable, err)
				} else {
					faults = append(faults, err)
				}
			}
		}
		if !slices.Contains(source.Servers, i) {
			source.Servers = append(source.Servers, i)
		}
	}
	if len(unusable) == len(source.Servers) { // else it is a server that has failed, like others
		faults = append(faults, unusable...)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, machine.Source{}, err
	}
	maps.Copy(s.byKey, byKey)
	s.servers.Store(&known)
	s.placed[at] = len(s.all)
	s.all = append(s.all, located{at, source.Servers})
	source.Scope, source.Answers = s.scope(at, list), c.answers(table)
	return added, source, nil
}

// answers says which of the machine's servers answer for an authority in a table. It is called by
// the loop alone.
func (c *Client) answers(table *authority.Table) func(server int, authority string) bool {
	type question struct {
		list   *bootstrap.ManagementServer // the first of a list, which equal ones share
		server int
	}
	known := map[question]bool{}
	return func(server int, authority string) bool {
		list := table.Servers(authority)
		if len(list) == 0 {
			return false
		}
		q := question{&list[0], server}
		is, ok := known[q]
		if !ok {
			key := c.server(server).Key()
			// H-11: who may say names of the authority.
			is = slices.ContainsFunc(list, func(s bootstrap.ManagementServer) bool { return c.config.override(s).Key() == key })
			known[q] = is
		}
		return is
	}
}

// paramsOf are the dynamic parameters of a key's names.
func (c *Client) paramsOf(k authority.Key) map[string]string {
	if k.Old {
		return c.boot.DynamicParameters.Old
	}
	return c.boot.DynamicParameters.Authorities[k.Authority]
}

// configured says what is wrong with the configuration of a server.
func configured(s engine.Server) error {
	conn, err := s.Connect()
	if err != nil {
		return err
	}
	return conn.Close() // it was never dialled
}

// scope returns the machine's number for a scope and the peer that brought sources along.
func (s *sources) scope(at place, list []bootstrap.ManagementServer) int {
	// FALLBACK-2: what shares no streams falls back by itself.
	key := [2]string{at.scope, at.Peer}
	i, ok := s.apart[key]
	if !ok {
		i = len(s.apart)
		s.apart[key] = i
		name := at.scope
		if at.Peer != "" {
			name += "@" + list[0].Name()
		}
		s.scopes = append(s.scopes, name)
	}
	return i
}

// scopeNames are the names of scopes, by machine scope.
func (s *sources) scopeNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scopes // who reads it keeps its length, so what is appended later is not seen
}

// find gives the machine's source of a place, which it makes if there is none.
func (s *sources) find(c *Client, table *authority.Table, at place, r authority.Resolved) (source int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if source, ok := s.placed[at]; ok {
		return source, nil
	}
	added, made, err := s.add(c, table, at, r.Servers, r.FallbackOnReachabilityOnly)
	if err != nil {
		return 0, err
	}
	if !c.engine.Extend(added, []machine.Source{made}) {
		return 0, ErrClosed
	}
	return s.placed[at], nil
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

// source is one that the machine knows.
func (s *sources) source(i int) located {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[i]
}

// first is the server that a watch's source prefers.
func (s *sources) first(w *machine.Watch) int { return s.source(int(w.Source)).servers[0] }

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
	t, err := c.typeOf(kind)
	if err != nil {
		return err
	}
	source, err := c.sources.find(c, v.table, place{r.Key(), v.scope}, r)
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
