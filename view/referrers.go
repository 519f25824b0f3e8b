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

// referrers are the resources that name a part, in the snapshot or in one to come, in order.
func (c *core) referrers(p anyPart) (by []Reference) {
	add := func(typeURL, name string, blocking bool) { by = append(by, Reference{typeURL, name, blocking}) }
	switch p := p.(type) {
	case *clusterPart:
		c.eachRead(func(typeURL, of string, ns names, _ []Dependency) {
			if i, ok := ns.find(p.name); ok {
				add(typeURL, of, ns[i].refs&static != 0)
			}
		})
		for a := range c.aggregates {
			if slices.Contains(a.childrenWanted(), p.name) {
				add(cdsKind.TypeURL(), a.name, true)
			}
		}
	case *endpointsPart:
		if p.user != nil {
			add(cdsKind.TypeURL(), p.user.name, true)
		}
		for u := range p.rare().users {
			add(cdsKind.TypeURL(), u.name, true)
		}
	case *resourcePart:
		c.resourceReferrers(p, add)
	}
	slices.SortFunc(by, func(a, b Reference) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	return slices.CompactFunc(by, func(a, b Reference) bool { return a.Type == b.Type && a.Name == b.Name })
}

func (c *core) resourceReferrers(p *resourcePart, add func(typeURL, name string, blocking bool)) {
	if p != c.rootPart && (p.feed.kind == rdsKind || p.feed.kind == srdsKind || p.feed.kind == vhdsKind) && c.rootPart != nil {
		add(c.rootPart.feed.kind.TypeURL(), c.rootPart.name, true)
	}
	c.eachRead(func(typeURL, of string, _ names, needs []Dependency) {
		for _, d := range needs {
			if d.Type == p.feed.kind && d.Name == p.name {
				add(typeURL, of, d.Need != Optional)
			}
		}
	})
	for u := range p.clusters {
		add(cdsKind.TypeURL(), u.name, p.blocking > 0)
	}
	for a := range p.assigned {
		add(edsKind.TypeURL(), a.name, true)
	}
}

// eachRead calls yield with what each resource names of which the published shape, or the one in
// making, is made. Inline routes are the listener's.
func (c *core) eachRead(yield func(typeURL, name string, ns names, needs []Dependency)) {
	root := c.rootPart
	if root != nil {
		if read, ok := root.read.(*listenerRead); ok {
			all := slices.Clone(read.names)
			needs := slices.Clone(read.needs)
			for _, ref := range read.routes {
				if ref.read != nil {
					all, needs = append(all, ref.read.names...), append(needs, ref.read.needs...)
				}
			}
			all.compact()
			yield(root.feed.kind.TypeURL(), root.name, all, needs)
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
					yield(p.feed.kind.TypeURL(), p.name, read.names, read.needs)
				}
			}
		}
		for _, n := range s.needs {
			if p := n.part; p.message != nil && c.hooked(p) && !seen[p] {
				seen[p] = true
				found := c.hooks.walk(p.message)
				yield(p.feed.kind.TypeURL(), p.name, found.clusters, found.needs)
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
	add := func(p anyPart, o Origin) {
		h := p.head()
		w := Watched{
			Type: c.watchOf(p).typeURL(), Name: h.name, Status: h.state.status(), Version: o.Version,
			Err: errOf(p), By: c.referrers(p),
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
