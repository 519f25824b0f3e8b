package view

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/protoequal"
	"github.com/xdswatch/xdswatch/resource/leds"
)

// endpointsPart is an assignment (EDS).
type endpointsPart struct {
	part
	cur  *Endpoints   // nil if there is none
	user *clusterPart // one cluster that needs it; nil if none does
	more *endpointsRare
}

// endpointsRare is what few assignments have.
type endpointsRare struct {
	feed  *feed                // nil: the usual one
	users map[*clusterPart]int // beside user
	faults
	leds []*resourcePart // collections of cur, by locality; nil if it has none
	next *Endpoints      // that waits for its collections
	to   []*resourcePart // those of next
}

func (p *endpointsPart) from() *feed { return p.rare().feed }

var noEndpointsRare endpointsRare

// rare is to be read only.
func (p *endpointsPart) rare() *endpointsRare {
	if p.more == nil {
		return &noEndpointsRare
	}
	return p.more
}

func (p *endpointsPart) own() *endpointsRare {
	if p.more == nil {
		p.more = &endpointsRare{}
	}
	return p.more
}

// assignment finds or makes a part; nil if there are too many names.
func (c *core) assignment(f *feed, name string) *endpointsPart {
	p := f.endpoints[name]
	if p == nil && c.room() {
		p = &endpointsPart{part: part{name: name}}
		if f != c.eds {
			p.own().feed = f
		}
		f.endpoints[name] = p
		c.keepFeed(f)
		c.begin(p)
	}
	return p
}

// WARM-h: addUser and dropUser count: a cluster may need an assignment for its old and its new form.
func (p *endpointsPart) addUser(u *clusterPart) {
	switch {
	case p.user == nil:
		p.user = u
	case p.own().users == nil:
		p.more.users = map[*clusterPart]int{u: 1}
	default:
		p.more.users[u]++
	}
}

// usedBy are the clusters that need an assignment.
func (p *endpointsPart) usedBy() iter.Seq[*clusterPart] {
	return func(yield func(*clusterPart) bool) {
		if p.user == nil || !yield(p.user) {
			return
		}
		for u := range p.rare().users {
			if !yield(u) {
				return
			}
		}
	}
}

func (c *core) dropUser(p *endpointsPart, u *clusterPart) {
	users := p.rare().users
	switch {
	case users[u] > 1:
		users[u]--
	case users[u] == 1:
		delete(users, u)
	case p.user == u:
		p.user = nil
		for other, n := range users { // any of them
			p.user = other
			if n--; n == 0 {
				delete(users, other)
			} else {
				users[other] = n
			}
			break
		}
	}
	if p.user == nil {
		c.enqueue(p)
	}
}

func (p *endpointsPart) faultsOf() *faults      { return &p.rare().faults }
func (p *endpointsPart) ownFaults() *faults     { return &p.own().faults }
func (p *endpointsPart) has() bool              { return p.cur != nil }
func (p *endpointsPart) deletedAt() time.Time   { return p.cur.Deleted() }
func (p *endpointsPart) published(c *core) bool { return c.usedInTree(p) }
func (p *endpointsPart) isNamed() bool          { return true }
func (p *endpointsPart) keeps(c *core) bool     { return p.cur != nil && c.usedInTree(p) }

func (p *endpointsPart) update(c *core, ev *client.Event[any]) bool {
	msg, is := ev.Value.(*endpointv3.ClusterLoadAssignment)
	if is {
		c.heldEndpoints(p, msg, c.origin(ev))
	}
	return is
}

func (p *endpointsPart) keep(c *core) {
	c.dropNext(p)
	if e := *p.cur; e.Deleted().IsZero() {
		e.more = e.changed(func(m *endpointsMore) { m.deleted = c.now })
		p.cur = &e
	}
}

// changed has the entries of clusters made anew.
func (p *endpointsPart) changed(c *core) {
	for u := range p.usedBy() {
		c.touch(u)
	}
}

