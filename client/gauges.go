package client

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/transport"
)

// CacheState is what the cache knows of a resource, by the values of grpc.xds.cache_state
// (gRFC A78, A88).
type CacheState string

// The states. Those that end in Cached have a value that stays good.
const (
	CacheRequested           CacheState = "requested"
	CacheDoesNotExist        CacheState = "does_not_exist"
	CacheDoesNotExistCached  CacheState = "does_not_exist_but_cached"
	CacheAcked               CacheState = "acked"
	CacheNacked              CacheState = "nacked"
	CacheNackedCached        CacheState = "nacked_but_cached"
	CacheTimeout             CacheState = "timeout"
	CacheReceivedError       CacheState = "received_error"
	CacheReceivedErrorCached CacheState = "received_error_but_cached"
)

// cacheStates are those without and with a value that stays good. For others nothing came yet.
var cacheStates = map[machine.Status][2]CacheState{
	machine.StatusDoesNotExist:  {CacheDoesNotExist, CacheDoesNotExistCached},
	machine.StatusAcked:         {CacheAcked, CacheAcked},
	machine.StatusNacked:        {CacheNacked, CacheNackedCached},
	machine.StatusReceivedError: {CacheReceivedError, CacheReceivedErrorCached},
	machine.StatusTimeout:       {CacheTimeout, CacheTimeout},
}

func cacheState(s machine.Status, held bool) CacheState {
	states := cacheStates[s]
	if held {
		return cmp.Or(states[1], CacheRequested)
	}
	return cmp.Or(states[0], CacheRequested)
}

// ResourceCount is how many resources are in one state.
type ResourceCount struct {
	Authority string // "#old" of old-style names, "#default" of those of all authorities that the bootstrap does not list
	Type      string // URL
	State     CacheState
	Count     int // more than 0
}

// LastAccepted is when a server last sent a response of a type in which nothing was invalid,
// even if nothing in it was new. A type that had none is not listed.
type LastAccepted struct {
	Server string // URI, as in [Event]
	Type   string // URL
	At     time.Time
}

// LastUpdated is when a value of a type last changed, of those that are held. A type without a value
// is not listed.
type LastUpdated struct {
	Type string // URL
	At   time.Time
}

// StaleCount is how many values of a type are from the store, and no server has spoken of them since.
type StaleCount struct {
	Type  string // URL
	Count int    // may be 0
}

// Throttle is how the rate limit of a server delays what the client sends to it.
type Throttle struct {
	Server string // URI, as in [Event]
	// Enforced is how many requests, ACKs and NACKs had to wait since the client was made; those
	// that came while one waited count with it as one.
	Enforced int
	// Waiting is how many types have something to send now and wait for a token, counted on each
	// of their streams.
	Waiting int
}

// Gauges is what can be measured at any moment, each list sorted by its fields.
type Gauges struct {
	// Servers are those with a watch; of two with one URI, the one in the worse state.
	Servers []ServerHealth
	// Resources is grpc.xds_client.resources: the resources that are watched by name, and the
	// members of wildcards. A wildcard itself is no resource.
	Resources []ResourceCount
	// Accepted has the types that are watched.
	Accepted []LastAccepted
	// Updated has the types of which values are held.
	Updated []LastUpdated
	// Stale has the types of which resources are counted; nil without a store.
	Stale []StaleCount
	// Throttled are the servers that have a rate limit and were used.
	Throttled []Throttle
	// Blocked are the handlers that have run for Config.HandlerTimeout or longer.
	Blocked []BlockedHandler
	// CredentialFiles are the files of certificates and tokens that have gone bad while a connection
	// exists, and of which an earlier state is in use. It is empty with a Config.Transport of the
	// program's own, which has a hook of that name itself (transport.GRPCConfig, transport.RESTConfig).
	CredentialFiles []transport.FileReport
	// Unsaved is what Config.Store has not saved yet; nil without a store. It is the same after Close.
	Unsaved *Unsaved
}

// Unsaved is what was accepted and is not in the store yet. In good order it is saved two seconds after
// the first of it came; what cannot be saved is tried again every five.
type Unsaved struct {
	Since time.Time // when the oldest of it came; zero if there is none
}

