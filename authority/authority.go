// Package authority finds the management servers of a resource name.
//
// An old-style name belongs to the bootstrap's top-level servers. A structured one,
// "xdstp://authority/type/id", belongs only to its authority; the empty authority is an entry of
// the bootstrap like any other (gRFC A47). The package looks for the authority in gRPC's
// authorities, then in Envoy's config_sources, of which the first match counts, and last in
// default_config_source, if there is one (xRFC TP1). A watch may have a source of its own, which
// then comes first; see [Table.WithPeer].
//
// It finds only servers that the bootstrap or the program lists, so a control plane cannot lead
// a client to another one.
package authority

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Labels in metrics in place of an authority.
const (
	// OldLabel is that of old-style names (gRFC A78).
	OldLabel = "#old"
	// DefaultLabel is that of the names of all authorities that only the default source serves, since servers
	// may send names of any number of them.
	DefaultLabel = "#default"
)

// Table has the servers of each authority. It is immutable and safe for concurrent use.
// Authorities with equal servers share them, so that a large bootstrap makes no large table.
type Table struct {
	top   source // of old-style names; no servers if the bootstrap has none
	named map[string]source
	rest  source // of authorities that are not in named; no servers if they are unknown
	peer  *peer
}

// source is an ordered list of servers.
type source struct {
	key              string // equal for equal servers
	servers          []bootstrap.ManagementServer
	reachabilityOnly bool
	fetchTimeout     time.Duration // does not count for key
}

func (s source) known() bool { return len(s.servers) > 0 }

// peer is the source that a watch brings along.
type peer struct {
	source
	authorities []string
}

// Key identifies the source of a name for a client: names of equal keys have the same servers
// and fall back together (gRFC A71). It is comparable.
type Key struct {
	Old bool
	// Default means all authorities, of any number, that only the default source serves.
	Default   bool
	Authority string // "" with Old and Default
	Peer      string
}

// Source is the servers for all names of a key.
type Source struct {
	Key Key
	// Servers in order of priority; at least one. Shared: read only.
	Servers []bootstrap.ManagementServer
	// FallbackOnReachabilityOnly is gRFC A95's.
	FallbackOnReachabilityOnly bool
}

// New makes the table of a bootstrap. An authority without servers of its own has the top-level
// ones. The error says that there is no bootstrap, or that it has no servers for old-style
// names, nor for any authority of config_sources or default_config_source, nor a source of its
// own for anything; New does not check the servers themselves (see [bootstrap.Config.Validate]).
func New(c *bootstrap.Config) (*Table, error) {
	if c == nil {
		return nil, errors.New("authority: the bootstrap is nil")
	}
	alone := slices.ContainsFunc(c.Startup, func(s bootstrap.Subscription) bool {
		return s.Source != nil || xdstp.IsFile(s.Collection)
	})
	if len(c.Servers) == 0 && len(c.Sources) == 0 && c.DefaultSource == nil && !alone {
		return nil, errors.New("authority: the bootstrap has no top-level servers, and no other sources")
	}
	lists := map[string][]bootstrap.ManagementServer{}
	t := &Table{
		top:   newSource(lists, c.Servers, false),
		named: make(map[string]source, len(c.Authorities)),
	}
	for name, a := range c.Authorities {
		servers := a.Servers
		// BOOT-6: an authority without servers has the top-level ones.
		if len(servers) == 0 {
			servers = c.Servers
		}
		if len(servers) == 0 {
			return nil, fmt.Errorf("authority: authority %q of the bootstrap has no servers", name)
		}
		t.named[name] = newSource(lists, servers, a.FallbackOnReachabilityOnly)
	}
	if err := t.addSources(lists, c); err != nil {
		return nil, err
	}
	return t, nil
}

