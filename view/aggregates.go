package view

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"

	"github.com/xdswatch/xdswatch/client"
)

// maxDepth is how many levels of aggregates may stand below a root cluster (gRFC A37).
const maxDepth = 16

// maxMembers bounds the time and the memory that the leaves of all aggregates cost: how many members
// are looked at for them, each once for every aggregate that leads to it. A few messages can name
// each other in more ways than there is memory for.
const maxMembers = 1_000_000

// reach says how a cluster is reached through aggregates.
type reach uint8

const (
	reachTree  reach = 1 << iota // by members of the entries in the snapshot
	reachWant                    // by those of targets and of the shape in making too
	reachBlock                   // from one that a snapshot waits for
)

var (
	errNoLeaf  = errors.New("the members of the aggregate cluster lead to no cluster with endpoints")
	errTooDeep = fmt.Errorf("the members of the aggregate cluster are more than %d levels deep", maxDepth)
	errTooWide = fmt.Errorf("the aggregate clusters of the view lead to more than %d members, counted for each of them", maxMembers)
)

// below are the clusters that an entry leads to: the members of an aggregate, and what hooks found.
func (p *clusterPart) below() []string {
	return append(slices.Clip(p.rare().children), p.rare().named.texts(Optional)...)
}

// belowAll are those of the target too.
func (p *clusterPart) belowAll() []string {
	if p.warm == nil {
		return p.below()
	}
	return append(append(p.below(), p.warm.children()...), p.warm.named.texts(Optional)...)
}

// belowAwaited are those of them that are waited for.
func (p *clusterPart) belowAwaited() []string {
	if p.warm == nil {
		return p.awaited()
	}
	return append(p.awaited(), p.warm.awaited()...)
}

// awaited are those of the entry alone.
func (p *clusterPart) awaited() []string {
	return append(slices.Clip(p.rare().children), p.rare().named.texts(Required)...)
}

func (t *target) awaited() []string {
	return append(slices.Clip(t.children()), t.named.texts(Required)...)
}

// texts are the names that are needed so much.
func (ns names) texts(least Need) (all []string) {
	for _, n := range ns {
		if least == Optional || n.refs&static != 0 {
			all = append(all, n.name)
		}
	}
	return all
}

func (t *target) children() []string {
	if t.list != nil {
		return t.list.listed()
	}
	return t.read.children
}

// listed are the children that a resource lists (draft gRFC A99).
func (p *resourcePart) listed() []string {
	list, _ := p.message.(*aggregatev3.ClusterConfig)
	return list.GetClusters()
}

// listErr is why a list of members cannot be used.
func (p *resourcePart) listErr() error {
	list, ok := p.message.(*aggregatev3.ClusterConfig)
	if !ok {
		return cmp.Or(p.err, client.ErrDoesNotExist)
	}
	_, err := childrenOf(list)
	return err
}

// relist has a cluster use what a resource that it needs names now: the new members of an aggregate, or
// what hooks found; when that is there.
func (c *core) relist(p *clusterPart, by *resourcePart, found bool) {
	switch {
	case p.warm != nil && found:
		c.bind(p, p.warm.message, p.warm.origin)
	case p.warm != nil || p.cur.Message == nil:
	case found, p.rare().list == by && !slices.Equal(p.rare().children, by.listed()):
		c.bind(p, p.cur.Message, p.cur.Origin)
	}
}

// groups are the clusters that lead to others, and those that they lead to.
type groups struct {
	all     map[*clusterPart]bool    // that lead to others: aggregates, and those in which hooks found clusters
	members map[*clusterPart]reach   // that they lead to
	named   map[*clusterPart]*namers // by those in snapshots
	stale   bool                     // they are to be followed anew
}

// namers are the clusters that name a cluster.
type namers struct {
	aggregates []string
	hook       bool // a hook found it in another
}

// of is called when something about a cluster changed: it matters if the cluster leads to others.
func (g *groups) of(p *clusterPart) { g.stale = g.stale || g.all[p] }

func (g *groups) forget(p *clusterPart) {
	delete(g.all, p)
	delete(g.members, p)
	delete(g.named, p)
}

// group follows all aggregates: who is reached, and in which order leaves come. Aggregates are
// few, so they are followed as a whole whenever one of them changed.
func (c *core) group() {
	c.groups.stale = false
	for p := range c.groups.all {
		if c.clusters[p.name] != p || !p.leads() && (p.warm == nil || !p.warm.leads()) {
			delete(c.groups.all, p)
		}
	}
	inTree := c.walkDown((*clusterPart).below, func(p *clusterPart) bool { return p.base != 0 || p.holds > 0 }, false)
	blocking := c.walkDown((*clusterPart).belowAwaited, func(p *clusterPart) bool { return (p.base|p.cand)&static != 0 }, true)
	wanted := c.walkDown((*clusterPart).belowAll, func(p *clusterPart) bool { return p.base|p.cand != 0 || p.holds > 0 }, true)
	now := map[*clusterPart]reach{}
	for p := range inTree {
		now[p] |= reachTree
	}
	for p := range wanted {
		now[p] |= reachWant
	}
	for p := range blocking {
		now[p] |= reachBlock
	}
	for p := range c.groups.members {
		if now[p] == 0 {
			c.setReach(p, 0)
		}
	}
	for p, r := range now {
		c.setReach(p, r)
	}
	c.groups.members = now
	c.setNamers(inTree)
	c.setLeaves()
}

func (c *core) setReach(p *clusterPart, r reach) {
	if p.reached != r {
		p.reached = r
		c.waitingChanged = true
		c.place(p)
	}
}

