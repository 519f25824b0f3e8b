package view

import (
	"iter"
	"maps"
	"slices"
)

// search looks for a cluster that waits for an answer, among some and all that these lead to. It goes on where it
// ended the last time, and looks at all once more at the end, so that it costs little to ask again.
type search struct {
	begun bool
	todo  []*clusterPart
	seen  map[*clusterPart]bool // of those that lead to others
}

// waiting is a cluster that waits for an answer; nil if none does.
func (s *search) waiting(c *core, first iter.Seq[*clusterPart]) *clusterPart {
	for again := true; again; {
		if again = s.begun; !again {
			s.begun = true
			s.add(c, first)
		}
		for len(s.todo) > 0 {
			p := s.todo[len(s.todo)-1]
			if c.waits(p) {
				return p
			}
			s.todo = s.todo[:len(s.todo)-1]
			if !c.leads(p) || s.seen[p] {
				continue
			}
			if s.seen == nil {
				s.seen = map[*clusterPart]bool{}
			}
			s.seen[p] = true
			s.add(c, c.parts(p.awaits()))
		}
		*s = search{}
	}
	return nil
}

func (s *search) add(c *core, all iter.Seq[*clusterPart]) {
	for p := range all {
		if !s.seen[p] && (c.leads(p) || c.waits(p)) { // most are neither
			s.todo = append(s.todo, p)
		}
	}
}

// waits says whether a cluster has no answer yet.
func (c *core) waits(p *clusterPart) bool {
	switch {
	case c.clusters[p.name] != p || p.cur.Message != nil:
		return false
	case p.warm != nil:
		return !c.readyItself(p.warm)
	}
	return !c.failed(p)
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

// parts are the clusters of names; those are left out for which there is no room, or that are too deep.
func (c *core) parts(names []string) iter.Seq[*clusterPart] {
	return func(yield func(*clusterPart) bool) {
		for _, name := range names {
			if p := c.clusters[name]; p != nil && !yield(p) {
				return
			}
		}
	}
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
