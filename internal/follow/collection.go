package follow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/xdstp"
)

// collection is a collection whose members may be elsewhere: of a list collection all members, of
// a wildcard and a glob those that are redirected.
type collection struct {
	*Tree
	watch *machine.Watch // of the collection

	members map[string]*member
	open    int   // members without a first answer
	whole   *Told // the end of the first state, which waits for them; nil if it does not
	waits   bool  // trouble with the collection waits for that too
	trouble *Told // with the collection; nil if none is known

	// Of a list collection.
	url   string           // without directives; the name itself if that is no URL
	place *xdstp.Locator   // where its directory is, without directives
	round uint32           // of the newest directory
	stale bool             // the directory is from the store
	found []*machine.Watch // of new members, which are to start at one moment
}

// take takes a notice of a wildcard's or a glob's watch if it is the collection's concern: that of
// a member that is elsewhere, and what waits for such members.
func (c *collection) take(n *machine.Notice) (taken, wantsFlush bool) {
	m := c.members[n.Name]
	if n.Name == c.Asked.Name && n.Kind != machine.NoticeAmbient { // it takes the place of what waits
		c.whole, c.waits, c.trouble = nil, false, nil
	}
	if m == nil {
		switch {
		case Redirects(n):
			m = c.enlist(n.Name)
			if m.init(c.Tree, n.Name, nil, c.watch, m); n.Replaces {
				m.held(n.Server)
				m.last = machine.NoticeUpdated
				c.open--
			}
		case n.Name == c.Asked.Name && n.Kind == machine.NoticeSynced && c.open > 0:
			c.whole, c.waits = &Told{Notice: *n, Type: c.Asked.TypeURL}, true
			return true, false
		case n.Name == c.Asked.Name && n.Kind == machine.NoticeAmbient && c.waits:
			return true, c.blame(&Told{Notice: *n, Type: c.Asked.TypeURL})
		default:
			return false, false
		}
	}
	wantsFlush = m.root.Tell(n)
	if m.root.to == nil { // it is the resource itself again, or nothing
		delete(c.members, n.Name)
	}
	return true, wantsFlush
}

// Hear implements hearer, for the directory.
func (c *collection) Hear(t *Told) (wantsFlush bool) {
	switch whole := c.of(t); t.Kind {
	case machine.NoticeUpdated:
		wantsFlush = c.update(t)
		if c.trouble != nil {
			over := *whole
			over.Kind = machine.NoticeAmbient
			wantsFlush = c.blame(&over) || wantsFlush
		}
		if c.waits {
			whole.Kind, c.whole = machine.NoticeSynced, whole
		}
	case machine.NoticeDoesNotExist, machine.NoticeFailed:
		c.whole, c.waits, c.trouble = nil, true, nil // what comes next is a first state again
		wantsFlush = c.dismiss(t, func(*member) bool { return true })
		wantsFlush = c.sink.Hear(whole) || wantsFlush
	case machine.NoticeAmbient:
		wantsFlush = c.blame(whole)
	}
	return c.sync() || wantsFlush
}

// of makes what is told of the directory that of the collection.
func (c *collection) of(t *Told) *Told {
	own := *t
	own.TypeURL = xdstp.ListCollectionURL(c.Asked.TypeURL)
	return &own
}

// blame reports trouble with the collection, or its end. It waits until Synced was told: that would sound as if all
// were well.
func (c *collection) blame(t *Told) bool {
	if c.trouble = t; t.Fault == nil {
		c.trouble = nil
	}
	return !c.waits && c.sink.Hear(t)
}

// sync tells that the first state is complete, once it is.
func (c *collection) sync() (wantsFlush bool) {
	// COLL-5: something is known of each member.
	if c.whole == nil || c.open > 0 {
		return false
	}
	whole := c.whole
	c.whole, c.waits = nil, false
	wantsFlush = c.sink.Hear(whole)
	return c.trouble != nil && c.sink.Hear(c.trouble) || wantsFlush
}

// update takes a new directory.
func (c *collection) update(t *Told) (wantsFlush bool) {
	d := t.Value.(listing.Directory)
	c.whole, c.waits, c.stale = nil, c.waits || c.stale != t.Stale, t.Stale
	place := listing.Plain(*c.first.by.at)
	c.place = &place
	c.round++
	listed := make([]*member, len(d.Entries))
	for i := range d.Entries {
		listed[i] = c.enlist(d.Entries[i].MemberName(c.url, i))
	}
	for i, m := range listed {
		wantsFlush = m.take(d, i, t) || wantsFlush
	}
	c.starting, c.found = c.found, nil
	c.begin()
	return c.dismiss(t, func(m *member) bool { return m.round != c.round }) || wantsFlush
}