// addSources adds those of Envoy's bootstrap, of which the first that names an authority
// has it.
func (t *Table) addSources(lists map[string][]bootstrap.ManagementServer, c *bootstrap.Config) error {
	for i, s := range c.Sources {
		if len(s.Servers) == 0 {
			return fmt.Errorf("authority: source %d of the bootstrap has no servers", i)
		}
		from := newSource(lists, s.Servers, s.FallbackOnReachabilityOnly)
		from.fetchTimeout = s.InitialFetchTimeout
		for _, name := range s.Authorities {
			if !t.named[name].known() {
				t.named[name] = from
			}
		}
	}
	if d := c.DefaultSource; d != nil {
		if len(d.Servers) == 0 {
			return errors.New("authority: the default source of the bootstrap has no servers")
		}
		t.rest = newSource(lists, d.Servers, d.FallbackOnReachabilityOnly)
		t.rest.fetchTimeout = d.InitialFetchTimeout
		for name := range c.DynamicParameters.Authorities {
			if !t.named[name].known() {
				t.named[name] = t.rest // it is told apart
			}
		}
	}
	return nil
}

// newSource copies servers, once for all lists that are equal.
func newSource(lists map[string][]bootstrap.ManagementServer, servers []bootstrap.ManagementServer, reachabilityOnly bool) source {
	var b strings.Builder
	for _, s := range servers {
		fmt.Fprintf(&b, "%s ", s.Key())
	}
	key := b.String()
	list, ok := lists[key]
	if !ok {
		list = slices.Clone(servers)
		lists[key] = list
	}
	if reachabilityOnly {
		key += "reachability"
	}
	return source{key: key, servers: list, reachabilityOnly: reachabilityOnly}
}

// WithPeer makes the table of a watch with a source of its own, the peer of the name: the source
// serves the authorities that it lists, and old-style names (xRFC TP1). All other names are
// resolved as before. The error says that the peer has no servers. The new table shares what it
// can with the old one.
func (t *Table) WithPeer(s bootstrap.Source) (*Table, error) {
	if len(s.Servers) == 0 {
		return nil, errors.New("authority: the peer source has no servers")
	}
	out := *t
	out.peer = &peer{
		source:      newSource(map[string][]bootstrap.ManagementServer{}, s.Servers, s.FallbackOnReachabilityOnly),
		authorities: slices.Clone(s.Authorities),
	}
	out.peer.fetchTimeout = s.InitialFetchTimeout
	return &out, nil
}

// Sources are all sources of the bootstrap, each with the key that [Resolved.Key] has: that
// of old-style names, those of authorities in the order of their names, and the default
// one. Peers are not among them.
func (t *Table) Sources() []Source {
	var out []Source
	add := func(k Key, s source) {
		if s.known() {
			out = append(out, Source{k, s.servers, s.reachabilityOnly})
		}
	}
	add(Key{Old: true}, t.top)
	for _, name := range slices.Sorted(maps.Keys(t.named)) {
		add(Key{Authority: name}, t.named[name])
	}
	add(Key{Default: true}, t.rest)
	return out
}

// Servers returns the servers for the structured names of an authority, in order of priority;
// none if it is unknown. Shared: read only.
func (t *Table) Servers(authority string) []bootstrap.ManagementServer {
	return t.find(authority).servers
}

// found is who answers for a name.
type found struct {
	source
	isDefault bool
	peer      string // tells peers apart; "" if the bootstrap's source answers, or one like it
}

// old finds who answers for old-style names.
func (t *Table) old() found {
	return t.orPeer(found{source: t.top}, t.peer != nil)
}

// find is old for an authority.
func (t *Table) find(authority string) found {
	named, ok := t.named[authority]
	f := found{named, !ok, ""}
	if !ok {
		f.source = t.rest
	}
	return t.orPeer(f, t.peer != nil && slices.Contains(t.peer.authorities, authority))
}

// orPeer is f, or the peer if that answers. With the same servers it is the same source,
// but for how long the first answer is waited for.
func (t *Table) orPeer(f found, answers bool) found {
	switch {
	case !answers:
		return f
	// CFG-3: the same servers are the same source.
	case t.peer.key == f.key:
		f.fetchTimeout = t.peer.fetchTimeout
		return f
	}
	return found{source: t.peer.source, peer: t.peer.key}
}
