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

	byAuthority map[string]*source // of structured names, if some were watched
	rest        *source            // of the names of all authorities that have no source of their own; nil until one is watched

	aliases aliases

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
	c := &cache{typ: t, globs: map[pattern]*collection{}, byAuthority: map[string]*source{}}
	c.star = c.newCollection(nil, star)
	return c
}

// share is what a source has of a type.
type share struct {
	cache  *cache
	source *source

	plain *collection // the structured names that no watched glob covers
	globs roster

	// Of what is looked for in the store.
	timer                         // until the store is asked
	loads map[*subscription]*Load // the load that asks for each subscription that the store has not answered for
	gone  map[string]bool         // what a server said is gone while the store is read
}

// share finds what a source has of a type; nil if nothing of it was watched.
func (src *source) share(c *cache) *share {
	for _, sh := range src.shares {
		if sh.cache == c {
			return sh
		}
	}
	return nil
}

// shareOf finds or makes what a source has of a type.
func (src *source) shareOf(c *cache) *share {
	sh := src.share(c)
	if sh == nil {
		sh = &share{cache: c, source: src, plain: c.newCollection(src, ""), loads: map[*subscription]*Load{}, gone: map[string]bool{}}
		src.shares = append(src.shares, sh)
	}
	return sh
}

// all yields the subscriptions. It finds them through the collections; if the wildcard is one of these, which does not
// list all of its members, it looks at all of the type. Nil has none.
func (sh *share) all() iter.Seq[*subscription] {
	return func(yield func(*subscription) bool) {
		if sh == nil {
			return
		}
		if star := sh.cache.star; star.source == sh.source {
			if !yield(&star.subscription) {
				return
			}
			for sub := range sh.cache.subs.all() {
				if sub.of.source == sh.source && !yield(sub) {
					return
				}
			}
			return
		}
		for sub := range sh.plain.members.all() {
			if !yield(sub) {
				return
			}
		}
		for glob := range sh.globs.all() {
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

func byName(a, b *subscription) int { return strings.Compare(a.name, b.name) }

func sortCollections(cs []*collection) {
	slices.SortFunc(cs, func(a, b *collection) int { return byName(&a.subscription, &b.subscription) })
}

// subscriptionOf finds or makes the subscription of a name.
func (c *cache) subscriptionOf(of *collection, name string) *subscription {
	sub := c.subs.get(name)
	switch {
	// WILD-8: what the wildcard holds is not made anew.
	case sub == nil:
		sub = of.newMember(name)
	case sub.of != of: // a structured name that the wildcard had
		of.adopt(sub)
	}
	return sub
}

// drop forgets a subscription, and what the last response of its link held, which may refer to it.
func (c *cache) drop(sub *subscription) {
	sub.gone, sub.timer = true, 0
	c.subs.drop(sub.name)
	sub.letGo()
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
		c.subs, c.globs, c.aliases, c.stale = table{}, map[pattern]*collection{}, aliases{}, nil
	}
}
