package view

import "fmt"

// need is a resource that a hook found.
type need struct {
	part *resourcePart
	Need
	deep error // it names more, which stands too deep to be followed; nil mostly
}

// err is why the resource makes an error of what leads to it; nil if it does not.
func (n need) err() error {
	switch {
	case n.Need != Essential:
		return nil
	case n.deep != nil:
		return n.deep
	case n.part.message == nil:
		return n.part.err
	}
	return nil
}

// maxExtensions is how deep extension configurations may name others (draft gRFC A104).
const maxExtensions = 8

// needsOf follows what hooks found in a message, and what that names, which is needed no more than what
// names it. It also finds the clusters that they name, and what there was no room for. It goes level by level, so
// that what is named in several places counts where it is least deep.
func (c *core) needsOf(all []Dependency, by *feed, most Need) (needs []need, clusters names, cramped []Dependency) {
	type named struct {
		all  []Dependency
		by   *feed
		most Need
	}
	known := map[*resourcePart]Need{}
	level := []named{{all, by, most}}
	for depth := 0; len(level) > 0; depth++ {
		var next []named
		for _, l := range level {
			for _, d := range l.all {
				d.Need = min(d.Need, l.most)
				p := c.resource(c.feedOf(d.Type, d.Source, false, l.by), d.Name)
				if p == nil {
					cramped = append(cramped, d)
					continue
				}
				if before, ok := known[p]; ok && before >= d.Need {
					continue
				}
				known[p] = d.Need
				n, f := need{part: p, Need: d.Need}, c.found(p)
				switch {
				case depth < maxExtensions:
					clusters = append(clusters, f.clusters.needed(d.Need)...)
					next = append(next, named{f.needs, p.feed, d.Need})
				case len(f.needs)+len(f.clusters) > 0:
					n.deep = c.fault(p.feed.kind.TypeURL(), p.name, p.origin, fmt.Errorf("what it names is more than %d levels deep", maxExtensions))
				}
				needs = append(needs, n)
			}
		}
		level = next
	}
	return needs, clusters, cramped
}

// found is what hooks find in the message of a resource.
func (c *core) found(p *resourcePart) *findings {
	if f, ok := p.read.(*findings); ok {
		return f
	}
	f := &findings{}
	if p.message != nil {
		*f = c.hooks.walk(p.message)
	}
	p.read = f
	return f
}

// needed is names that a snapshot waits for unless that is too much.
func (ns names) needed(most Need) names {
	if most == Optional {
		ns = append(names(nil), ns...)
		ns.hint()
	}
	return ns
}
