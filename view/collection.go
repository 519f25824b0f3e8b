package view

import (
	"errors"

	"github.com/xdswatch/xdswatch/client"
)

// takeMember takes an event of a collection: of a member, or of it as a whole.
func (c *core) takeMember(p *resourcePart, ev *client.Event[any]) {
	if ev.Name != p.name && ev.Asked != p.name {
		switch msg, is := ev.Value.(protoMessage); {
		case ev.Kind == client.EventUpdated && is:
			p.members.Set(ev.Name, &resourceValue{message: msg, origin: c.origin(ev)})
		case ev.Kind == client.EventDoesNotExist, ev.Kind == client.EventFailed:
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
		case ok && s != stateHeld:
			if p.err = ev.Err; s == stateAbsent {
				p.err = c.absence(ev)
			}
			// Trouble and the end of initial_fetch_timeout take nothing back of what the client told.
			if _, late := errors.AsType[*client.FetchTimeoutError](ev.Err); s != stateTrouble && !late {
				gone := p.members.Keys()
				p.members.Clear()
				for _, name := range gone {
					c.takeMemberHost(p, name, nil)
				}
			}
			c.become(p, s)
		}
	}
	p.changed(c)
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
