package view

import (
	"container/heap"
	"slices"
	"strings"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	"github.com/tidwall/btree"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/leds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/resource/srds"
	"github.com/xdswatch/xdswatch/resource/vhds"
)

type (
	locality     = *endpointv3.LocalityLbEndpoints
	endpoint     = *endpointv3.LbEndpoint
	protoMessage = proto.Message
)

// The types that the core knows. aggregateKind is the members of an aggregate as a resource of
// their own (draft gRFC A99).
var (
	cdsKind       resource.AnyType = cds.Type
	edsKind       resource.AnyType = eds.Type
	rdsKind       resource.AnyType = rds.Type
	vhdsKind      resource.AnyType = vhds.Type
	srdsKind      resource.AnyType = srds.Type
	aggregateKind resource.AnyType = resource.Proto[*aggregatev3.ClusterConfig](resource.Options{})
)

// notHooked are types of which the view finds resources itself, by type URL.
var notHooked = map[string]bool{
	lds.Type.TypeURL(): true, rdsKind.TypeURL(): true, edsKind.TypeURL(): true, vhdsKind.TypeURL(): true,
	srdsKind.TypeURL(): true, leds.Type.TypeURL(): true, aggregateKind.TypeURL(): true,
}

// coreConfig is what a core needs of Config.
type coreConfig struct {
	grace, fresh, merge time.Duration
	maxNames            int
	startup             map[string]bool // type URLs whose resources have a source of their own
	node                func() string   // the ID of the newest
}

// due is what a step has to do.
type due struct {
	stale   bool                    // the newest shape is to be built anew
	stirred bool                    // the shape in making may be ready
	dirty   []*clusterPart          // whose entries are to be made anew
	fresh   []anyPart               // new, not yet watched
	queue   []anyPart               // that may be needed no more
	refill  map[*endpointsPart]bool // whose collections changed
	looked  looked                  // of this turn of a step

	// before has the members of collections as they were before this step removed some.
	before map[*resourcePart]*btree.Map[string, *resourceValue]
}

func (d *due) any() bool {
	return d.stale || d.stirred || len(d.dirty)+len(d.fresh)+len(d.queue)+len(d.refill) > 0
}

// core is the view as a function: events go in by take, hold and release; step says what to do. It
// has no goroutine, clock or lock, and is owned by its caller.
type core struct {
	root   Root
	config coreConfig
	hooks  *hooks
	now    time.Time // of the step

	feeds       map[string]*feed // by key
	eds         *feed            // the usual one
	cds         *feed            // what names the resources of clusters
	clusters    map[string]*clusterPart
	quota       quota
	rootPart    *resourcePart
	rootCluster *clusterPart
	servers     map[Server]*Server // shared by origins

	shown   *shape // of the published snapshot; nil if there is none without an error
	next    *shape // in making; nil if shown is the newest
	rootErr error  // instead of shown

	recovered time.Time // when a server could be reached again

	links  links
	vhds   vhdsState
	wait   wait
	due    due
	alarms alarms

	out      outcome
	snapshot *Snapshot // the newest; nil before the first
}

func newCore(root Root, config coreConfig, all []Hook, now time.Time) *core {
	c := &core{
		root: root, config: config, hooks: newHooks(all, root.Host), now: now,
		feeds: map[string]*feed{}, clusters: map[string]*clusterPart{}, servers: map[Server]*Server{},
		links: newLinks(), vhds: newVHDSState(), due: due{stale: true, refill: map[*endpointsPart]bool{}}, out: newOutcome(),
	}
	c.cds = c.feedOf(cdsKind, nil, false, nil)
	c.eds = c.feedOf(edsKind, nil, false, nil)
	c.keepFeed(c.eds)
	switch root.Type {
	case RootListener:
		c.rootPart = c.resource(c.feedOf(lds.Type, nil, false, nil), root.Name)
	case RootRoutes:
		c.rootPart = c.resource(c.feedOf(rds.Type, nil, false, nil), root.Name)
	case RootCluster:
		c.rootCluster = c.cluster(root.Name)
	}
	return c
}

