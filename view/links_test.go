package view

import "slices"

// checkLinks sees that what is followed step by step is what following everything at once finds: which clusters are
// reached, and that nothing waits that has all that it waits for.
func (d *driver) checkLinks() {
	c := d.core
	for way, links := range map[reach]func(p *clusterPart) []string{
		reachTree: func(p *clusterPart) []string {
			return append(slices.Clone(p.rare().children), p.rare().named.texts(Optional)...)
		},
		reachWant: func(p *clusterPart) []string {
			all := append(slices.Clone(p.rare().children), p.rare().named.texts(Optional)...)
			if p.warm != nil {
				all = append(append(all, p.warm.children()...), p.warm.named.texts(Optional)...)
			}
			return all
		},
		reachBlock: func(p *clusterPart) []string {
			all := slices.Clone(p.awaited())
			if p.warm != nil {
				all = append(all, p.warm.awaited()...)
			}
			return all
		},
	} {
		found := c.reachedBy(way, links)
		for name, p := range c.clusters {
			if got := p.reached&way != 0; got != found[name] {
				d.t.Errorf("%s is reached (%d): %t, want %t", name, way, got, found[name])
			}
		}
	}
	for name, p := range c.clusters {
		if t := p.warm; t != nil && c.readyItself(p, t) {
			if waits := c.waitingBelow(t.awaited()); len(waits) == 0 {
				d.t.Errorf("%s has a form that is ready and not used", name)
			} else if t.leads() && !waits[t.on] {
				d.t.Errorf("%s does not wait for what it leads to", name)
			}
		}
	}
	if s := c.next; s != nil && !s.open && s.err == nil {
		var names []string
		for _, n := range s.names {
			if n.refs&static != 0 {
				names = append(names, n.name)
			}
		}
		if len(c.waitingBelow(names)) == 0 {
			d.t.Error("there are routes that are ready and not used")
		}
	}
}

// waitingBelow are the clusters that wait for an answer, of those of names and all that they lead to.
func (c *core) waitingBelow(names []string) map[*clusterPart]bool {
	waits, seen := map[*clusterPart]bool{}, map[*clusterPart]bool{}
	for len(names) > 0 {
		p := c.clusters[names[0]]
		if names = names[1:]; p == nil || seen[p] {
			continue
		}
		if seen[p] = true; c.waits(p) {
			waits[p] = true
		}
		names = append(slices.Clip(names), p.awaits()...)
	}
	return waits
}

// reachedBy walks from the roots, level by level.
func (c *core) reachedBy(way reach, links func(p *clusterPart) []string) map[string]bool {
	found, seen := map[string]bool{}, map[string]bool{}
	var level []string
	for name, p := range c.clusters {
		if p.root()&way != 0 {
			level = append(level, name)
			seen[name] = true
		}
	}
	for depth := 0; depth < maxDepth && len(level) > 0; depth++ {
		var next []string
		for _, name := range level {
			p := c.clusters[name]
			if p == nil {
				continue
			}
			for _, child := range links(p) {
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
