package view

import (
	"maps"
	"slices"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/client"
)

// takeMember takes an event of a collection: of a member, or of it as a whole.
func (c *core) takeMember(p *resourcePart, ev *client.Event[any]) {
	if ev.Name != p.name && ev.Asked != p.name {
		if p.members == nil {
			p.members = map[string]*resourceValue{}
		}
		switch msg, is := ev.Value.(protoMessage); {
		case ev.Kind == client.EventUpdated && is:
			p.members[ev.Name] = &resourceValue{msg, c.origin(ev)}
		case ev.Kind == client.EventDoesNotExist, ev.Kind == client.EventFailed:
			delete(p.members, ev.Name)
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
			if s != stateTrouble { // else the client still has what it told
				clear(p.members)
			}
			c.become(p, s)
		}
	}
	for a := range p.assigned {
		c.due.refill[a] = true
	}
	c.due.stale = c.due.stale || p.users > len(p.assigned)
}

// endpoints are the members of a collection of endpoints, by name.
func (p *resourcePart) endpoints() (all []*endpointv3.LbEndpoint) {
	for _, name := range slices.Sorted(maps.Keys(p.members)) {
		if e, ok := p.members[name].message.(*endpointv3.LbEndpoint); ok {
			all = append(all, e)
		}
	}
	return all
}