// changed is a changed copy of what few assignments have.
func (e *Endpoints) changed(f func(*endpointsMore)) *endpointsMore {
	m := *e.rare()
	if f(&m); m == noEndpointsMore {
		return nil
	}
	return &m
}

// heldEndpoints takes a new assignment.
func (c *core) heldEndpoints(p *endpointsPart, msg *endpointv3.ClusterLoadAssignment, o Origin) {
	if m := p.more; m != nil {
		m.ambient = nil
	}
	c.become(p, stateHeld)
	c.freshen(p)
	switch next := p.rare().next; { // VIEW-4
	case p.cur != nil && sameAssignment(p.cur.Message, msg):
		c.dropNext(p)
		p.cur = p.cur.again(o)
	case next != nil && sameAssignment(next.Message, msg):
		p.more.next = next.again(o)
	default:
		c.collect(p, &Endpoints{Origin: o, Message: msg})
	}
	if m := p.more; m != nil && p.cur != nil { // else why there are no endpoints stays so until there are
		m.err = nil
	}
}

// sameAssignment is protoequal.Equal, which takes long where one of many endpoints differs: what differs
// mostly is looked at first.
func sameAssignment(a, b *endpointv3.ClusterLoadAssignment) bool {
	return slices.EqualFunc(a.GetEndpoints(), b.GetEndpoints(), func(a, b locality) bool {
		return a.GetLoadBalancingWeight().GetValue() == b.GetLoadBalancingWeight().GetValue() &&
			slices.EqualFunc(a.GetLbEndpoints(), b.GetLbEndpoints(), func(a, b endpoint) bool {
				at, bt := a.GetEndpoint().GetAddress().GetSocketAddress(), b.GetEndpoint().GetAddress().GetSocketAddress()
				return at.GetPortValue() == bt.GetPortValue() && at.GetAddress() == bt.GetAddress() && a.GetHealthStatus() == b.GetHealthStatus() &&
					a.GetLoadBalancingWeight().GetValue() == b.GetLoadBalancingWeight().GetValue()
			})
	}) && protoequal.Equal(a, b)
}

// again is an assignment that was sent again.
func (e *Endpoints) again(o Origin) *Endpoints {
	same := *e
	same.Origin, same.more = o, e.changed(func(m *endpointsMore) { m.deleted = noEndpointsMore.deleted })
	return &same
}

func (p *endpointsPart) newest() *Endpoints {
	if next := p.rare().next; next != nil {
		return next
	}
	return p.cur
}

func (c *core) usedInTree(p *endpointsPart) bool {
	for u := range p.usedBy() {
		if u.inTree && u.eds == p {
			return true
		}
	}
	return false
}

// inDoubt says that the removal of an assignment, or of a collection of it, is not believed yet.
func (p *endpointsPart) inDoubt() bool {
	return p.state == stateDoubt || slices.ContainsFunc(p.rare().leds, func(l *resourcePart) bool { return l != nil && l.state == stateDoubt })
}

func (p *endpointsPart) drop(c *core, s partState) {
	c.become(p, s)
	p.cur = nil
	c.dropNext(p)
	if m := p.more; m != nil {
		c.useCollections(m.leds, p, -1)
		m.leds = nil
	}
}

// dropNext forgets an assignment that waits for its collections.
func (c *core) dropNext(p *endpointsPart) {
	delete(c.quota.starved, p)
	if m := p.more; m != nil && m.next != nil {
		c.useCollections(m.to, p, -1)
		m.next, m.to = nil, nil
	}
}

// VIEW-25: note says what is wrong with the endpoints of a cluster, which stays usable.
func (p *endpointsPart) note() error {
	m := p.rare()
	switch {
	case p.cur == nil && m.err != nil:
		return fmt.Errorf("no endpoints: %w", m.err)
	case p.cur == nil:
		return nil
	case m.err != nil && p.cur.Deleted().IsZero():
		return m.err
	}
	return errors.Join(m.ambient, p.cur.rare().note, emptiness(p.cur.Assignment()))
}