// effects are what a step has to have done, in the order of the fields.
type effects struct {
	watch    []watch   // sorted
	snapshot *Snapshot // to publish; nil for none
	news     news      // of the newest snapshot
	waiting  bool      // what is waited for has changed
	// VIEW-15, MBB-1: sorted; after the snapshot is published.
	unwatch []watch
	ended   []*feed // with a source or a time of their own; nothing is watched of them any more
	again   bool    // a step has to follow: there is room for what found none, or what was forgotten concerns others
}

// take takes an event of a resource, or of a member of a collection.
func (c *core) take(now time.Time, w watch, ev *client.Event[any]) {
	c.now = now
	if ev.Err != nil {
		own := *ev
		own.Err = bare(ev.Err)
		ev = &own
	}
	p := c.partOf(w)
	if p == nil || !p.head().watched {
		return
	}
	if isAway(p) {
		defer func() {
			if !isAway(p) {
				c.recovered = now
			}
		}()
	}
	switch p := p.(type) {
	case *endpointsPart:
		if s, ok := stateOf(ev); s == stateAbsent || s == stateFailed || !ok && refused(ev.Err) {
			c.freshen(p) // WARM-f: an absence and a refusal are answers too
		}
	case *resourcePart:
		if p.feed.collection {
			c.takeMember(p, ev)
			return
		}
	}
	c.takePart(p, ev)
}

// partOf is nil if there is none.
func (c *core) partOf(w watch) anyPart {
	if w.feed == nil {
		if p := c.clusters[w.name]; p != nil {
			return p
		}
	} else if p := w.feed.endpoints[w.name]; p != nil {
		return p
	} else if p := w.feed.resources[w.name]; p != nil {
		return p
	}
	return nil
}

// hold and release count who holds a cluster (VIEW-13). The bound of names is not for it.
func (c *core) hold(now time.Time, name string) {
	c.now = now
	p := c.clusters[name]
	if p == nil {
		p = c.newCluster(name)
	}
	if p.holds++; p.holds == 1 {
		c.place(p)
	}
}

func (c *core) release(now time.Time, name string) {
	c.now = now
	if p := c.clusters[name]; p != nil && p.holds > 0 {
		if p.holds--; p.holds == 0 {
			c.place(p)
		}
	}
}

// step resolves what was taken.
func (c *core) step(now time.Time) effects {
	c.now = now
	c.due.before = nil
	c.ring()
	c.feedStarved()
	for c.due.stale || c.links.pending() || c.due.stirred || len(c.due.dirty)+len(c.due.refill)+len(c.vhds.refollow) > 0 {
		for p := range c.due.refill {
			delete(c.due.refill, p)
			c.fillEndpoints(p)
			p.changed(c)
		}
		c.refollow()
		if c.due.stale {
			c.build()
		}
		if c.links.pending() {
			c.link()
		}
		c.settle()
		if c.due.stirred || c.next != nil {
			c.due.stirred = false
			c.judge()
		}
	}
	c.due.looked = looked{}
	var e effects
	e.unwatch, e.ended = c.sweep()
	e.watch = c.watchFresh()
	e.snapshot, e.news = c.publish()
	e.waiting, c.wait.changed = c.wait.changed, false
	e.again = c.hungry() || len(c.due.dirty) > 0 || c.links.pending()
	return e
}

// owes says whether a step would do anything but look at the clock.
func (c *core) owes() bool {
	return c.due.any() || c.links.pending() || c.out.any() || c.vhds.any() || c.wait.changed
}

// place decides whether a cluster is in snapshots, and whether it is needed.
func (c *core) place(p *clusterPart) {
	in := p.named() != 0 || p.holds > 0 || p.reached&reachTree != 0
	if in != p.inTree {
		p.inTree = in
		if c.snapshot == nil {
			c.out.differs(changeLoud)
		} else {
			c.out.moved[p.name] = true
		}
		if !in {
			c.out.clusters.Delete(p.name) // it enters with its next entry
		}
	}
	c.links.rooted(p)
	c.touch(p)
	c.enqueue(p)
}

