package machine

import (
	"iter"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/xdstp"
)

// star is the name of the wildcard, by which requests of the explicit form subscribe to it.
const star = "*"

// collection is the resources of a glob; or all old-style names, for which the wildcard `*` stands; or, without
// a name, the structured names of a source that no watched glob covers, which nobody watches as a whole. It is a
// subscription with members: of its own name, `*` or the URL of a glob, which is requested as if it were a resource.
type collection struct {
	subscription

	cache  *cache
	source *source // who answers for it; nil until known

	explicit bool   // of the wildcard: its first watch wanted it by the name `*`
	complete bool   // its first state is complete
	listed   bool   // the first request on this incarnation of the stream listed something of it
	touched  serial // of the last response that spoke of it or of a member

	// members are the resources in it, and aliases, which are no members (byAlias). Of the wildcard they are those with
	// structured names alone, since its list would be as long as the cache's.
	members roster
}

func (c *collection) isGlob() bool { return c.name != "" && c != c.cache.star }

// ownedBy says whether a stream is that of the active server of the collection's source.
func (c *collection) ownedBy(s *stream) bool { return c.source != nil && c.source.stream() == s }

// pattern tells the members of a glob by their canonical names: one more segment where the
// glob has its `*`.
type pattern struct {
	before, after string
}

// patternOf is what a glob over a canonical name has before and after its `*`, if there is one; nothing for a name that ends
// with a slash.
func patternOf(name string) pattern {
	end := strings.IndexByte(name, '?')
	if end < 0 {
		end = len(name)
	}
	start := strings.LastIndexByte(name[:end], '/') + 1
	if start == end {
		return pattern{}
	}
	// GLOB-1, CTX-4: one segment more, with the same context.
	return pattern{name[:start], name[end:]}
}

// globOf finds the watched glob that covers a canonical name; nil if there is none.
func (c *cache) globOf(name string) *collection { return c.globs[patternOf(name)] }

// collectionOf finds or makes the collection that a watch is of, or that its name is in. It notes the source that answers
// for the wildcard, or for the authority of the name.
func (c *cache) collectionOf(src *source, w *Watch) *collection {
	if !structured(w.Name) {
		c.star.source = src
		return c.star
	}
	c.noteSource(src, w.Name)
	if w.Wildcard {
		return c.globFor(src, w.Name)
	}
	if glob := c.globOf(w.Name); glob != nil {
		return glob
	}
	return src.share(c).plain
}

// noteSource notes the source that answers for the authority of a name.
func (c *cache) noteSource(src *source, name string) {
	if src.Rest != nil { // servers choose how many authorities it has
		c.rest = src
		return
	}
	if authority, _ := xdstp.AuthorityOf(name); c.byAuthority[authority] == nil {
		c.byAuthority[authority] = src
	}
}

// sourceOfAuthority is the source that answers for an authority; nil if none of its names was watched.
func (c *cache) sourceOfAuthority(authority string) *source {
	if src := c.byAuthority[authority]; src != nil || c.rest == nil || !c.rest.Rest(authority) {
		return src
	}
	return c.rest
}

func (c *cache) newCollection(src *source, name string) *collection {
	coll := &collection{cache: c, source: src}
	coll.subscription = subscription{name: name, of: coll, status: StatusRequested}
	return coll
}

// globFor finds or makes a glob. Resources that were watched by name are in it from now on.
func (c *cache) globFor(src *source, url string) *collection {
	p := patternOf(url)
	if glob := c.globs[p]; glob != nil {
		return glob
	}
	glob := c.newCollection(src, url)
	c.adoptCovered(glob, p)
	c.subs.put(&glob.subscription)
	c.globs[p] = glob
	glob.rosterOf(&glob.subscription).put(&glob.subscription)
	return glob
}

// newMember makes a subscription for a name.
func (c *collection) newMember(name string) *subscription {
	sub := &subscription{name: name, status: StatusRequested}
	c.cache.subs.put(sub)
	c.adopt(sub)
	return sub
}

// adopt makes a subscription a member.
func (c *collection) adopt(sub *subscription) {
	if before := sub.of; before != nil {
		before.source.heldBytes -= sub.counted()
		c.source.heldBytes += sub.counted()
		if !before.ownedBy(c.source.stream()) {
			sub.forgetStream()
		}
		before.rosterOf(sub).drop(sub)
	}
	sub.of = c
	c.rosterOf(sub).put(sub)
}

// rosterOf is the roster that lists a subscription of the collection; nil for none.
func (c *collection) rosterOf(sub *subscription) *roster {
	switch {
	case sub.isCollection():
		return &c.source.share(c.cache).globs
	case !structured(sub.name): // of the wildcard
		return nil
	}
	return &c.members
}

// all yields the resources of a glob, or for the wildcard all that its server has of the type; those that are known by an
// alias alone too.
func (c *collection) all() iter.Seq[*subscription] {
	if c.isGlob() {
		return c.members.all()
	}
	return func(yield func(*subscription) bool) {
		for sub := range c.cache.subs.all() {
			if !sub.isCollection() && c.cache.starCovers(sub) && !yield(sub) {
				return
			}
		}
	}
}

// inOrder lists the members of a glob or the wildcard by name.
func (c *collection) inOrder() []*subscription {
	return slices.DeleteFunc(slices.SortedFunc(c.all(), byName), (*subscription).byAlias)
}

