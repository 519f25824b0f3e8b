package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Reference is a resource that names another.
type Reference struct {
	Type, Name string
	Blocking   bool // a snapshot waits for what it names
}

func (r Reference) text() string {
	return fmt.Sprintf("%s %q", r.Type[strings.LastIndexByte(r.Type, '.')+1:], r.Name)
}

// namings are what resources name, collected once, when it is needed, to look for who names many parts.
type namings struct {
	core  *core
	reads []naming
	needs map[string][]Reference // who names a resource that a hook found, by resourceKey
}

// naming is what one of the resources names of which the published shape, or the one in making, is made.
type naming struct {
	typeURL, name string
	names         names
}

func (c *core) namings() *namings { return &namings{core: c} }

// referrers are the resources that name a part, in the snapshot or in one to come, in order.
func (all *namings) referrers(p anyPart) (by []Reference) {
	add := func(typeURL, name string, blocking bool) { by = append(by, Reference{typeURL, name, blocking}) }
	switch p := p.(type) {
	case *clusterPart:
		if p.named()|p.cand == 0 && p.reached == 0 { // it is only held
			return nil
		}
		all.collect()
		for _, r := range all.reads {
			if i, ok := r.names.find(p.name); ok {
				add(r.typeURL, r.name, r.names[i].refs&static != 0)
			}
		}
		if n := all.core.links.nodes[p.name]; n != nil {
			for _, l := range n.by {
				add(cdsKind.TypeURL(), l.from.name, l.ways&reachBlock != 0)
			}
		}
	case *endpointsPart:
		for u := range p.usedBy() {
			add(cdsKind.TypeURL(), u.name, true)
		}
	case *resourcePart:
		all.ofResource(p, add)
	}
	slices.SortFunc(by, func(a, b Reference) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	return slices.CompactFunc(by, func(a, b Reference) bool { return a.Type == b.Type && a.Name == b.Name })
}

func (all *namings) ofResource(p *resourcePart, add func(typeURL, name string, blocking bool)) {
	all.collect()
	root := all.core.rootPart
	if p != root && (p.feed.kind == rdsKind || p.feed.kind == srdsKind || p.feed.kind == vhdsKind) && root != nil {
		add(root.feed.kind.TypeURL(), root.name, true)
	}
	for _, r := range all.needs[resourceKey(p.feed.kind.TypeURL(), p.name)] {
		add(r.Type, r.Name, r.Blocking)
	}
	for u := range p.clusters {
		add(cdsKind.TypeURL(), u.name, p.blocking > 0)
	}
	for a := range p.assigned {
		add(edsKind.TypeURL(), a.name, true)
	}
}

// collect finds what each resource of the shapes names. Inline routes are the listener's.
func (all *namings) collect() {
	if all.needs != nil {
		return
	}
	all.needs = map[string][]Reference{}
	c := all.core
	add := func(p *resourcePart, ns names, needs []Dependency) {
		url := p.feed.kind.TypeURL()
		all.reads = append(all.reads, naming{url, p.name, ns})
		for _, d := range needs {
			key := resourceKey(d.Type.TypeURL(), d.Name)
			all.needs[key] = append(all.needs[key], Reference{url, p.name, d.Need != Optional})
		}
	}
	if root := c.rootPart; root != nil {
		if read, ok := root.read.(*listenerRead); ok {
			ns := slices.Clone(read.names)
			needs := slices.Clone(read.needs)
			for _, ref := range read.routes {
				if ref.read != nil {
					ns, needs = append(ns, ref.read.names...), append(needs, ref.read.needs...)
				}
			}
			ns.compact()
			add(root, ns, needs)
		}
	}
	seen := map[*resourcePart]bool{}
	for _, s := range []*shape{c.shown, c.next} {
		if s == nil {
			continue
		}
		for _, p := range s.parts {
			if p != nil && !seen[p] {
				seen[p] = true
				if read, ok := p.read.(*routesRead); ok {
					add(p, read.names, read.needs)
				}
			}
		}
		needs := slices.Clip(s.needs)
		for v := range s.vhds() {
			v.found.Scan(func(_ string, h *virtualHost) bool {
				needs = append(needs, h.parts...)
				return true
			})
		}
		for _, n := range needs {
			if p := n.part; p.message != nil && c.hookable(p) && !seen[p] {
				seen[p] = true
				found := c.found(p)
				add(p, found.clusters, found.needs)
			}
		}
	}
}

// find looks a name up in sorted names.
func (ns names) find(n string) (int, bool) {
	return slices.BinarySearchFunc(ns, n, func(a name, b string) int { return strings.Compare(a.name, b) })
}

// Watched is a resource that a view watches.
type Watched struct {
	Type, Name string
	// Status is the newest news of the resource, whether or not a snapshot has it yet.
	Status  Status
	Version string
	Err     error // of StatusError; or what is wrong otherwise
	// By are the resources that name it; empty for the root and for what is only held.
	By []Reference
	// Holds is how often it is held, by [View.Hold] and [View.Cluster].
	Holds int
}

// watched lists all parts, by type and name.
func (c *core) watched() (all []Watched) {
	namings := c.namings()
	add := func(p anyPart, o Origin) {
		h := p.head()
		w := Watched{
			Type: c.watchOf(p).typeURL(), Name: h.name, Status: h.state.status(), Version: o.Version,
			Err: errOf(p), By: namings.referrers(p),
		}
		if cp, ok := p.(*clusterPart); ok {
			w.Holds = int(cp.holds)
		}
		all = append(all, w)
	}
	for _, p := range c.clusters {
		o := p.cur.Origin
		if p.warm != nil {
			o = p.warm.origin
		}
		add(p, o)
	}
	for _, f := range c.feeds {
		for _, p := range f.endpoints {
			var o Origin
			if e := p.newest(); e != nil {
				o = e.Origin
			}
			add(p, o)
		}
		for _, p := range f.resources {
			add(p, p.origin)
		}
	}
	slices.SortFunc(all, func(a, b Watched) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	return all
}
