package view

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

// Waiting is a resource that is waited for.
type Waiting struct {
	Type  string // URL
	Name  string
	Since time.Time
	// Reason says why: that there was no answer yet, or what went wrong; and who names it.
	Reason string
	// Blocking says that it holds back the next snapshot, or a part of it. What is only held or
	// mirrored does not.
	Blocking bool
}

// wait is what a core waits for.
type wait struct {
	open    map[anyPart]time.Time // since when; nil if there are none
	targets int                   // of clusters
	changed bool                  // since the last step
}

// waiting lists what is waited for: that which blocks first, by type and name.
func (c *core) waiting() []Waiting {
	return c.listWaiting(maps.Keys(c.wait.open), maps.Values(c.clusters))
}

// waitingFor lists what one cluster waits for, or one host name whose virtual host is on demand, and
// all if that is nothing. A program asks for many of them, each of which may end in vain.
func (c *core) waitingFor(key slotKey) []Waiting {
	open, clusters := map[anyPart]bool{}, map[*clusterPart]bool{}
	add := func(p anyPart) {
		if _, waits := c.wait.open[p]; waits {
			open[p] = true
		}
	}
	var follow func(name string)
	follow = func(name string) {
		p := c.clusters[name]
		if p == nil || clusters[p] {
			return
		}
		clusters[p] = true
		add(p)
		t := p.warm
		if t == nil {
			return
		}
		if t.eds != nil {
			add(t.eds)
			for _, l := range t.eds.rare().to {
				if l != nil {
					add(l)
				}
			}
		}
		if t.list != nil {
			add(t.list)
		}
		for _, n := range t.needs {
			add(n.part)
		}
		for _, child := range t.awaited() {
			follow(child)
		}
	}
	if c.rootPart != nil {
		add(c.rootPart)
	}
	if key.host {
		c.followHost(key.name, add, follow)
	} else {
		follow(key.name)
	}
	if all := c.listWaiting(maps.Keys(open), maps.Keys(clusters)); len(all) > 0 {
		return all
	}
	return c.waiting()
}

// followHost follows what is asked for a host name.
func (c *core) followHost(host string, add func(anyPart), follow func(cluster string)) {
	for _, v := range c.vhds.live {
		if p := v.subscribed[host]; p != nil {
			add(p)
		}
		if h := v.given[byHost+host]; h != nil {
			for _, n := range h.names {
				follow(n.name)
			}
		}
	}
}

func (c *core) listWaiting(open iter.Seq[anyPart], clusters iter.Seq[*clusterPart]) (all []Waiting) {
	namings := c.namings()
	for p := range open {
		w := c.watchOf(p)
		all = append(all, Waiting{
			Type: w.typeURL(), Name: w.name, Since: c.wait.open[p],
			Reason: namings.reason(p), Blocking: c.blocks(p),
		})
	}
	for p := range clusters {
		if t := p.warm; t != nil && c.now.Before(t.fresh) {
			all = append(all, Waiting{
				Type: edsKind.TypeURL(), Name: t.eds.name, Since: t.since, Blocking: c.blocks(p),
				Reason: fmt.Sprintf("the transport socket of cluster %q changed, so its endpoints have to be sent anew", p.name),
			})
		}
	}
	slices.SortFunc(all, func(a, b Waiting) int {
		if a.Blocking != b.Blocking {
			if a.Blocking {
				return -1
			}
			return 1
		}
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	return all
}

// blocks says whether a snapshot waits for a part.
func (c *core) blocks(p anyPart) bool {
	switch p := p.(type) {
	case *clusterPart:
		return p.blocks()
	case *endpointsPart:
		for u := range p.usedBy() {
			if c.blocks(u) {
				return true
			}
		}
	case *resourcePart:
		if p == c.rootPart || p.blocking > 0 && p.ofShape() {
			return true
		}
		for u := range p.clusters {
			if p.blocking > 0 && c.blocks(u) {
				return true
			}
		}
		for a := range p.assigned {
			if c.blocks(a) {
				return true
			}
		}
	}
	return false
}

func (all *namings) reason(p anyPart) string {
	text := "no answer yet"
	if err := errOf(p); err != nil {
		text = err.Error()
	}
	if by := all.referrers(p); len(by) > 0 {
		text += "; named by " + by[0].text()
		if len(by) > 1 {
			text += fmt.Sprintf(" and %d more", len(by)-1)
		}
	}
	return text
}

func errOf(p anyPart) error { return cmp.Or(p.faultsOf().err, p.faultsOf().ambient) }
