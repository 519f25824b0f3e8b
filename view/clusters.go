package view

import (
	"errors"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/protoequal"
)

// clusterPart is a cluster. Its entry is made of the form that is in use; a newer form that waits
// for what it names is its target.
type clusterPart struct {
	part
	holds   int32
	base    refs // in the published shape
	cand    refs // in the shape that is in making
	reached reach
	cur     *Cluster       // the entry, never nil
	eds     *endpointsPart // of the entry; nil if it is no EDS cluster
	warm    *target        // nil if the newest form is in use
	more    *clusterRare
}

// clusterRare is what few clusters have.
type clusterRare struct {
	faults
	read     error // what of the message is not followed
	deleted  time.Time
	children []string      // of the entry, an aggregate
	list     *resourcePart // that the children come from; nil of most aggregates
	needs    []need        // what hooks found in the entry's message
	named    names         // clusters that they found in it
	by       namers
	hosted   hosted
	leaves   []string
	spent    int // of maxMembers, for the leaves
	leafErr  error
}

// target is a form of a cluster that is to be used when what it names is there.
type target struct {
	origin  Origin
	message *clusterv3.Cluster
	read    clusterRead
	eds     *endpointsPart
	list    *resourcePart
	needs   []need
	named   names        // clusters that hooks found
	fresh   time.Time    // until when it waits for a changed assignment; zero if it does not
	search  search       // for what it waits for, of the clusters that it leads to
	on      *clusterPart // that it waits for; nil for none
	since   time.Time
}

func (p *clusterPart) from() *feed { return nil }

var noClusterRare clusterRare

// rare is to be read only.
func (p *clusterPart) rare() *clusterRare {
	if p.more == nil {
		return &noClusterRare
	}
	return p.more
}

func (p *clusterPart) own() *clusterRare {
	if p.more == nil {
		p.more = &clusterRare{}
	}
	return p.more
}

// VIEW-16: cluster finds or makes the one part of a name; nil if there are too many names.
func (c *core) cluster(name string) *clusterPart {
	p := c.clusters[name]
	if p == nil && c.room() {
		return c.newCluster(name)
	}
	return p
}

func (c *core) newCluster(name string) *clusterPart {
	p := &clusterPart{part: part{name: name}, cur: &Cluster{Name: name}}
	c.clusters[name] = p
	c.begin(p)
	return p
}

// blocks says whether a snapshot waits for a cluster.
func (p *clusterPart) blocks() bool {
	return (p.base|p.cand)&static != 0 || p.reached&reachBlock != 0
}

// comesAwaited is called when a snapshot may have come to wait for a cluster. That it, or its assignment, does not exist
// was said to who merely held it: it may come with what names it.
func (c *core) comesAwaited(p *clusterPart, was bool) {
	if was || !p.blocks() {
		return
	}
	switch {
	case c.hurry(): // trouble is an answer now
	case c.config.grace < 0:
		return
	case p.state == stateAbsent:
		c.doubt(p)
	case p.eds != nil && p.eds.state == stateAbsent:
		c.doubt(p.eds)
	default:
		return
	}
	c.touch(p)
}

// touch has the entry of a cluster made anew in this step.
func (c *core) touch(p *clusterPart) {
	if !p.dirty {
		p.dirty = true
		c.due.dirty = append(c.due.dirty, p)
	}
}

func (p *clusterPart) faultsOf() *faults    { return &p.rare().faults }
func (p *clusterPart) ownFaults() *faults   { return &p.own().faults }
func (p *clusterPart) has() bool            { return p.cur.Message != nil }
func (p *clusterPart) deletedAt() time.Time { return p.rare().deleted }

// published leaves out what was only held so far, and had no answer: a snapshot has not had the cluster yet.
func (p *clusterPart) published(*core) bool { return p.inTree && p.cur.status != StatusWaiting }

func (p *clusterPart) isNamed() bool {
	return p.named()|p.cand != 0 || p.rare().hosted.all > 0 || p.reached != 0
}

