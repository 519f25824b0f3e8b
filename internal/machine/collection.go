package machine

import (
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/xdstp"
)

// star is the name of the wildcard, by which requests of the explicit form subscribe to it.
const star = "*"

// collection is the resources of a glob; or all old-style names, for which the wildcard `*` stands; or, without
// a name, the structured names of a source that no watched glob covers, which nobody watches as a whole.
type collection struct {
	cache  *cache
	source *source // who answers for it; nil until known

	explicit bool // of the wildcard: its first watch wanted it by the name `*`

	seen serial // of the last response that spoke of it or of a member; self.seen is of its own name alone

	// self is the subscription of the collection's own name: `*`, or the URL of a glob, which is requested as if it were a
	// resource. Without a name it is "", and nobody watches it.
	self *subscription

	// members are or were in it, a glob's own name too; some are maybe listed twice. Nil for
	// the wildcard's.
	members []*subscription
	holes   int // an upper bound of how many places of members are out of date

	pattern pattern                 // of a glob
	globs   map[pattern]*collection // of the source, in the one without a name
}

func (c *collection) isGlob() bool { return c.pattern.before != "" }

// wanted says whether the collection is, as a whole.
func (c *collection) wanted() bool { return c.self.wanted() }

// synced says that its watches were told that they have its first state.
func (c *collection) synced() bool { return c.wanted() && c.self.complete }

// lives says that the collection is wanted, or was until now and the server was not told yet.
func (c *collection) lives() bool { return c.self.lives() }

// ownedBy says whether a stream is that of the active server of the collection's source.
func (c *collection) ownedBy(s *stream) bool { return c.source != nil && c.source.stream() == s }

// forgetStatus forgets what is known of a collection as a whole, in which nobody is interested any more.
func (c *collection) forgetStatus() {
	sub := c.self
	sub.nameOnStream = nameOnStream{}
	sub.complete, sub.from = false, 0
	sub.become(StatusRequested, nil)
	if l := sub.link(); l != nil && l.busy != nil {
		l.busy.completes = without(l.busy.completes, c)
	}
}

// pattern tells the members of a glob by their canonical names: one more segment where the
// glob has its `*`.
type pattern struct {
	before, after string
}

// split is what a glob over a canonical structured name has before and after its `*`; ok is false for a name
// that no glob can cover.
func split(name string) (p pattern, ok bool) {
	end := strings.IndexByte(name, '?')
	if end < 0 {
		end = len(name)
	}
	start := strings.LastIndexByte(name[:end], '/') + 1
	const authorityAndType = 4 // slashes before the path of an ID
	if strings.Count(name[:start], "/") < authorityAndType || start == end {
		return pattern{}, false
	}
	// GLOB-1, CTX-4: one segment more, with the same context.
	return pattern{name[:start], name[end:]}, true
}

// globOf finds the watched glob that covers a canonical name; nil if there is none.
func (c *cache) globOf(name string) *collection {
	p, _ := split(name)
	return c.globs[p]
}

// collectionOf finds or makes the collection that a watch is of, or that its name is in.
func (c *cache) collectionOf(src *source, w *Watch) *collection {
	if !structured(w.Name) {
		c.star.source = src
		return c.star
	}
	if authority, _ := xdstp.AuthorityOf(w.Name); c.owners[authority] == nil {
		c.owners[authority] = src
	}
	if w.Wildcard {
		return c.globFor(src, w.Name)
	}
	if glob := c.globOf(w.Name); glob != nil {
		return glob
	}
	return c.plainOf(src)
}

func (c *cache) newCollection(src *source, name string) *collection {
	of := &collection{cache: c, source: src}
	of.self = &subscription{name: name, of: of, status: StatusRequested}
	return of
}

