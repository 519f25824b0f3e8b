package machine

import (
	"slices"
	"strings"
)

// collection is resources of a type on a stream that are watched together, or could be:
// those of a glob, or old-style names, all of which the wildcard `*` stands for. Structured
// names that no watched glob covers are in a collection without a name, one for each chain,
// of which nothing is watched but its resources.
type collection struct {
	ts        *typeState
	chain     *chain // who answers for it; nil until known
	name      string // `*`, the URL of a glob, or "" for neither
	authority string // of its names

	watches  []*Watch // of the whole
	shared   bool     // the slice is in a notice
	explicit bool     // the first watch wanted it by the name `*`
	standby  bool     // wanted without watches, while a server of less priority is active

	synced  bool    // its first state is complete
	absence *Notice // how it was told that there is no first state; nil if it was not
	orphan  bool    // they were told of trouble with the server since
	ambient bool    // the same, of a collection that is synced
	seen    uint32  // the last response that spoke of it

	// self is the collection's own name, which of a glob is asked for as if it were a
	// resource; nil without a name.
	self *entry

	// members are or were in it, a glob's own name too; some are maybe listed twice. Nil for
	// the wildcard's.
	members []*entry
	gone    int // at most so many places of members are of no use

	pattern pattern                 // of a glob
	globs   map[pattern]*collection // of the chain, in the one without a name; nil for none

	// Of this incarnation of the stream.
	known bool   // the request for it has left
	timer uint32 // that runs for it; 0 if none
}

func (c *collection) isGlob() bool { return c.pattern.before != "" }

// wanted says whether the collection is, as a whole.
func (c *collection) wanted() bool { return len(c.watches) > 0 || c.standby }

// watching hands out the watches for a notice.
func (c *collection) watching() []*Watch {
	c.shared = len(c.watches) > 0
	return c.watches
}

// own returns the watches for changing.
func (c *collection) own() []*Watch {
	if c.shared {
		c.watches, c.shared = slices.Clone(c.watches), false
	}
	return c.watches
}

// forgetState is for when the last interest in a collection is gone.
func (c *collection) forgetState() {
	c.synced, c.absence, c.orphan, c.ambient, c.self.fault = false, nil, false, false, nil
	if c.ts.busy != nil {
		delete(c.ts.busy.asked, c)
	}
	if c.isGlob() {
		c.ts.waiting[c] = true
	}
}

// pattern tells the members of a glob by their canonical names: one more segment where the
// glob has its `*`.
type pattern struct {
	before, after string
}

// split cuts a canonical structured name into what a glob over it has before and after its
// `*`; ok is false for one that no glob can cover.
func split(name string) (p pattern, segment string, ok bool) {
	end := strings.IndexByte(name, '?')
	if end < 0 {
		end = len(name)
	}
	start := strings.LastIndexByte(name[:end], '/') + 1
	const authorityAndType = 4 // slashes before the path of an ID
	if strings.Count(name[:start], "/") < authorityAndType || start == end {
		return pattern{}, "", false
	}
	return pattern{name[:start], name[end:]}, name[start:end], true
}

// globOf finds the watched glob that covers a canonical name; nil if there is none.
func (ts *typeState) globOf(name string) *collection {
	if len(ts.globs) == 0 {
		return nil
	}
	if p, segment, ok := split(name); ok && segment != star {
		return ts.globs[p]
	}
	return nil
}

// collectionOf finds or makes the collection that a watch is of, or that its name is in.
func (ts *typeState) collectionOf(ch *chain, w *Watch) *collection {
	if w.Wildcard && structured(w.Name) {
		return ts.globFor(ch, w.Name, w.Authority)
	}
	return ts.collectionFor(ch, w.Name, w.Authority)
}

// collectionFor finds or makes the collection that a name is in.
func (ts *typeState) collectionFor(ch *chain, name, authority string) *collection {
	if !structured(name) {
		ts.star.chain = ch
		return ts.star
	}
	if c := ts.globOf(name); c != nil {
		return c
	}
	return ts.plainOf(ch, authority)
}

// plainOf finds or makes the collection of structured names that no glob covers.
func (ts *typeState) plainOf(ch *chain, authority string) *collection {
	c := ts.plain[ch]
	if c == nil {
		c = &collection{ts: ts, chain: ch, authority: authority}
		ts.plain[ch] = c
	}
	return c
}

// globFor finds or makes a glob. Resources that were watched by name are in it from now on.
func (ts *typeState) globFor(ch *chain, url, authority string) *collection {
	p, _, _ := split(url)
	if c := ts.globs[p]; c != nil {
		return c
	}
	c := &collection{ts: ts, chain: ch, name: url, authority: authority, pattern: p}
	c.self = &entry{name: url, status: StatusRequested}
	c.adopt(c.self)
	ts.takeLoose(c)
	ts.entries.put(c.self)
	ts.globs[p], ts.waiting[c] = c, true
	ts.plainOf(ch, authority).list(c)
	return c
}

// list makes a glob one of the chain.
func (c *collection) list(glob *collection) {
	if c.globs == nil {
		c.globs = map[pattern]*collection{}
	}
	c.globs[glob.pattern] = glob
}

