package view

import (
	"errors"
	"slices"

	"github.com/tidwall/btree"

	"github.com/xdswatch/xdswatch/client"
)

// takeMember takes an event of a collection: of a member, or of it as a whole.
func (c *core) takeMember(p *resourcePart, ev *client.Event[any]) {
	member := ev.Name != p.name && ev.Asked != p.name
	if !p.deleted.IsZero() && (ev.Kind == client.EventUpdated || ev.Kind == client.EventSynced) { // it is back
		p.drop(c, stateHeld)
		p.err = nil
	}
	if member {
		if !p.deleted.IsZero() {
			return // the client has none any more; those that are kept go when the collection is back
		}
		switch msg, is := ev.Value.(protoMessage); {
		case ev.Kind == client.EventUpdated && is:
			p.members.Set(ev.Name, &resourceValue{message: msg, origin: c.origin(ev)})
		case ev.Kind == client.EventDoesNotExist, ev.Kind == client.EventFailed:
			c.noteMembers(p)
			p.members.Delete(ev.Name)
		}
		if p.feed.kind == vhdsKind {
			m, _ := p.members.Get(ev.Name)
			c.takeMemberHost(p, ev.Name, m)
			return
		}
	} else {
		switch s, ok := stateOf(ev); {
		case ev.Kind == client.EventSynced:
			p.err, p.ambient = nil, nil
			c.become(p, stateHeld)
		case ok && s == stateTrouble && p.state == stateHeld, ev.Kind == client.EventAmbientError:
			p.ambient = ev.Err
		case ev.Kind == client.EventRecovered:
			p.ambient = nil
		case s == stateAbsent && c.keeps(ev) && p.keeps(c):
			p.err = c.absence(ev)
			if before := c.due.before[p]; before != nil {
				p.members = before
			}
			p.keep(c)
			c.alarm(c.config.grace, func() { c.expire(p) })
		case c.doubtful(p, s, ev):
			p.err = c.absence(ev)
			c.doubt(p)
		case ok && s != stateHeld:
			if p.err = ev.Err; s == stateAbsent {
				p.err = c.absence(ev)
			}
			// Trouble and the end of initial_fetch_timeout take nothing back of what the client told.
			if _, late := errors.AsType[*client.FetchTimeoutError](ev.Err); s != stateTrouble && !late {
				gone := p.members.Keys()
				p.drop(c, s)
				for _, name := range gone {
					c.takeMemberHost(p, name, nil)
				}
			}
			c.become(p, s)
		}
	}
	p.changed(c)
}

// noteMembers notes the members of a collection before one is removed: the client tells the removal of a collection after
// that of its members.
func (c *core) noteMembers(p *resourcePart) {
	if len(p.assigned) == 0 || c.due.before[p] != nil {
		return
	}
	if c.due.before == nil {
		c.due.before = map[*resourcePart]*btree.Map[string, *resourceValue]{}
	}
	c.due.before[p] = p.members.Copy()
}

// fills says whether endpoints in the snapshot are those of a collection.
func (c *core) fills(p *resourcePart) bool {
	for a := range p.assigned {
		if c.usedInTree(a) && slices.Contains(a.rare().leds, p) {
			return true
		}
	}
	return false
}

// membersOf are the members of a collection, by name.
func membersOf[M protoMessage](p *resourcePart) []M {
	all := make([]M, 0, p.members.Len())
	p.members.Scan(func(_ string, m *resourceValue) bool {
		if is, ok := m.message.(M); ok {
			all = append(all, is)
		}
		return true
	})
	return all
}