// plainOf finds or makes the collection of structured names that no glob covers.
func (c *cache) plainOf(src *source) *collection {
	plain := c.plain[src]
	if plain == nil {
		plain = c.newCollection(src, "")
		plain.globs = map[pattern]*collection{}
		c.plain[src] = plain
	}
	return plain
}

// globFor finds or makes a glob. Resources that were watched by name are in it from now on.
func (c *cache) globFor(src *source, url string) *collection {
	p, _ := split(url)
	if glob := c.globs[p]; glob != nil {
		return glob
	}
	glob := c.newCollection(src, url)
	glob.pattern, glob.members = p, []*subscription{glob.self}
	c.adoptLoose(glob)
	c.subs.put(glob.self)
	c.globs[p] = glob
	c.plainOf(src).globs[p] = glob
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
	before := sub.of
	if sub.of = c; before != nil {
		before.source.heldBytes -= sub.counted()
		c.source.heldBytes += sub.counted()
		if !before.ownedBy(c.source.stream()) {
			sub.nameOnStream = nameOnStream{} // of that stream
		}
		before.leave()
	}
	if !c.isGlob() {
		c.cache.loosen(sub)
	}
	if c != c.cache.star {
		c.members = append(c.members, sub)
	}
}

// leave notes that a subscription is a member no more. It stays listed until many such are.
func (c *collection) leave() {
	if c.holes++; c.holes > 64+len(c.members)/2 {
		c.members, c.holes = c.present(), 0
	}
}

// present lists the members, each once.
func (c *collection) present() (subs []*subscription) {
	for _, sub := range c.members {
		if c.has(sub) {
			subs = append(subs, sub)
			sub.of = nil // so that it is passed over where it is listed again
		}
	}
	for _, sub := range subs {
		sub.of = c
	}
	return subs
}

func (c *collection) has(sub *subscription) bool { return sub.of == c && !sub.gone }

// covered lists the resources of a glob, or for the wildcard all that its server has of the type; those that are
// known by an alias alone too.
func (c *collection) covered() (subs []*subscription) {
	if c.isGlob() {
		return slices.DeleteFunc(c.present(), (*subscription).isCollection)
	}
	for sub := range c.cache.subs.all() {
		if !sub.isCollection() && c.cache.starCovers(sub) {
			subs = append(subs, sub)
		}
	}
	return subs
}

// inOrder lists the members of a glob or the wildcard by name.
func (c *collection) inOrder() []*subscription {
	subs := slices.DeleteFunc(c.covered(), (*subscription).byAlias)
	sortSubs(subs)
	return subs
}

// dropGlob forgets a glob, and what was held for it alone.
func (c *cache) dropGlob(glob *collection) {
	delete(c.globs, glob.pattern)
	delete(c.plain[glob.source].globs, glob.pattern)
	for _, sub := range glob.members {
		switch {
		case !glob.has(sub):
		case sub.lives():
			c.plainOf(glob.source).adopt(sub)
		default:
			c.release(sub)
		}
	}
	glob.members = nil
}

// release lets go of what nobody wants any more, but for the wildcard's watches, which were told of it.
func (c *cache) release(sub *subscription) {
	switch {
	case sub.gone || c.giveToStar(sub):
	case sub == c.star.self:
		c.star.forgetStatus()
	case sub.isCollection():
		c.drop(sub)
		c.dropGlob(sub.of)
	default:
		c.drop(sub)
	}
}

// giveToStar moves a resource that nobody else wants to the wildcard, and says whether it did. In delta the
// server then has to confirm it, if it was requested by name or came from another server: most servers do not
// count a structured name to the wildcard.
func (c *cache) giveToStar(sub *subscription) bool {
	if !c.star.lives() || !c.starCovers(sub) || !sub.spokenOf() {
		return false
	}
	asked := sub.subscribed || sub.of.self.subscribed
	c.star.adopt(sub)
	if l := sub.link(); l.stream.Delta && !sub.recalled() && (asked || sub.foreign()) {
		// WILD-7: the server has to say whether it is the wildcard's.
		l.unconfirm(sub)
	}
	return true
}