// enlist finds or makes the member of a name.
func (c *collection) enlist(name string) *member {
	m := c.members[name]
	if m == nil {
		m = &member{all: c}
		m.tree, m.to, m.asked = c.Tree, m, name
		c.members[name] = m
		c.open++
	}
	m.twice = m.round == c.round
	m.round = c.round
	return m
}

// dismiss lets go of members, by name. Those that the program knows are told to be removed.
func (c *collection) dismiss(t *Told, which func(*member) bool) (wantsFlush bool) {
	var gone []*member
	for _, m := range c.members {
		if which(m) {
			gone = append(gone, m)
		}
	}
	slices.SortFunc(gone, func(a, b *member) int { return strings.Compare(a.asked, b.asked) })
	// COLL-3: what the directory does not list any more is unsubscribed, and told to be removed.
	for _, m := range gone {
		delete(c.members, m.asked)
		if drop(&m.root); m.last == 0 {
			c.open--
		}
		if m.last == machine.NoticeUpdated || m.last == machine.NoticeFailed {
			removed := &News{Reason: machine.ReasonRemoved, Stale: t.Stale, Server: t.Server}
			wantsFlush = c.sink.Hear(c.Tree.told(m.asked, m.authority, removed, machine.NoticeDoesNotExist)) || wantsFlush
		}
	}
	return wantsFlush
}

// member is one name of a collection.
type member struct {
	Name
	all  *collection
	last machine.NoticeKind // the newest value, absence or failure; 0 if nothing was told

	// Of a list collection.
	round uint32 // of the directory that lists it
	twice bool   // in that
}

// take makes the member what an entry of a directory says.
func (m *member) take(d listing.Directory, i int, t *Told) bool {
	e := &d.Entries[i]
	news := &News{Kind: machine.NoticeUpdated, Stale: t.Stale, Server: t.Server, Version: t.Version}
	m.authority = m.all.first.authority
	if e.Locator != nil {
		m.authority = e.Locator.Name.Authority
	}
	if m.root == nil {
		m.put(&node{})
	}
	switch {
	case m.twice:
		m.spoil(d, i, listing.ErrTwice, news)
	case e.Err != nil:
		m.spoil(d, i, e.Err, news)
	case e.Locator != nil:
		m.locate(e.Locator, news)
	// COLL-4: an inline member is all here.
	default:
		if m.root.watch != nil {
			m.put(&node{})
		}
		m.root.at = m.all.place
		m.root.entry(d, d.NameOf(i), i, nil, news)
	}
	return m.settle()
}

// put gives the member another root.
func (m *member) put(n *node) {
	drop(&m.root)
	n.name, m.root = &m.Name, n
	if n.at == nil {
		n.at = m.all.place
	}
}

// spoil has the member be the entry at index i, which cannot be used.
func (m *member) spoil(d listing.Directory, i int, err error, n *News) {
	m.root.spoil(d, d.NameOf(i), err, n)
	if m.root.watch != nil && !m.root.sound() {
		m.put(&node{now: m.root.now})
	}
}

// locate subscribes to what a locator leads to, unless that was done before.
func (m *member) locate(l *xdstp.Locator, n *News) {
	if m.root.watch != nil {
		m.root.flaw = nil
		return
	}
	was := m.root.now
	// COLL-3: a located member is subscribed to by itself.
	m.put(&node{at: l, by: m.all.place})
	fault := m.tree.open(m.root)
	if fault == nil {
		m.all.found = append(m.all.found, m.root.watch)
		return
	}
	failed := n.failed(fault.Kind, fmt.Errorf("the member cannot be followed: %w", fault.Err))
	if failed.sameFault(was) {
		failed = was // it is no news
	}
	m.root.lost(failed)
}

// Hear implements hearer.
func (m *member) Hear(t *Told) bool {
	wantsFlush := m.all.sink.Hear(t)
	if t.Kind == machine.NoticeAmbient {
		return wantsFlush
	}
	if m.last == 0 { // it was waited for
		m.all.open--
	}
	m.last = t.Kind
	return m.all.sync() || wantsFlush
}
