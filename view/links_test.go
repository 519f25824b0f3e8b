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
		if t := p.warm; t != nil && c.readyItself(t) && new(search).waiting(c, c.parts(t.awaited())) == nil {
			d.t.Errorf("%s has a form that is ready and not used", name)
		}
	}
	if s := c.next; s != nil && !s.open && s.err == nil && new(search).waiting(c, s.awaited()) == nil {
		d.t.Error("there are routes that are ready and not used")
	}
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