func (p *clusterPart) keeps(c *core) bool {
	return p.inTree && p.cur.status == StatusOK && p != c.rootCluster
}

func (p *clusterPart) update(c *core, ev *client.Event[any]) bool {
	msg, is := ev.Value.(*clusterv3.Cluster)
	if is {
		c.heldCluster(p, msg, c.origin(ev))
	}
	return is
}

func (p *clusterPart) keep(c *core) {
	c.aim(p, nil)
	if m := p.own(); m.deleted.IsZero() {
		m.deleted = c.now
	}
}

func (p *clusterPart) changed(c *core) {
	c.touch(p)
	c.due.stale = c.due.stale || p == c.rootCluster
}

// heldCluster takes a new message.
func (c *core) heldCluster(p *clusterPart, msg *clusterv3.Cluster, o Origin) {
	if m := p.more; m != nil {
		m.ambient, m.deleted = nil, time.Time{}
	}
	was := p.state
	c.become(p, stateHeld)
	switch {
	case p.warm != nil && protoequal.Equal(p.warm.message, msg): // WARM-c
		delete(c.quota.starved, p)
		p.warm.origin = o
		return
	case p.cur.Message == nil || was != stateHeld || !protoequal.Equal(p.cur.Message, msg):
	case p.warm != nil: // what the form in use names may have changed since there is another
		msg = p.cur.Message
	default: // VIEW-4
		delete(c.quota.starved, p)
		if p.more != nil {
			p.more.err = nil // of a deletion
		}
		e := *p.cur
		e.Origin = o
		p.cur = &e // render says that only the version differs
		c.out.differs(changeQuiet)
		return
	}
	c.bind(p, msg, o)
}

// bind makes a message the target of a cluster, and has what it names watched.
func (c *core) bind(p *clusterPart, msg *clusterv3.Cluster, o Origin) {
	t := &target{origin: o, message: msg, read: readCluster(msg, c.hooks), since: c.now}
	r := &t.read
	if r.err != nil {
		c.refuse(p, t, r.err)
		return
	}
	known := len(c.due.fresh)
	if r.kind == KindEDS {
		f := c.eds
		if r.edsSource != nil {
			f = c.feedOf(edsKind, r.edsSource, false, c.cds)
		}
		if t.eds = c.assignment(f, r.eds); t.eds == nil {
			r.err = tooMany(c.config.maxNames)
		} else {
			t.eds.addUser(p)
		}
	}
	if r.list != nil {
		if t.list = c.resource(c.feedOf(aggregateKind, r.list.GetConfigSource(), false, c.cds), r.list.GetResourceName()); t.list == nil {
			r.err = tooMany(c.config.maxNames)
		} else {
			c.useFor(t.list, p, Essential, 1)
		}
	}
	if t.named = r.named; len(r.needs) > 0 && r.err == nil {
		needs, named, cramped := c.needsOf(r.needs, c.cds, Essential)
		t.needs, t.named = needs, append(t.named, named...)
		t.named.compact()
		for _, n := range needs {
			c.useFor(n.part, p, n.Need, 1)
			r.note = join(r.note, n.deep)
		}
		if len(cramped) > 0 {
			r.err = tooMany(c.config.maxNames)
		}
	}
	if r.err != nil {
		c.cramped(p, t, c.due.fresh[known:])
		return
	}
	if c.config.fresh > 0 && t.eds != nil && p.eds == t.eds && otherSocket(p.cur.Message, msg) && !c.confirmed(p) { // WARM-e
		if w := p.warm; w != nil && w.eds == t.eds && (!w.fresh.IsZero() || !otherSocket(w.message, msg)) {
			t.fresh = w.fresh // a cluster that changes again waits no longer
		} else {
			t.fresh = c.now.Add(c.config.fresh)
			c.alarm(c.config.fresh, func() { c.touch(p) })
		}
	}
	c.aim(p, t)
	if t.leads() {
		c.links.stale[p.name] = true
	}
	c.wait.changed = true
}

