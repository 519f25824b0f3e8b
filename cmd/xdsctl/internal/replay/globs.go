package replay

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/recording"
	"github.com/xdswatch/xdswatch/xdstp"
)

// globs is a cache that knows globs (xRFC TP1) and the name "*", above one that does not: a subscription to a
// glob is one to its members, whichever there are. It is safe for concurrent use.
type globs struct {
	cache.SnapshotCache
	state atomic.Pointer[recording.State] // nil until there is one

	mu sync.Mutex // before that of the cache below
	// watches are the requests with globs in state of the world, and the names that they are of; the
	// cache below reads their members from the requests when a state is set.
	watches map[*cache.Request][]string
}

func newGlobs(below cache.SnapshotCache) *globs {
	return &globs{SnapshotCache: below, watches: map[*cache.Request][]string{}}
}

// set serves a state.
func (g *globs) set(ctx context.Context, node string, state recording.State) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state.Store(&state)
	for req, names := range g.watches {
		req.ResourceNames = g.withMembers(req.GetTypeUrl(), names)
	}
	return g.SetSnapshot(ctx, node, snapshot{state})
}

// CreateWatch implements [cache.ConfigWatcher].
func (g *globs) CreateWatch(req *cache.Request, sub cache.Subscription, value chan cache.Response) (func(), error) {
	names := req.GetResourceNames()
	switch {
	case sub.IsWildcard() && len(names) > 0:
		// To the cache below, "*" is the name of a resource; a request without names is one for all.
		req = proto.CloneOf(req)
		req.ResourceNames = nil
		return g.SnapshotCache.CreateWatch(req, sub, value)
	case len(globsIn(names)) == 0:
		return g.SnapshotCache.CreateWatch(req, sub, value)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	req = proto.CloneOf(req)
	req.ResourceNames = g.withMembers(req.GetTypeUrl(), names)
	cancel, err := g.SnapshotCache.CreateWatch(req, sub, value)
	if err != nil {
		return nil, err
	}
	g.watches[req] = names
	return func() {
		g.mu.Lock()
		delete(g.watches, req)
		g.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	}, nil
}

// CreateDeltaWatch implements [cache.ConfigWatcher].
func (g *globs) CreateDeltaWatch(req *cache.DeltaRequest, sub cache.Subscription, value chan cache.DeltaResponse) (func(), error) {
	asked := globsIn(slices.Collect(maps.Keys(sub.SubscribedResources())))
	if len(asked) > 0 {
		sub = &expanded{sub, g, req.GetTypeUrl(), asked, globsIn(req.GetResourceNamesSubscribe())}
	}
	return g.SnapshotCache.CreateDeltaWatch(req, sub, value)
}

// expanded is a delta subscription to globs, by their members of the moment.
type expanded struct {
	cache.Subscription
	cache        *globs
	typeURL      string
	asked, fresh []string // globs; fresh are those that the request subscribes to
}

// SubscribedResources implements [cache.Subscription].
func (e *expanded) SubscribedResources() map[string]struct{} {
	names := maps.Clone(e.Subscription.SubscribedResources())
	for name := range e.Subscription.ReturnedResources() { // which may be gone
		if matchesAny(e.asked, name) {
			names[name] = struct{}{}
		}
	}
	for _, name := range e.cache.members(e.typeURL, e.asked) {
		names[name] = struct{}{}
	}
	return names
}

// ReturnedResources implements [cache.Subscription]. Members of a glob that is subscribed to are sent
// whether the client has them or not, and a glob without any is removed: so it is answered in any case.
func (e *expanded) ReturnedResources() map[string]string {
	if len(e.fresh) == 0 {
		return e.Subscription.ReturnedResources()
	}
	returned := maps.Clone(e.Subscription.ReturnedResources())
	for _, name := range e.cache.members(e.typeURL, e.fresh) {
		delete(returned, name)
	}
	for _, glob := range e.fresh {
		if len(e.cache.members(e.typeURL, []string{glob})) == 0 {
			returned[glob] = ""
		}
	}
	return returned
}

// withMembers are names and what is there that their globs match.
func (g *globs) withMembers(typeURL string, names []string) []string {
	return append(slices.Clone(names), g.members(typeURL, globsIn(names))...)
}

// members are the names of a type that globs match.
func (g *globs) members(typeURL string, asked []string) (names []string) {
	if state := g.state.Load(); state != nil {
		for name := range (*state)[typeURL].Resources {
			if matchesAny(asked, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func globsIn(names []string) (asked []string) {
	for _, name := range names {
		if xdstp.IsGlob(name) {
			asked = append(asked, name)
		}
	}
	return asked
}

func matchesAny(asked []string, name string) bool {
	if !xdstp.IsXDSTP(name) {
		return false
	}
	member, err := xdstp.Parse(name)
	return err == nil && slices.ContainsFunc(asked, func(text string) bool {
		glob, err := xdstp.Parse(text)
		return err == nil && glob.Matches(member)
	})
}