// walkDown finds the members of aggregates, level by level; make has those that are not yet watched
// be watched.
func (c *core) walkDown(children func(*clusterPart) []string, root func(*clusterPart) bool, make bool) map[*clusterPart]bool {
	found := map[*clusterPart]bool{}
	seen := map[*clusterPart]bool{}
	var level []*clusterPart
	for p := range c.groups.all {
		if root(p) {
			level = append(level, p)
			seen[p] = true
		}
	}
	slices.SortFunc(level, byName)
	for depth := 0; depth < maxDepth && len(level) > 0; depth++ {
		var next []*clusterPart
		for _, p := range level {
			for _, name := range children(p) {
				child := c.clusters[name]
				if child == nil && make {
					if child = c.cluster(name); child == nil {
						c.starveShape()
					}
				}
				if child == nil {
					continue
				}
				found[child] = true
				if !seen[child] {
					seen[child] = true
					next = append(next, child)
				}
			}
		}
		level = next
	}
	return found
}

func byName(a, b *clusterPart) int { return strings.Compare(a.name, b.name) }

// setNamers notes which clusters name a cluster.
func (c *core) setNamers(inTree map[*clusterPart]bool) {
	now := map[*clusterPart]*namers{}
	of := func(name string) *namers {
		child := c.clusters[name]
		if child == nil || !inTree[child] {
			return &namers{}
		}
		if now[child] == nil {
			now[child] = &namers{}
		}
		return now[child]
	}
	for _, p := range slices.SortedFunc(maps.Keys(c.groups.all), byName) {
		if !p.inTree {
			continue
		}
		for _, n := range p.rare().named {
			of(n.name).hook = true
		}
		for _, name := range p.rare().children {
			// The same name twice comes one after the other, since aggregates are looked at one by one.
			if by := of(name); len(by.aggregates) == 0 || by.aggregates[len(by.aggregates)-1] != p.name {
				by.aggregates = append(by.aggregates, p.name)
			}
		}
	}
	for p := range c.groups.named {
		if now[p] == nil && p.more != nil {
			p.more.by = namers{}
			c.touch(p)
		}
	}
	for p, by := range now {
		if was := p.rare().by; was.hook != by.hook || !slices.Equal(was.aggregates, by.aggregates) {
			p.own().by = *by
			c.touch(p)
		}
	}
	c.groups.named = now
}

// setLeaves finds the leaves of each aggregate in use, by name until maxMembers are used up.
func (c *core) setLeaves() {
	budget := maxMembers
	for _, p := range slices.SortedFunc(maps.Keys(c.groups.all), byName) {
		if p.cur.kind != KindAggregate || p.cur.Message == nil {
			continue
		}
		leaves, err := c.leavesOf(p, &budget)
		if err != nil {
			err = c.fault(cdsKind.TypeURL(), p.name, p.cur.Origin, err)
		}
		m := p.own()
		if !slices.Equal(m.leaves, leaves) || !sameError(m.leafErr, err) {
			m.leaves, m.leafErr = leaves, err
			c.touch(p)
		}
	}
	for p := range c.groups.all {
		if p.warm != nil {
			c.touch(p)
		}
	}
}

// VIEW-31, VIEW-37: leavesOf are the leaves below an aggregate, depth first, each at its first
// place. They are found for each aggregate anew, so none is lost that another had first.
func (c *core) leavesOf(root *clusterPart, budget *int) (leaves []string, err error) {
	if c.deeper(root, budget) { // VIEW-30
		return nil, errTooDeep
	}
	seen := map[string]bool{root.name: true}
	var down func(p *clusterPart)
	down = func(p *clusterPart) {
		for _, name := range p.rare().children {
			if *budget--; *budget < 0 {
				return
			}
			if seen[name] { // VIEW-32
				continue
			}
			seen[name] = true
			child := c.clusters[name]
			if child != nil && child.cur.Message != nil && child.cur.kind == KindAggregate {
				down(child)
				continue
			}
			leaves = append(leaves, name) // VIEW-33: also one that is missing or refused
		}
	}
	down(root)
	switch {
	case *budget < 0:
		return nil, errTooWide
	case len(leaves) == 0:
		return nil, errNoLeaf
	}
	return leaves, nil
}

// deeper says whether there are aggregates, or members of them, below the last level that is
// allowed.
func (c *core) deeper(root *clusterPart, budget *int) bool {
	seen := map[string]bool{root.name: true}
	level := []*clusterPart{root}
	for depth := 0; len(level) > 0; depth++ {
		var next []*clusterPart
		for _, p := range level {
			for _, name := range p.rare().children {
				if *budget--; *budget < 0 {
					return false
				}
				if seen[name] {
					continue
				}
				if depth == maxDepth {
					return true
				}
				seen[name] = true
				if child := c.clusters[name]; child != nil {
					next = append(next, child)
				}
			}
		}
		level = next
	}
	return false
}

// membersReady says whether clusters, and everything below them, have an answer, but for those that were seen.
func (c *core) membersReady(names []string, seen map[string]bool) bool {
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		var below []string
		switch child := c.clusters[name]; {
		case child == nil && c.groups.stale: // it is not yet looked for
			return false
		case child == nil:
		case child.cur.Message != nil:
			below = child.awaited()
		case child.warm != nil && c.readyItself(child.warm):
			below = child.warm.awaited()
		case child.warm != nil || !c.answered(child.state):
			return false
		}
		if !c.membersReady(below, seen) {
			return false
		}
	}
	return true
}