// cramped refuses a target that found no room for all that it names, until there is some. It leaves nothing
// behind, so that others may have what room there is.
func (c *core) cramped(p *clusterPart, t *target, fresh []anyPart) {
	c.giveBack(p, t.eds, t.list, t.needs)
	for _, f := range fresh {
		if !c.needed(f) {
			c.forget(f)
		}
	}
	c.refuse(p, t, t.read.err)
	c.starve(p, func() {
		if _, short := errors.AsType[tooMany](p.rare().ambient); short {
			p.more.ambient = nil
		}
		c.bind(p, t.message, t.origin)
		c.touch(p)
	})
}

// leads says whether there may be clusters below a target.
func (t *target) leads() bool { return t.read.kind == KindAggregate || len(t.named) > 0 }

func (p *clusterPart) leads() bool { return p.cur.kind == KindAggregate || len(p.rare().named) > 0 }

func (c *core) leads(p *clusterPart) bool { return p.leads() || p.warm != nil && p.warm.leads() }

// confirmed says whether a server has told the assignment of a cluster that it had not told itself:
// that is the answer which FreshEndpoints waits for.
func (c *core) confirmed(p *clusterPart) bool {
	e := p.eds.newest()
	return p.cur.Stale && e != nil && !e.Stale
}

// useFor counts a cluster's need of a resource.
func (c *core) useFor(part *resourcePart, p *clusterPart, n Need, by int) {
	if part.clusters == nil {
		part.clusters = map[*clusterPart]int{}
	}
	if part.clusters[p] += by; part.clusters[p] == 0 {
		delete(part.clusters, p)
	}
	part.users += by
	if n != Optional {
		part.blocking += by
	}
	c.enqueue(part)
}

// aim replaces the target of a cluster; nil is none.
func (c *core) aim(p *clusterPart, t *target) {
	delete(c.quota.starved, p)
	if p.warm != nil {
		c.letGo(p, p.warm)
		c.wait.targets--
	}
	if p.warm = t; t != nil {
		c.wait.targets++
	}
}

// letGo gives back what a target needed.
func (c *core) letGo(p *clusterPart, t *target) {
	c.wait.changed = true
	c.giveBack(p, t.eds, t.list, t.needs)
	c.await(p, t, nil)
	if t.leads() {
		c.links.stale[p.name] = true
	}
}

func (c *core) giveBack(p *clusterPart, eds *endpointsPart, list *resourcePart, needs []need) {
	if eds != nil {
		c.dropUser(eds, p)
	}
	if list != nil {
		c.useFor(list, p, Essential, -1)
	}
	for _, n := range needs {
		c.useFor(n.part, p, n.Need, -1)
	}
}

// freshen ends the wait of clusters for a changed assignment.
func (c *core) freshen(p *endpointsPart) {
	for u := range p.usedBy() {
		if u.warm != nil && u.warm.eds == p {
			u.warm.fresh = time.Time{}
		}
	}
}

// ready says whether a cluster has a target that may be used: what it names has an answer, now or since long.
func (c *core) ready(p *clusterPart) bool {
	t := p.warm
	switch {
	case t == nil || !c.readyItself(p, t):
		return false
	case t.leads(): // WARM-1: with all that it leads to.
		names := t.awaited()
		c.await(p, t, c.search(&t.search, len(names), c.named(names)))
	}
	return t.on == nil
}

// readyItself leaves out the clusters below it.
func (c *core) readyItself(p *clusterPart, t *target) bool {
	switch {
	case t.eds != nil && (!c.answeredFor(p, t.eds.state) || t.eds.cur == nil && t.eds.rare().next != nil || t.eds.inDoubt() && !c.answeredFor(p, stateDoubt)):
		return false
	case c.now.Before(t.fresh):
		return false
	case t.list != nil && !c.answeredFor(p, t.list.state):
		return false
	}
	for _, n := range t.needs {
		if n.Need != Optional && !c.answeredFor(p, n.part.state) {
			return false
		}
	}
	return true
}