// collectionsOf lists those of a source by name.
func (c *cache) collectionsOf(src *source) (cs []*collection) {
	if plain := c.plain[src]; plain != nil {
		cs = append(cs, plain)
		for _, glob := range plain.globs {
			cs = append(cs, glob)
		}
	}
	if src == c.star.source {
		cs = append(cs, c.star)
	}
	slices.SortFunc(cs, byName)
	return cs
}

func byName(a, b *collection) int { return strings.Compare(a.self.name, b.self.name) }

// needsNoMore says that a server's silence completes a collection: it has nothing to add to what
// is held. A server that remembers what it sent does not answer a wildcard if it has sent all that there
// is by name, nor in delta if the first request listed all that there is.
func (c *collection) needsNoMore() bool {
	l := c.self.link()
	// WILD-5: a server that has said nothing at all on this stream says nothing by its silence.
	if l.firstResponse == 0 && !(l.stream.Delta && l.claimsHeld) {
		return false
	}
	if f := c.self.fault(); f != nil && f.Kind != FaultTimeout {
		// A first state that was refused on an earlier stream the server would have sent again, since the first request of
		// this one listed the members.
		before := c.self.listed && (l.firstResponse == 0 || c.self.seen.before(l.firstResponse))
		if f.Kind != FaultRejected || !before {
			return false
		}
	}
	if c.self.listed {
		return true // also when what was listed has expired since
	}
	for sub := range l.cache.of(c.source) {
		if (c == l.cache.star || sub.of == c) && sub.listable() && !sub.unconfirmed && !sub.byAlias() {
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

// covering are the watches of its collection, and those of the wildcard.
func (sub *subscription) covering() (all []*Watch) {
	if sub.of.wanted() {
		all = sub.of.self.watches
	}
	// GLOB-5: all watches that cover a resource hear of it.
	if star := sub.of.cache.star; sub.of != star && star.wanted() && star.cache.starCovers(sub) {
		all = slices.Concat(all, star.self.watches)
	}
	return all
}

// loose are the subscriptions of a type that no glob covers, by the pattern of one that would: a
// new glob takes its own from here. It is made for the first glob of a type. A subscription that
// has gone since may still be listed, until such are most of them.
type loose struct {
	of map[pattern][]*subscription // nil until there was a glob
	n  int                         // in all lists
}

// loosen notes that no glob covers a subscription.
func (c *cache) loosen(sub *subscription) {
	if c.loose.of == nil {
		return
	}
	if c.loose.n > 64+2*c.subs.len() {
		c.findLoose()
		return
	}
	c.loose.add(sub)
}

func (l *loose) add(sub *subscription) {
	if p, ok := split(sub.name); ok {
		l.of[p] = append(l.of[p], sub)
		l.n++
	}
}

// findLoose looks for all of them.
func (c *cache) findLoose() {
	c.loose = loose{of: map[pattern][]*subscription{}}
	for sub := range c.subs.all() {
		if !sub.of.isGlob() {
			c.loose.add(sub)
		}
	}
}

// adoptLoose has a new glob adopt what it covers. What only the wildcard holds is a member too: the server
// has sent it already, so the glob's first state may leave it out (DELTA-8).
func (c *cache) adoptLoose(glob *collection) {
	if c.loose.of == nil {
		c.findLoose()
	}
	subs := c.loose.of[glob.pattern]
	delete(c.loose.of, glob.pattern)
	c.loose.n -= len(subs)
	for _, sub := range subs {
		if sub.gone || sub.of.isGlob() {
			continue
		}
		said := sub.stream()
		glob.adopt(sub)
		if l := sub.link(); l != nil && l.stream != said && l.requested && l.stream.Delta && sub.exists() && !sub.recalled() {
			l.unconfirm(sub) // the server was not told that it is held
		}
	}
}
