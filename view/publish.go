package view

import (
	"slices"
	"time"

	"github.com/tidwall/btree"

	"github.com/xdswatch/xdswatch/internal/protoequal"
)

// change is how much the newest snapshot differs from the last.
type change uint8

const (
	changeNone       change = iota
	changeQuiet             // in what no program is told of
	changeAttributes        // in attributes of endpoints
	changeLoud
)

// merging are changes of attributes that wait (WARM-j).
type merging struct {
	until    time.Time // zero if none waits
	clusters map[*clusterPart]bool
}

// outcome is what the next snapshot is made of, and how much it differs from the newest.
type outcome struct {
	clusters  *btree.Map[string, *Cluster]
	resources *btree.Map[string, *Resource]
	touched   map[string]bool // keys of resources that may differ
	moved     map[string]bool // names of clusters that came or went
	change    change
	merging   merging
	news      news
}

// news are what callers may wait for: clusters that are known, host names that were answered.
type news struct {
	of    map[slotKey]bool
	hosts bool // any host name
}

func (n *news) add(key slotKey) {
	if n.of == nil {
		n.of = map[slotKey]bool{}
	}
	n.of[key] = true
}

// degree of the trees of snapshots: a change copies a few nodes of so many pairs.
const degree = 16

func newOutcome() outcome {
	return outcome{
		clusters: btree.NewMap[string, *Cluster](degree), resources: btree.NewMap[string, *Resource](degree), touched: map[string]bool{},
		moved: map[string]bool{},
	}
}

func (o *outcome) differs(by change) { o.change = max(o.change, by) }

// any says whether a step may make a snapshot.
func (o *outcome) any() bool {
	return o.change != changeNone || len(o.touched)+len(o.moved) > 0
}

// publish makes a snapshot of what changed, and returns it if programs are to be told.
func (c *core) publish() (tell *Snapshot, n news) {
	if c.shown == nil && c.rootErr == nil { // VIEW-20
		return nil, news{}
	}
	c.compareMoved()
	c.compareResources()
	c.compareVHDS()
	complete := len(c.wait.open) == 0 && c.wait.targets == 0 && (c.next == nil || c.rootErr != nil)
	if c.snapshot != nil && c.snapshot.Complete != complete {
		c.out.differs(changeQuiet)
	}
	switch c.out.change {
	case changeNone:
		return nil, news{}
	case changeAttributes: // WARM-j
		if c.out.merging.until.IsZero() {
			c.out.merging.until = c.now.Add(c.config.merge)
			c.alarm(c.config.merge, func() {})
		}
		if c.now.Before(c.out.merging.until) {
			return nil, news{}
		}
		c.out.change = c.mergedChange()
	case changeQuiet, changeLoud:
	}
	s := &Snapshot{Root: c.root, Err: c.rootErr, Complete: complete, Serial: 1, NodeID: c.config.node()}
	if c.snapshot != nil {
		s.Serial = c.snapshot.Serial
		if c.out.change == changeLoud {
			s.Serial++
		}
	}
	if c.shown != nil {
		c.renewVHDS()
		s.Listener, s.Routes, s.VirtualHost, s.Scopes = c.shown.listener, c.shown.routes, c.shown.host, c.shown.scopes
	}
	s.clusters, s.resources = c.out.clusters.Copy(), c.out.resources.Copy()
	if c.out.change == changeLoud {
		tell = s
	}
	n = c.out.news
	c.snapshot, c.out.change, c.out.merging, c.out.news = s, changeNone, merging{}, news{}
	clear(c.vhds.changed)
	return tell, n
}

// mergedChange is what the merged changes amount to: nothing that a program can tell, if the
// attributes are those of the published snapshot again (VIEW-4).
func (c *core) mergedChange() change {
	for p := range c.out.merging.clusters {
		was := c.snapshot.Cluster(p.name)
		if was == nil || !onlyAttributes(was, p.cur) || !protoequal.Equal(was.Endpoints.Assignment(), p.cur.Endpoints.Assignment()) {
			return changeLoud
		}
	}
	return changeQuiet
}

// setResource changes the snapshots to come; nil takes a resource out.
func (c *core) setResource(key string, e *Resource) {
	if e == nil {
		c.out.resources.Delete(key)
	} else {
		c.out.resources.Set(key, e)
	}
	c.out.touched[key] = true
}

// compareMoved says how much the clusters that came or went differ from those of the newest snapshot (VIEW-4).
func (c *core) compareMoved() {
	for name := range c.out.moved {
		delete(c.out.moved, name)
		now, _ := c.out.clusters.Get(name)
		if was := c.snapshot.Cluster(name); now != was && (now == nil || was == nil || !now.same(was)) {
			c.out.differs(changeLoud)
		}
	}
}

// compareResources says how much the resources differ from those of the newest snapshot (VIEW-4).
func (c *core) compareResources() {
	for key := range c.out.touched {
		delete(c.out.touched, key)
		e, _ := c.out.resources.Get(key)
		var old *Resource
		if c.snapshot != nil {
			old, _ = c.snapshot.resources.Get(key)
		}
		if e.same(old) {
			c.out.differs(changeQuiet)
		} else {
			c.out.differs(changeLoud)
		}
	}
}

// onlyAttributes says whether two entries differ in nothing but the weights, the health and the
// metadata of their endpoints and localities (WARM-j).
func onlyAttributes(a, b *Cluster) bool {
	if a.Endpoints == nil || b.Endpoints == nil || a.Endpoints.same(b.Endpoints) {
		return false
	}
	swapped := *b
	swapped.Endpoints = a.Endpoints
	if !swapped.same(a) || !a.Endpoints.Deleted().Equal(b.Endpoints.Deleted()) {
		return false
	}
	x, y := a.Endpoints.Assignment(), b.Endpoints.Assignment()
	return protoequal.Equal(x.GetPolicy(), y.GetPolicy()) && len(x.GetNamedEndpoints())+len(y.GetNamedEndpoints()) == 0 &&
		slices.EqualFunc(x.GetEndpoints(), y.GetEndpoints(), sameButAttributes)
}

func sameButAttributes(a, b locality) bool {
	return a.GetPriority() == b.GetPriority() && protoequal.Equal(a.GetLocality(), b.GetLocality()) && protoequal.Equal(a.GetProximity(), b.GetProximity()) &&
		protoequal.Equal(a.GetLedsClusterLocalityConfig(), b.GetLedsClusterLocalityConfig()) &&
		slices.EqualFunc(endpointsOf(a), endpointsOf(b), func(x, y endpoint) bool {
			return x.GetEndpointName() == y.GetEndpointName() && protoequal.Equal(x.GetEndpoint(), y.GetEndpoint())
		})
}