// WARM-b: commit makes a target the form in use; until then the old one is.
func (c *core) commit(p *clusterPart, t *target) {
	p.warm = nil
	c.wait.targets--
	c.wait.changed = true
	m := p.rare()
	if t.list != nil && t.list == m.list && len(m.children) > 0 && t.list.message != nil {
		if err := t.list.listErr(); err != nil { // the members of before stay; without any see spoiled
			c.letGo(p, t)
			c.refuse(p, t, err)
			return
		}
	}
	if p.state == stateFailed { // for want of room, which there is now: what is refused is no target
		c.become(p, stateHeld)
		c.due.stale = c.due.stale || p == c.rootCluster
	}
	c.giveBack(p, p.eds, m.list, m.needs)
	p.eds = t.eds
	if p.leads() || t.leads() {
		c.links.stale[p.name] = true
	}
	if p.more != nil || t.list != nil || len(t.needs) > 0 || len(t.named) > 0 || t.read.note != nil || len(t.read.children) > 0 {
		m = p.own()
		m.list, m.needs, m.named, m.read, m.children = t.list, t.needs, t.named, t.read.note, t.children()
		if m.deleted.IsZero() { // else it is why the cluster goes one day
			m.err = nil
		}
		if t.read.kind == KindAggregate {
			c.links.leaves.stale[p] = true
		} else {
			c.dropLeaves(p)
			m.leaves, m.leafErr = nil, nil
		}
	}
	if p.cur.Message != t.message { // else only its list of members has changed
		c.loud(p)
	}
	p.cur = &Cluster{
		Origin: t.origin, Name: p.name, Message: t.message, kind: t.read.kind,
		status: p.cur.status, refs: p.cur.refs, more: p.cur.more, Endpoints: p.cur.Endpoints,
	}
}

// refuse is for a message that the view cannot use: as after a NACK the old one stays in use, or is
// waited for.
func (c *core) refuse(p *clusterPart, t *target, err error) {
	err = c.fault(cdsKind.TypeURL(), p.name, t.origin, err)
	switch {
	case p.cur.Message == t.message: // only its list of members is refused
		p.own().read = join(t.read.note, err)
		return
	case p.cur.Message != nil, p.warm != nil:
		p.own().ambient = err
		return
	}
	p.own().err = err
	c.become(p, stateFailed)
	c.due.stale = c.due.stale || p == c.rootCluster
}

// drop ends the use of a cluster's message.
func (p *clusterPart) drop(c *core, s partState) {
	c.become(p, s)
	c.aim(p, nil)
	if p.leads() {
		c.links.stale[p.name] = true
	}
	c.dropLeaves(p)
	if m := p.more; m != nil {
		c.giveBack(p, p.eds, m.list, m.needs)
		m.named = nil
		m.list, m.needs, m.children, m.leaves, m.leafErr, m.deleted, m.ambient, m.read = nil, nil, nil, nil, nil, time.Time{}, nil, nil
	} else {
		c.giveBack(p, p.eds, nil, nil)
	}
	p.eds = nil
	if p.cur.Message != nil {
		p.cur = &Cluster{Name: p.name, status: p.cur.status, refs: p.cur.refs, more: p.cur.more, Endpoints: p.cur.Endpoints}
		c.loud(p)
	}
}

// settle uses what became ready, and makes the entries of touched clusters anew.
func (c *core) settle() {
	defer func() { c.due.dirty = nil }() // it may have been long
	c.due.looked = looked{}
	for len(c.due.dirty) > 0 {
		p := c.due.dirty[len(c.due.dirty)-1]
		c.due.dirty = c.due.dirty[:len(c.due.dirty)-1]
		p.dirty = false
		if c.clusters[p.name] != p {
			continue
		}
		if c.ready(p) {
			c.commit(p, p.warm)
		}
		c.render(p)
		c.wake(p)
	}
}