// watchFresh are the new parts that are needed still.
func (c *core) watchFresh() (all []watch) {
	for _, p := range c.due.fresh {
		if h := p.head(); !h.watched && c.lives(p) {
			h.watched = true
			all = append(all, c.watchOf(p))
		}
	}
	c.due.fresh = nil
	slices.SortFunc(all, compareWatches)
	return all
}

func (c *core) watchOf(p anyPart) watch {
	f := p.from()
	if _, ok := p.(*endpointsPart); ok && f == nil {
		f = c.eds
	}
	return watch{f, p.head().name}
}

// key of a watch's feed; clusters have none of their own.
func (w watch) key() string {
	if w.feed == nil {
		return cdsKind.TypeURL()
	}
	return w.feed.key
}

func (w watch) typeURL() string {
	if w.feed == nil {
		return cdsKind.TypeURL()
	}
	return w.feed.kind.TypeURL()
}

func compareWatches(a, b watch) int {
	if n := strings.Compare(a.key(), b.key()); n != 0 {
		return n
	}
	return strings.Compare(a.name, b.name)
}

func (c *core) lives(p anyPart) bool { return c.partOf(c.watchOf(p)) == p }

// sweep forgets what is needed no more, and what only that needed.
func (c *core) sweep() (unwatch []watch, ended []*feed) {
	defer func() { c.due.queue = nil }() // it may have been long
	for len(c.due.queue) > 0 {
		p := c.due.queue[len(c.due.queue)-1]
		c.due.queue = c.due.queue[:len(c.due.queue)-1]
		h := p.head()
		if h.queued = false; c.needed(p) || !c.lives(p) {
			continue
		}
		if h.watched {
			unwatch = append(unwatch, c.watchOf(p))
		}
		c.forget(p)
		if f := p.from(); f != nil && c.feeds[f.key] != f {
			ended = append(ended, f)
		}
	}
	slices.SortFunc(unwatch, compareWatches)
	return unwatch, ended
}

func (c *core) needed(p anyPart) bool {
	switch p := p.(type) {
	case *clusterPart:
		return p.named()|p.cand != 0 || p.rare().hosted.all > 0 || p.holds > 0 || p.reached != 0 || p == c.rootCluster
	case *endpointsPart:
		return p.user != nil
	case *resourcePart:
		return p.users > 0 || p == c.rootPart
	}
	return false
}

func (c *core) forget(p anyPart) {
	c.close(p)
	c.quota.count--
	c.quota.freed = c.quota.freed || p.head().watched
	name := p.head().name
	switch p := p.(type) {
	case *clusterPart:
		p.drop(c, stateAbsent)
		delete(c.clusters, name)
		c.wake(p)
	case *endpointsPart:
		p.drop(c, stateAbsent)
		f := c.watchOf(p).feed
		delete(f.endpoints, name)
		c.endFeed(f)
	case *resourcePart:
		delete(p.feed.resources, name)
		c.endFeed(p.feed)
		if p.entry != nil {
			c.setResource(p.key(), nil)
		}
	}
}

// alarm is something to do at a time. What it does looks first whether it is still due.
type alarm struct {
	at time.Time
	do func()
}

type alarms []alarm

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a alarms) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *alarms) Push(x any)        { *a = append(*a, x.(alarm)) }
func (a *alarms) Pop() any {
	last := (*a)[len(*a)-1]
	(*a)[len(*a)-1] = alarm{}
	*a = (*a)[:len(*a)-1]
	return last
}

// alarm has something done after a while; 0 is never.
func (c *core) alarm(after time.Duration, do func()) {
	if after > 0 {
		heap.Push(&c.alarms, alarm{c.now.Add(after), do})
	}
}

func (c *core) ring() {
	for len(c.alarms) > 0 && !c.now.Before(c.alarms[0].at) {
		heap.Pop(&c.alarms).(alarm).do()
	}
}

// deadline is when step must run although nothing happened; zero if never.
func (c *core) deadline() time.Time {
	if len(c.alarms) == 0 {
		return time.Time{}
	}
	return c.alarms[0].at
}
