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

// maxMembers bounds the time and the memory that the leaves of all aggregates cost: how many members
// are looked at for them, each once for every aggregate that leads to it. A few messages can name
// each other in more ways than there is memory for.
const maxMembers = 1_000_000

var (
	errNoLeaf  = errors.New("the members of the aggregate cluster lead to no cluster with endpoints")
	errTooDeep = fmt.Errorf("the members of the aggregate cluster are more than %d levels deep", maxDepth)
	errTooWide = fmt.Errorf("the aggregate clusters of the view lead to more than %d members, counted for each of them", maxMembers)
)

// awaited are the clusters that an entry leads to and that are waited for: the members of an aggregate, and what
// hooks found.
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

// aggregate says whether a cluster is an aggregate in use.
func (p *clusterPart) aggregate() bool { return p.cur.Message != nil && p.cur.kind == KindAggregate }

// leaves are what is kept of the leaves of all aggregates.
type leaves struct {
	stale map[*clusterPart]bool // aggregates whose leaves are to be found anew
	wide  map[*clusterPart]bool // those that maxMembers left too little for
	spent int                   // of maxMembers
}

// setLeaves finds the leaves of the aggregates whose own, or below which some, have changed, by name, until maxMembers
// are used up. Those for which too little was left try again after them, when there is some: none takes what another
// has.
func (c *core) setLeaves() {
	l := &c.links.leaves
	for {
		if len(l.stale) == 0 && l.spent < maxMembers {
			maps.Copy(l.stale, l.wide)
			clear(l.wide)
		}
		if len(l.stale) == 0 {
			return
		}
		for _, p := range slices.SortedFunc(maps.Keys(l.stale), byName) {
			c.setLeavesOf(p)
		}
	}
}

func (c *core) setLeavesOf(p *clusterPart) {
	c.dropLeaves(p)
	if !p.aggregate() {
		return
	}
	room := maxMembers - c.links.leaves.spent
	budget := room
	found, err := c.leavesOf(p, &budget)
	m := p.own()
	m.spent = room - max(budget, 0) // all that there was, if it is too little
	c.links.leaves.spent += m.spent
	if err == errTooWide {
		c.links.leaves.wide[p] = true
	}
	if err != nil {
		err = c.fault(cdsKind.TypeURL(), p.name, p.cur.Origin, err)
	}
	if !slices.Equal(m.leaves, found) || !sameError(m.leafErr, err) {
		m.leaves, m.leafErr = found, err
		c.touch(p)
	}
}

// dropLeaves gives back what the leaves of an aggregate have cost.
func (c *core) dropLeaves(p *clusterPart) {
	delete(c.links.leaves.stale, p)
	delete(c.links.leaves.wide, p)
	if m := p.more; m != nil {
		c.links.leaves.spent -= m.spent
		m.spent = 0
	}
}

func byName(a, b *clusterPart) int { return strings.Compare(a.name, b.name) }

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
			if child != nil && child.aggregate() {
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
