package view

// need is a resource that a hook found.
type need struct {
	part *resourcePart
	Need
}

// maxExtensions is how deep extension configurations may name others (draft gRFC A104).
const maxExtensions = 8

// needsOf follows what hooks found in a message, and what that names, which is needed no more than what
// names it. It also finds the clusters that they name; full says that there was no room for all.
func (c *core) needsOf(all []Dependency, by *feed, most Need) (needs []need, clusters names, full bool) {
	known := map[*resourcePart]Need{}
	var follow func(all []Dependency, by *feed, most Need, depth int)
	follow = func(all []Dependency, by *feed, most Need, depth int) {
		for _, d := range all {
			d.Need = min(d.Need, most)
			p := c.resource(c.feedOf(d.Type, d.Source, false, by), d.Name)
			if p == nil {
				full = true
				continue
			}
			if before, ok := known[p]; ok && before >= d.Need {
				continue
			}
			known[p] = d.Need
			needs = append(needs, need{p, d.Need})
			if depth == maxExtensions {
				continue
			}
			f := c.found(p)
			clusters = append(clusters, f.clusters.needed(d.Need)...)
			follow(f.needs, p.feed, d.Need, depth+1)
		}
	}
	follow(all, by, most, 0)
	return needs, clusters, full
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