// adopt makes an entry a member.
func (c *collection) adopt(e *entry) {
	before := e.of
	if e.of = c; before != nil {
		before.lose()
	}
	if !c.isGlob() {
		c.ts.loosen(e)
	}
	if c != c.ts.star {
		c.members = append(c.members, e)
	}
}

// lose notes that an entry is a member no more. It stays listed until many such are.
func (c *collection) lose() {
	if c.gone++; c.gone > 64+len(c.members)/2 {
		c.members, c.gone = c.present(), 0
	}
}

// present lists the members, each once.
func (c *collection) present() (es []*entry) {
	for _, e := range c.members {
		if c.has(e) {
			es = append(es, e)
			e.of = nil // so that it is passed over where it is listed again
		}
	}
	for _, e := range es {
		e.of = c
	}
	return es
}

func (c *collection) has(e *entry) bool { return e.of == c && e.live() }

// live says whether an entry is the one of its name.
func (e *entry) live() bool { return e.of.ts.has(e) }

// has says whether an entry is the one of its name in the type.
func (ts *typeState) has(e *entry) bool { return ts.entries.get(e.name) == e }

// stands says whether an entry is the one of its name, or the wildcard's own.
func (ts *typeState) stands(e *entry) bool { return e == ts.star.self || ts.has(e) }

// inOrder lists the entries of a glob by name, or for the wildcard all of the type.
func (c *collection) inOrder() []*entry {
	var es []*entry
	if c.isGlob() {
		es = slices.DeleteFunc(c.present(), func(e *entry) bool { return e.isGlob() || e.byAlias() })
		sortEntries(es)
		return es
	}
	for e := range c.ts.entries.all() {
		if !e.isGlob() && !e.standsBy() && !e.byAlias() {
			es = append(es, e)
		}
	}
	sortEntries(es)
	return es
}

// leave forgets a glob, and what was held for it alone.
func (ts *typeState) leave(c *collection) {
	delete(ts.globs, c.pattern)
	delete(ts.waiting, c)
	delete(ts.plain[c.chain].globs, c.pattern)
	for _, e := range c.members {
		switch {
		case !c.has(e):
		case e.wanted() || e.noted:
			ts.plainOf(c.chain, c.authority).adopt(e)
		case ts.leaveToStar(e):
		default:
			ts.drop(e)
		}
	}
	c.members, c.timer = nil, 0
}

// leaveToStar keeps what nobody else wants any more for the watches of the wildcard, which
// were told of it. In delta a server that it was asked for by itself has to say whether it is
// the wildcard's too; of a structured name, which to most is none of it, that is not waited
// for without end.
func (ts *typeState) leaveToStar(e *entry) bool {
	if e.of == ts.star || e.isGlob() || len(ts.star.watches) == 0 || e.foreign() || !ts.spoken(e) {
		return false
	}
	asked := e.asked || e.of.self != nil && e.of.self.asked
	if ts.star.adopt(e); asked && ts.stream.Delta && structured(e.name) {
		ts.withhold(e)
	}
	return true
}

// collectionsOf lists those of a chain, or for nil all that may be watched: the wildcard's,
// then the one without a name, then the globs by name.
func (ts *typeState) collectionsOf(only *chain) (cs []*collection) {
	if only == nil || only == ts.star.chain {
		cs = append(cs, ts.star)
	}
	n, globs := len(cs), ts.globs
	if only != nil {
		c := ts.plain[only]
		if c == nil {
			return cs
		}
		cs, globs = append(cs, c), c.globs
	}
	for _, c := range globs {
		cs = append(cs, c)
	}
	slices.SortFunc(cs[n:], byName)
	return cs
}

func byName(a, b *collection) int { return strings.Compare(a.name, b.name) }

// tellCollection tells something of a collection itself. Watches that came late and are
// still being told what is held hear of it at the end of that.
func (m *Machine) tellCollection(c *collection, n Notice) {
	to := c.watching()
	if slices.ContainsFunc(to, (*Watch).catchingUp) {
		to = slices.DeleteFunc(slices.Clone(to), (*Watch).catchingUp)
	}
	m.tellCollectionTo(c, n, to)
}

func (m *Machine) tellCollectionTo(c *collection, n Notice, to []*Watch) {
	if len(to) > 0 {
		s := c.ts.stream
		n.Server, n.TypeURL, n.Name, n.All = s.server, c.ts.typ.URL, c.name, to
		n.Stream, n.Authority = s.ref(), to[0].Authority
		m.fx.Notify = append(m.fx.Notify, n)
	}
}

// trouble is what is wrong with the collection as a whole, or with its server; nil if
// nothing is.
func (c *collection) trouble() *Fault {
	if f := c.ts.trouble(); f != nil {
		return f
	}
	return c.self.fault
}

// faultNotice is how the collection's watches hear of trouble.
func (c *collection) faultNotice(f *Fault) Notice {
	f = c.chain.joined(f)
	if c.synced {
		return Notice{Kind: NoticeAmbient, Fault: f}
	}
	return Notice{Kind: NoticeFailed, Fault: f}
}
