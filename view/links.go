package view

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// maxDepth is how many levels of aggregates may stand below a root cluster (gRFC A37).
const maxDepth = 16

// reach says how a cluster is reached through others: by aggregates, or because a hook found it in one.
type reach uint8

const (
	reachTree  reach = 1 << iota // by members of the entries in the snapshot
	reachWant                    // by those of targets and of the shape in making too
	reachBlock                   // from one that a snapshot waits for
)

var ways = [...]reach{reachTree, reachWant, reachBlock}

// links are the clusters that lead to others, and those that they lead to.
type links struct {
	nodes    map[string]*node // by the name of the cluster
	stale    map[string]bool  // clusters that may lead to others than before
	queue    []*node          // that may be reached otherwise than before
	roomless map[string]bool  // names for which there was no room
	leaves   leaves
	waiters  map[*clusterPart]map[*clusterPart]bool // whose targets wait for a cluster
}

func newLinks() links {
	return links{
		nodes: map[string]*node{}, stale: map[string]bool{}, roomless: map[string]bool{}, waiters: map[*clusterPart]map[*clusterPart]bool{},
		leaves: leaves{stale: map[*clusterPart]bool{}, wide: map[*clusterPart]bool{}},
	}
}

// node is a cluster that leads to others, or that others lead to.
type node struct {
	name   string
	by     []*link // by name
	to     []*link
	root   reach            // how it is reached without others
	far    [len(ways)]uint8 // levels below the nearest root, by ways; over maxDepth if it is not reached
	queued bool
	seen   bool // by this run of follow

	aggregate bool     // in use
	children  []string // of it, as its leaves and those of the aggregates above were found
}

// link is from a cluster to one that it names.
type link struct {
	from, to *node
	terms
}

// terms are how a cluster names another.
type terms struct {
	ways            reach // that lead over the link; 0 if it is no link any more
	aggregate, hook bool  // how the entry names it
}

// namers are the clusters in the snapshot that name a cluster.
type namers struct {
	aggregates []string
	hook       bool // a hook found it in another
}

// pending says whether there is something to follow anew.
func (l *links) pending() bool { return len(l.stale)+len(l.queue)+len(l.leaves.stale) > 0 }

func (l *links) node(name string) *node {
	n := l.nodes[name]
	if n == nil {
		n = &node{name: name, far: [...]uint8{maxDepth + 1, maxDepth + 1, maxDepth + 1}}
		l.nodes[name] = n
		l.enqueue(n)
	}
	return n
}

func (l *links) enqueue(n *node) {
	if !n.queued {
		n.queued = true
		l.queue = append(l.queue, n)
	}
}

// rooted is called when a cluster may be reached without others, or not any more.
func (l *links) rooted(p *clusterPart) {
	if n := l.nodes[p.name]; n != nil && n.root != p.root() {
		l.enqueue(n)
	}
}

// root is how a cluster is reached without others.
func (p *clusterPart) root() (r reach) {
	if p.named() != 0 || p.holds > 0 {
		r |= reachTree | reachWant
	}
	if p.cand != 0 || p.rare().hosted.all > 0 {
		r |= reachWant
	}
	if (p.base|p.cand)&static != 0 {
		r |= reachBlock
	}
	return r
}

// lone says that a cluster leads to none, and none to it.
func (n *node) lone() bool { return len(n.by)+len(n.to) == 0 }

// find looks for the link from a cluster.
func (n *node) find(from *node) (int, bool) {
	return slices.BinarySearchFunc(n.by, from.name, func(l *link, name string) int { return strings.Compare(l.from.name, name) })
}

// add links a cluster to one that it names; more than once is once.
func (l *links) add(from *node, name string, ways reach) *link {
	to := l.node(name)
	i, ok := to.find(from)
	if !ok {
		to.by = slices.Insert(to.by, i, &link{from: from, to: to})
		l.enqueue(to)
	}
	by := to.by[i]
	if by.ways == 0 {
		from.to = append(from.to, by)
	}
	by.ways |= ways
	return by
}

// relink finds what a cluster leads to now, and says whether some of what was waited for is not any more. Those
// that it names as before are not looked at: many may name them.
func (c *core) relink(n *node) (lost bool) {
	l, old := &c.links, n.to
	was := make([]terms, len(old))
	for i, o := range old {
		was[i], o.terms = o.terms, terms{}
	}
	n.to = nil
	if p := c.clusters[n.name]; p != nil {
		for _, child := range p.rare().children {
			l.add(n, child, reachTree|reachWant|reachBlock).aggregate = true
		}
		for _, found := range p.rare().named {
			l.add(n, found.name, reachTree|found.ways()).hook = true
		}
		if p.warm != nil {
			for _, child := range p.warm.children() {
				l.add(n, child, reachWant|reachBlock)
			}
			for _, found := range p.warm.named {
				l.add(n, found.name, found.ways())
			}
		}
	}
	for i, o := range old {
		if o.ways == 0 {
			at, _ := o.to.find(n)
			o.to.by = slices.Delete(o.to.by, at, at+1)
		}
		if o.terms != was[i] {
			l.enqueue(o.to)
		}
		lost = lost || was[i].ways&^o.ways&reachBlock != 0
	}
	if n.lone() {
		l.enqueue(n)
	}
	return lost
}