var (
	errNoLocalities = errors.New("the assignment has no localities")
	errNoEndpoints  = errors.New("the localities of the assignment have no endpoints")
)

// emptiness says why an assignment has no endpoints (VIEW-26).
func emptiness(a *endpointv3.ClusterLoadAssignment) error {
	if len(a.GetEndpoints()) == 0 {
		return errNoLocalities
	}
	for _, l := range a.GetEndpoints() {
		if len(endpointsOf(l)) > 0 {
			return nil
		}
	}
	return errNoEndpoints
}

func endpointsOf(l *endpointv3.LocalityLbEndpoints) []*endpointv3.LbEndpoint {
	//lint:ignore SA1019 servers may still send it
	if list := l.GetLoadBalancerEndpoints(); list != nil {
		return list.GetLbEndpoints()
	}
	return l.GetLbEndpoints()
}

// collect uses a new assignment when its collections (LEDS) are there.
func (c *core) collect(p *endpointsPart, e *Endpoints) { // VIEW-40
	var all []*resourcePart
	starved := false
	by := c.watchOf(p).feed
	for i, l := range e.Message.GetEndpoints() {
		config := l.GetLedsClusterLocalityConfig()
		if config.GetLedsCollectionName() == "" {
			continue
		}
		if all == nil {
			all = make([]*resourcePart, len(e.Message.GetEndpoints()))
		}
		all[i] = c.resource(c.feedOf(leds.Type, config.GetLedsConfig(), true, by), config.GetLedsCollectionName())
		starved = starved || all[i] == nil
	}
	c.useCollections(all, p, 1)
	c.dropNext(p)
	if all == nil && p.rare().leds == nil {
		p.cur = e
		return
	}
	p.own().next, p.more.to = e, all
	if starved {
		c.starve(p, func() {
			e := *p.newest()
			c.collect(p, &e)
			p.changed(c)
		})
	}
	c.fillEndpoints(p)
}

func (c *core) useCollections(all []*resourcePart, p *endpointsPart, by int) {
	for _, l := range all {
		if l == nil {
			continue
		}
		if l.assigned == nil {
			l.assigned = map[*endpointsPart]int{}
		}
		l.users += by
		l.blocking += by
		if l.assigned[p] += by; l.assigned[p] == 0 {
			delete(l.assigned, p)
		}
		c.enqueue(l)
	}
}

// fillEndpoints fills the collections in: in the newest assignment when all of them are there,
// else in the one that it is to replace.
func (c *core) fillEndpoints(p *endpointsPart) {
	m := p.own()
	if m.next != nil && !slices.ContainsFunc(m.to, func(l *resourcePart) bool { return l != nil && !c.answered(l.state) }) {
		c.useCollections(m.leds, p, -1)
		p.cur, m.leds, m.next, m.to, m.err = m.next, m.to, nil, nil, nil
	}
	if p.cur == nil || m.leds == nil {
		return
	}
	e := *p.cur
	full := proto.CloneOf(e.Message)
	var notes []error
	for i, l := range e.Message.GetEndpoints() {
		if l.GetLedsClusterLocalityConfig().GetLedsCollectionName() == "" {
			continue
		}
		full.Endpoints[i].LbEndpoints, full.Endpoints[i].LbConfig = nil, nil
		if part := m.leds[i]; part != nil {
			full.Endpoints[i].LbEndpoints = membersOf[*endpointv3.LbEndpoint](part)
			if !slices.Contains(notes, part.err) { // two localities may name one collection
				notes = append(notes, part.err)
			}
		} else {
			notes = append(notes, tooMany(c.config.maxNames))
		}
	}
	if old := e.rare().filled; old != nil && protoequal.Equal(old, full) {
		full = old
	}
	e.more = e.changed(func(m *endpointsMore) { m.filled, m.note = full, errors.Join(notes...) })
	p.cur = &e
}
