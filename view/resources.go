package view

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/protoequal"
)

func (p *resourcePart) faultsOf() *faults    { return &p.faults }
func (p *resourcePart) ownFaults() *faults   { return &p.faults }
func (p *resourcePart) has() bool            { return p.message != nil }
func (p *resourcePart) deletedAt() time.Time { return p.deleted }
func (p *resourcePart) published(c *core) bool {
	return p.inSnapshot() || p == c.rootPart || p.feed.collection && c.fills(p)
}

func (p *resourcePart) isNamed() bool { return p.users > len(p.leaders)+len(p.answers) }

func (p *resourcePart) update(c *core, ev *client.Event[any]) bool {
	msg, is := ev.Value.(protoMessage)
	if !is {
		return false
	}
	p.faults, p.deleted, p.origin = faults{}, time.Time{}, c.origin(ev)
	if known := c.knownMessage(p, msg, len(ev.Raw)); known != p.message || known == nil {
		p.message, p.read = cmp.Or(known, msg), nil
	}
	p.size = len(ev.Raw)
	c.become(p, stateHeld)
	return true
}

func (p *resourcePart) keep(c *core) {
	if p.deleted.IsZero() {
		p.deleted = c.now
	}
}

// knownMessage is the message of a part, or the one in the published shape, that a new one is
// equal to; nil if it is a change (VIEW-4).
func (c *core) knownMessage(p *resourcePart, msg proto.Message, size int) proto.Message {
	if p.message != nil && p.size == size && protoequal.Equal(p.message, msg) {
		return p.message
	}
	if old := c.shownMessage(p); old != nil && old != p.message && protoequal.Equal(old, msg) {
		return old
	}
	return nil
}

// shownMessage is the message of a part in the snapshot, nil if it has none.
func (c *core) shownMessage(p *resourcePart) proto.Message {
	switch s := c.shown; {
	case p.entry != nil:
		return p.entry.Message
	case s == nil:
	case p == c.rootPart && s.listener != nil:
		return s.listener.Message
	default:
		if i := slices.Index(s.parts, p); i >= 0 && s.routes[i].Message != nil {
			return s.routes[i].Message
		}
	}
	return nil
}

// keeps says whether a deletion is one that may be kept: the root's never is.
func (p *resourcePart) keeps(c *core) bool {
	if p.feed.collection {
		return p.state == stateHeld && c.fills(p)
	}
	if p == c.rootPart || p.message == nil {
		return false
	}
	for u := range p.clusters {
		if u.inTree {
			return true
		}
	}
	return p.inSnapshot()
}

// inSnapshot says whether the routes in the snapshot lead to a resource.
func (p *resourcePart) inSnapshot() bool {
	for _, v := range p.leaders {
		if v.shown > 0 {
			return true
		}
	}
	return p.shown > 0 || slices.ContainsFunc(p.answers, func(n hostName) bool { return n.of.shown > 0 })
}

func (p *resourcePart) drop(c *core, s partState) {
	c.become(p, s)
	p.message, p.read, p.origin, p.deleted, p.ambient = nil, nil, Origin{}, time.Time{}, nil
	if p.members != nil {
		p.members.Clear()
	}
}

// ofShape says whether a shape needs a resource.
func (p *resourcePart) ofShape() bool {
	return p.users > len(p.clusters)+len(p.assigned)+len(p.leaders)+len(p.answers)
}

// changed has what is made of a resource be made anew.
func (p *resourcePart) changed(c *core) {
	if p == c.rootPart || p.ofShape() {
		c.due.stale = true
	}
	for _, n := range p.answers {
		c.answerHost(n.of, n.name, p)
	}
	for a := range p.assigned {
		c.due.refill[a] = true
	}
	found := c.hookable(p) && len(c.found(p).needs)+len(c.found(p).clusters) > 0
	for u := range p.clusters {
		c.relist(u, p, found || p.leads)
		c.touch(u)
		if c.leads(u) {
			c.links.stale[u.name] = true
		}
	}
	for h, v := range p.leaders {
		if found || p.leads {
			c.vhds.refollow[h] = v
		}
	}
	p.leads = found
	c.showResource(p)
}

// showResource puts what a hook found into the snapshots to come.
func (c *core) showResource(p *resourcePart) {
	if !c.hookable(p) || !c.answered(p.state) && (p.entry == nil || p.state == stateDoubt) {
		return
	}
	e := &Resource{
		Origin: p.origin, Type: p.feed.kind.TypeURL(), Name: p.name, Message: p.message,
		Note: join(p.ambient, c.found(p).err), Deleted: p.deleted,
	}
	if p.message == nil {
		e.Err = p.err
	}
	p.entry = e
	c.setResource(p.key(), e)
}

// same says whether a program can tell two entries apart.
func (r *Resource) same(o *Resource) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.Message == o.Message && sameError(r.Err, o.Err) && sameError(r.Note, o.Note) && r.Deleted.Equal(o.Deleted)
}

// hookable says whether a hook found a resource.
func (c *core) hookable(p *resourcePart) bool {
	return p != c.rootPart && !p.feed.collection && p.feed.kind != rdsKind && p.feed.kind != aggregateKind && p.feed.kind != vhdsKind
}
