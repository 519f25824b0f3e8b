package machine

import (
	"iter"
	"slices"
	"strings"
)

// cache is what is wanted and known of one type in one scope: the subscriptions of all sources. What a
// server was told of them is in the [link] of its stream.
type cache struct {
	typ  *Type
	subs table

	star  *collection             // of old-style names
	globs map[pattern]*collection // that are watched, or leaving
	plain map[*source]*collection // of a source's globs, and of structured names that none of them covers

	owners map[string]*source // of structured names, by authority, if some were watched

	aliases aliases

	recalls   map[*source]*recall
	stale     []*subscription // members that were loaded from the store; some maybe confirmed since
	unsettled []*collection   // whose first state is complete; the store has yet to forget what they do not have
}

type cacheKey struct {
	scope int
	url   string
}

// cacheOf finds or makes what is known of a type in a scope.
func (m *Machine) cacheOf(t *Type, scope int) *cache {
	// CACHE-1: by scope, type and name.
	key := cacheKey{scope, t.URL}
	c := m.caches[key]
	if c == nil {
		c = newCache(t)
		m.caches[key] = c
	}
	return c
}

func newCache(t *Type) *cache {
	c := &cache{owners: map[string]*source{}}
	c.star = c.newCollection(nil, star)
	c.clear(t)
	return c
}

// clear empties the cache. The wildcard, the owners of authorities and the store's unfinished collections stay.
func (c *cache) clear(t *Type) {
	before := *c
	for _, r := range c.recalls {
		clear(r.loads) // what the store says to them means nothing
		r.timer = 0
	}
	*c = cache{
		typ: t, recalls: map[*source]*recall{},
		globs: map[pattern]*collection{}, plain: map[*source]*collection{},
		star: before.star, owners: before.owners, unsettled: before.unsettled,
	}
}

// of yields the subscriptions of a source, in no order. It finds them through the source's collections; if the wildcard
// is one of these, which does not list all of its members, it looks at all of the type.
func (c *cache) of(src *source) iter.Seq[*subscription] {
	if src == c.star.source {
		return func(yield func(*subscription) bool) {
			if !yield(c.star.self) {
				return
			}
			for sub := range c.subs.all() {
				if sub.of.source == src && !yield(sub) {
					return
				}
			}
		}
	}
	return func(yield func(*subscription) bool) {
		plain := c.plain[src]
		if plain == nil {
			return
		}
		for sub := range plain.members.all() {
			if !yield(sub) {
				return
			}
		}
		for glob := range plain.globs.all() {
			for sub := range glob.of.members.all() {
				if !yield(sub) {
					return
				}
			}
			if !yield(glob) {
				return
			}
		}
	}
}

// inOrder lists the subscriptions of a source by name.
func (c *cache) inOrder(src *source) []*subscription {
	subs := slices.Collect(c.of(src))
	sortSubs(subs)
	return subs
}

func sortSubs(subs []*subscription) {
	slices.SortFunc(subs, func(a, b *subscription) int { return strings.Compare(a.name, b.name) })
}

// subscriptionOf finds or makes the subscription of a name.
func (c *cache) subscriptionOf(of *collection, name string) *subscription {
	sub := c.subs.get(name)
	switch {
	// WILD-8: what the wildcard holds is not made anew.
	case sub == nil:
		sub = of.newMember(name)
	case sub.of != of && !sub.wanted(): // a structured name that the wildcard had
		of.adopt(sub)
	}
	return sub
}

// drop forgets a subscription, and what the last response of its link held, which may refer to it.
func (c *cache) drop(sub *subscription) {
	sub.gone, sub.timer = true, 0
	c.subs.drop(sub.name)
	sub.hold(nil, given{})
	sub.of.rosterOf(sub).drop(sub)
	if l := sub.link(); l != nil {
		l.last = nil
	}
	c.aliases.remove(sub)
	sub.strip()
}

// shrink gives the room of an empty cache back.
func (c *cache) shrink() {
	if c.subs.len() == 0 && !c.star.wanted() {
		c.clear(c.typ)
	}
}

// recall is what is looked for in the store, of a type's resources at a source.
type recall struct {
	cache  *cache
	source *source
	timer
	loads map[*subscription]*Load // the load that asks for each subscription that the store has not answered for
	gone  map[string]bool         // what a server said is gone while the store is read; nil for nothing
}

func (c *cache) recallOf(src *source) *recall {
	r := c.recalls[src]
	if r == nil {
		r = &recall{cache: c, source: src, loads: map[*subscription]*Load{}}
		c.recalls[src] = r
	}
	return r
}
