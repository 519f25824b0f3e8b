package view

import (
	"maps"
	"slices"
)

// search looks for a cluster that waits for an answer, among some and all that these lead to. It begins where it
// ended the last time, so that it costs little to ask again.
type search struct {
	on *clusterPart // what was found; nil for nothing
	at int          // which of the first led to it
}

// looked is what searches have found since the clusters last changed. Each cluster is looked at once, however many lead
// to it, and whatever it leads back to (Tarjan's algorithm for strongly connected components).
type looked struct {
	order map[*clusterPart]int          // in which clusters were come upon, from 1; quiet if they lead to none that waits
	on    map[*clusterPart]*clusterPart // one that waits, of those that lead to one
	open  []*clusterPart                // not known yet: each leads back to one whose visit goes on
}

const quiet = 0

// visit looks at what a cluster leads to, or at the first ones.
type visit struct {
	*search
	of     *clusterPart // nil for the first ones
	n      int
	member func(i int) *clusterPart // nil if there is none
	begun  int                      // with which member it began
	done   int
	order  int
	back   int // the earliest in order that it leads back to
	open   int // where it stands in looked.open
}

// search finds a cluster that waits for an answer, of n first ones and all that these lead to; nil if none does.
func (c *core) search(s *search, n int, first func(i int) *clusterPart) (on *clusterPart) {
	l := &c.due.looked
	path := []visit{{search: s, n: n, member: first, begun: s.at}}
	for on == nil && len(path) > 0 {
		v := &path[len(path)-1]
		switch {
		case v.done == 0 && v.on != nil && c.waits(v.on):
			on = v.on
		case v.done == v.n:
			*v.search = search{}
			if v.of != nil && v.back == v.order {
				for _, p := range l.open[v.open:] {
					l.order[p] = quiet
				}
				l.open = l.open[:v.open]
			}
			if path = path[:len(path)-1]; len(path) > 0 {
				above := &path[len(path)-1]
				above.back = min(above.back, v.back)
			}
		default:
			v.at = (v.begun + v.done) % v.n
			v.done++
			p := v.member(v.at)
			if p == nil {
				continue
			}
			if on = c.waitsBelow(p); on != nil || !c.leads(p) { // as most
				continue
			}
			if order, known := l.order[p]; !known {
				path = append(path, c.visit(p))
			} else if order != quiet {
				v.back = min(v.back, order)
			}
		}
	}
	for _, v := range path {
		v.on = on
	}
	for _, p := range l.open { // if there are any, something was found, and each leads to it
		delete(l.order, p)
		l.on[p] = on
	}
	l.open = nil
	return on
}

// waitsBelow is a cluster itself if it waits, or one that it is known to lead to.
func (c *core) waitsBelow(p *clusterPart) *clusterPart {
	if c.waits(p) {
		return p
	}
	if on := c.due.looked.on[p]; on != nil && c.waits(on) {
		return on
	}
	return nil
}

// visit begins to look at what a cluster leads to.
func (c *core) visit(p *clusterPart) visit {
	l := &c.due.looked
	if l.order == nil {
		l.order, l.on = map[*clusterPart]int{}, map[*clusterPart]*clusterPart{}
	}
	s := &search{}
	if p.cur.Message == nil && p.warm != nil {
		s = &p.warm.search
	}
	order := len(l.order) + 1
	l.order[p] = order
	l.open = append(l.open, p)
	names := p.awaits()
	return visit{s, p, len(names), c.named(names), s.at, 0, order, order, len(l.open) - 1}
}

// named are the clusters of names; those are nil for which there is no room, or that are too deep.
func (c *core) named(names []string) func(i int) *clusterPart {
	return func(i int) *clusterPart { return c.clusters[names[i]] }
}

// waits says whether a cluster has no answer yet.
func (c *core) waits(p *clusterPart) bool {
	switch {
	case c.clusters[p.name] != p:
		return false
	case p.cur.Message != nil:
		return c.lost(p)
	case p.warm != nil:
		return !c.readyItself(p, p.warm)
	}
	return !c.failed(p)
}

// lost says whether the server removed something that a cluster needs before a snapshot had the cluster, and
// that is not believed yet.
func (c *core) lost(p *clusterPart) bool {
	m := p.rare()
	return p.eds != nil && p.eds.inDoubt() || m.list != nil && m.list.state == stateDoubt ||
		slices.ContainsFunc(m.needs, func(n need) bool { return n.Need != Optional && n.part.state == stateDoubt })
}

// awaits are the clusters below one that has an answer which are waited for.
func (p *clusterPart) awaits() []string {
	switch {
	case p.cur.Message != nil:
		return p.awaited()
	case p.warm != nil:
		return p.warm.awaited()
	}
	return nil
}

// await notes what a target waits for; nil is nothing.
func (c *core) await(p *clusterPart, t *target, on *clusterPart) {
	if t.on != nil {
		if delete(c.links.waiters[t.on], p); len(c.links.waiters[t.on]) == 0 {
			delete(c.links.waiters, t.on)
		}
	}
	if t.on = on; on == nil {
		return
	}
	if c.links.waiters[on] == nil {
		c.links.waiters[on] = map[*clusterPart]bool{}
	}
	c.links.waiters[on][p] = true
}

// wake has the targets looked at that waited for a cluster, if it has an answer now.
func (c *core) wake(p *clusterPart) {
	if len(c.links.waiters[p]) > 0 && !c.waits(p) {
		for _, w := range slices.SortedFunc(maps.Keys(c.links.waiters[p]), byName) {
			c.touch(w)
		}
	}
}