// ways are those that lead to a cluster that a hook found.
func (n name) ways() reach {
	if n.refs&static != 0 {
		return reachWant | reachBlock
	}
	return reachWant
}

// link follows the links that have changed: who is reached, which aggregates have other leaves, and who has lost some
// of what it waited for, and looks anew for what it waits for. It costs what
// changed: the links of some clusters, the clusters below that are nearer to a root now or farther from it, and
// the aggregates above.
func (c *core) link() {
	l := &c.links
	var other, lossy []*node
	for _, name := range slices.Sorted(maps.Keys(l.stale)) {
		n := l.node(name)
		lost := c.relink(n)
		var children []string
		p := c.clusters[name]
		aggregate := p != nil && p.aggregate()
		if aggregate {
			children = p.rare().children
		}
		if lost || aggregate != n.aggregate || !slices.Equal(children, n.children) {
			n.aggregate, n.children = aggregate, children
			other = append(other, n)
		}
		if lost {
			lossy = append(lossy, n)
		}
	}
	clear(l.stale)
	for n := range above(other) {
		if p := c.clusters[n.name]; p != nil && p.aggregate() {
			l.leaves.stale[p] = true
		}
	}
	for n := range above(lossy) {
		if p := c.clusters[n.name]; p != nil && p.warm != nil {
			p.warm.search = search{}
			c.touch(p)
		}
	}
	if len(lossy) > 0 && c.next != nil {
		c.next.search = search{}
	}
	c.follow()
	c.setLeaves()
}

// above are clusters, and all that lead to them.
func above(some []*node) iter.Seq[*node] {
	return func(yield func(*node) bool) {
		seen := map[*node]bool{}
		for _, n := range some {
			seen[n] = true
		}
		for i := 0; i < len(some); i++ {
			if !yield(some[i]) {
				return
			}
			for _, by := range some[i].by {
				if !seen[by.from] {
					seen[by.from] = true
					some = append(some, by.from)
				}
			}
		}
	}
}

// follow finds how far clusters are below the roots, and has those that are reached be watched. Clusters that
// name each other without a root get farther from it with each turn, until they are too far.
func (c *core) follow() {
	l := &c.links
	var seen []*node
	for i := 0; i < len(l.queue); i++ {
		n := l.queue[i]
		n.queued = false
		if !n.seen {
			n.seen = true
			seen = append(seen, n)
		}
		var root reach
		if p := c.clusters[n.name]; p != nil {
			root = p.root()
		}
		if far := n.measure(); far != n.far || root != n.root {
			n.far, n.root = far, root
			for _, to := range n.to {
				l.enqueue(to.to)
			}
		}
	}
	l.queue = nil
	for _, n := range seen {
		n.seen = false
		c.reached(n)
		if n.lone() && !n.aggregate && !n.queued {
			delete(l.nodes, n.name)
			delete(l.roomless, n.name)
		}
	}
}

// measure is how far a cluster is below the nearest root, by those that lead to it.
func (n *node) measure() (far [len(ways)]uint8) {
	for i, way := range ways {
		far[i] = maxDepth + 1
		for _, by := range n.by {
			switch from := by.from; {
			case by.ways&way == 0:
			case from.root&way != 0:
				far[i] = 1
			default:
				far[i] = min(far[i], from.far[i]+1)
			}
			if far[i] == 1 {
				break
			}
		}
	}
	return far
}

// reached has a cluster be in snapshots, watched and waited for as far as others lead to it.
func (c *core) reached(n *node) {
	var r reach
	for i, way := range ways {
		if n.far[i] <= maxDepth {
			r |= way
		}
	}
	p := c.clusters[n.name]
	if p == nil && r&reachWant != 0 {
		if p = c.cluster(n.name); p == nil {
			c.links.roomless[n.name] = true
			c.starveShape()
		}
	}
	if p == nil {
		return
	}
	if p.reached != r {
		awaited := p.blocks()
		p.reached = r
		c.wait.changed = true
		c.place(p)
		c.comesAwaited(p, awaited)
	}
	if by, was := n.namers(), p.rare().by; by.hook != was.hook || !slices.Equal(by.aggregates, was.aggregates) {
		p.own().by = by
		c.touch(p)
	}
}

// namers are the clusters in the snapshot that name this one.
func (n *node) namers() (all namers) {
	for _, by := range n.by {
		if from := by.from; from.root&reachTree == 0 && from.far[0] > maxDepth {
			continue
		}
		all.hook = all.hook || by.hook
		if by.aggregate {
			all.aggregates = append(all.aggregates, by.from.name)
		}
	}
	return all
}