// dropIfUnwanted drops a subscription that nobody wants. A member stays while its collection lives, or while the wildcard
// lives and covers it, since the server would not send it again. With a collection its members are dropped.
func (c *cache) dropIfUnwanted(sub *subscription) {
	switch {
	case sub.gone, sub.wanted():
	// WILD-7: a member stays, also while the server has to confirm it.
	case sub.of.lives() && sub.staysAsMember():
	case c.giveToStar(sub): // the watches of the wildcard were told of it
	case sub.isCollection():
		sub.of.end()
	default:
		c.drop(sub)
	}
}

// staysAsMember says that a resource stays in its collection though nobody watches its name: it exists, or the response being
// worked on speaks of it; and its name is no alias.
func (sub *subscription) staysAsMember() bool {
	l := sub.link()
	return !sub.isCollection() && !sub.byAlias() && (sub.exists() || l != nil && l.busy != nil && sub.seen == l.busy.serial)
}

// dropUnwanted drops all subscriptions that are not wanted, after forgetStream was called for them.
func (sh *share) dropUnwanted() {
	for sub := range sh.all() {
		sh.cache.dropIfUnwanted(sub)
	}
	sh.cache.shrink()
}

// end forgets a collection that nobody wants any more, and what is held for it alone.
func (c *collection) end() {
	cache, share := c.cache, c.source.share(c.cache)
	delete(share.loads, &c.subscription) // the store's answer is not waited for any more
	if l := c.link(); l != nil && l.busy != nil {
		l.busy.completes = removeFrom(l.busy.completes, c)
	}
	if c.isGlob() {
		cache.drop(&c.subscription)
		delete(cache.globs, patternOf(c.name))
	} else { // the wildcard stays
		c.forgetStream()
		c.complete, c.from = false, 0
		c.become(StatusRequested, nil)
	}
	for sub := range c.all() {
		switch {
		case !sub.lives():
			cache.dropIfUnwanted(sub)
		case c.isGlob():
			share.plain.adopt(sub)
		}
	}
}

// giveToStar moves a resource that is a member of nothing else any more to the wildcard, and says whether it did. In delta
// the server then has to confirm the resource, if requests named it or its glob, or if another server gave it: for most
// servers a structured name is no member of the wildcard.
func (c *cache) giveToStar(sub *subscription) bool {
	if !c.star.lives() || !c.starCovers(sub) || !sub.staysAsMember() {
		return false
	}
	// If the stream is over, or another server has just become active, the client does not know any more what was requested.
	before := sub.link()
	asked := sub.subscribed || sub.of.subscribed || before == nil || !before.requested
	c.star.adopt(sub)
	if l := sub.link(); l.stream.Delta && !sub.loaded() && (asked || sub.foreign()) {
		// WILD-7: the server has to say whether it is a member of the wildcard.
		l.unconfirm(sub)
	}
	return true
}

// needsNoMore says that a server's silence completes a collection, since the server has nothing to add to what is held. A
// server that remembers what it sent does not answer the request for a wildcard if it has sent all members by name already,
// nor in delta if the first request listed all of them.
func (c *collection) needsNoMore() bool {
	l := c.link()
	switch f := c.fault(); {
	case f != nil && f.Kind == FaultData:
		return false // the server has stated an error for it
	case c.listed:
		return true // also if the time to live of what was listed has run out since
	// WILD-5: if the server has said nothing of the type on this stream, nothing follows from its silence.
	case l.firstResponse == 0:
		return false
	}
	for sub := range c.all() {
		if sub.of.source == c.source && sub.listable() && !sub.unconfirmed && !sub.byAlias() {
			return true
		}
	}
	return false
}

// starCovers says whether the wildcard covers a subscription: any of its servers may send the name, even if another
// source's word counts. That never changes, whichever server is active.
func (c *cache) starCovers(sub *subscription) bool {
	src := c.star.source
	return sub.of == c.star || slices.ContainsFunc(src.Servers, func(i int) bool { return src.answersFor(i, sub.authority()) })
}

// audience is the watches that are told of a resource as a member of what they watch. A name that is an alias has none.
func (sub *subscription) audience() []*Watch {
	if sub.isCollection() || sub.byAlias() {
		return nil // ALIAS-2, C-1
	}
	return sub.covering()
}

// covering are the watches of its collection, and those of the wildcard.
func (sub *subscription) covering() (all []*Watch) {
	if sub.of.wanted() {
		all = sub.of.watches()
	}
	// GLOB-5: all watches that cover a resource are told of it.
	if star := sub.of.cache.star; sub.of != star && star.wanted() && star.cache.starCovers(sub) {
		all = slices.Concat(all, star.watches())
	}
	return all
}

// adoptCovered makes the resources that a new glob covers its members, also those that only the wildcard has: the server has
// sent them already, so the glob's first state may leave them out (DELTA-8).
func (c *cache) adoptCovered(glob *collection, covers pattern) {
	for _, from := range []*collection{glob.source.share(c).plain, c.star} {
		for sub := range from.members.all() {
			if !strings.HasPrefix(sub.name, covers.before) || patternOf(sub.name) != covers { // the former is fast
				continue
			}
			before := sub.stream()
			glob.adopt(sub)
			if l := sub.link(); l != nil && l.stream != before {
				l.takeOver(sub)
			}
		}
	}
}