// Gauges measures the client now; the callback of an observable instrument may call it. It
// needs no [Config.Metrics]. Nothing is counted between calls; instead the client's loop
// looks at every resource once, a thousand at a time, and goes on with its work between: what comes or goes
// meanwhile may be counted twice, or not at all. A hundred thousand take some 10 ms.
// It waits for the loop, so neither Config.Logger nor Config.Backoff may call it. After Close it is empty.
func (c *Client) Gauges() Gauges {
	g := c.engine.Gauges(c.sources.Label)
	all := Gauges{
		Servers: c.health(g.Connected), Resources: resourceCounts(g.Counts),
		Accepted: c.accepted(g.Accepted), Updated: updatedTypes(g.Counts), Throttled: c.throttled(g.Throttled),
		Blocked: blockedHandlers(g.Blocked, c.config.HandlerTimeout), CredentialFiles: c.files.reports(),
	}
	if c.keeper != nil {
		all.Stale, all.Unsaved = staleCounts(g.Counts), &Unsaved{c.keeper.Unsaved()}
	}
	return all
}

// Health is the part of [Gauges] that takes the client's loop no time to speak of, however many
// resources there are.
type Health struct {
	Servers []ServerHealth   // as in Gauges
	Blocked []BlockedHandler // as in Gauges
}

// Health measures the client now. After Close it is empty.
func (c *Client) Health() Health {
	connected, blocked := c.engine.Health()
	return Health{c.health(connected), blockedHandlers(blocked, c.config.HandlerTimeout)}
}

func staleCounts(counts machine.Counts) []StaleCount {
	sums := map[string]int{}
	for _, n := range counts {
		stale := 0
		if n.Stale {
			stale = n.N
		}
		sums[n.TypeURL] += stale
	}
	return listed(sums, func(url string, n int) StaleCount { return StaleCount{url, n} })
}

// listed is a list of what a map has, in the order of its keys; nil if that is nothing.
func listed[V, T any](of map[string]V, entry func(string, V) T) (all []T) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		all = append(all, entry(key, of[key]))
	}
	return all
}

func (c *Client) throttled(all []machine.Throttled) []Throttle {
	byURI := map[string]Throttle{}
	for _, t := range all {
		uri := c.uri(t.Server)
		sum := byURI[uri]
		byURI[uri] = Throttle{uri, sum.Enforced + t.Enforced, sum.Waiting + t.Pending}
	}
	return listed(byURI, func(_ string, t Throttle) Throttle { return t })
}

func (c *Client) health(connected map[int]bool) []ServerHealth {
	all := map[string]bool{}
	for server, is := range connected {
		uri := c.uri(server)
		so, known := all[uri]
		all[uri] = is && (so || !known)
	}
	return listed(all, func(uri string, is bool) ServerHealth { return ServerHealth{uri, is} })
}

func resourceCounts(counts machine.Counts) []ResourceCount {
	sums := map[ResourceCount]int{}
	for _, n := range counts {
		// METRIC-2: the labels of gRFC A78.
		key := ResourceCount{Authority: n.Authority, Type: n.TypeURL, State: cacheState(n.Status, n.Held)}
		if !n.Structured {
			key.Authority = authority.OldLabel
		}
		sums[key] += n.N
	}
	var rs []ResourceCount
	for r, n := range sums {
		r.Count = n
		rs = append(rs, r)
	}
	slices.SortFunc(rs, func(a, b ResourceCount) int {
		return cmp.Or(cmp.Compare(a.Authority, b.Authority), cmp.Compare(a.Type, b.Type), cmp.Compare(a.State, b.State))
	})
	return rs
}

func updatedTypes(counts machine.Counts) []LastUpdated {
	newest := map[string]int64{}
	for _, n := range counts {
		if n.Updated > 0 {
			newest[n.TypeURL] = max(newest[n.TypeURL], n.Updated)
		}
	}
	return listed(newest, func(url string, at int64) LastUpdated { return LastUpdated{url, time.Unix(0, at)} })
}

func (c *Client) accepted(as []machine.Accepted) (all []LastAccepted) {
	for _, a := range as {
		all = append(all, LastAccepted{Server: c.uri(a.Server), Type: a.TypeURL, At: a.At})
	}
	slices.SortFunc(all, func(a, b LastAccepted) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Type, b.Type), b.At.Compare(a.At))
	})
	// The first of a server and type is the latest.
	return slices.CompactFunc(all, func(a, b LastAccepted) bool { return a.Server == b.Server && a.Type == b.Type })
}
