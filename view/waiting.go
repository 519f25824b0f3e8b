package view

import (
	"cmp"
	"fmt"
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

// waiting lists what is waited for: that which blocks first, by type and name.
func (c *core) waiting() []Waiting {
	all := make([]Waiting, 0, len(c.open))
	var namings *namings
	if len(c.open) > 0 {
		namings = c.namings()
	}
	for p, since := range c.open {
		w := c.watchOf(p)
		all = append(all, Waiting{
			Type: w.typeURL(), Name: w.name, Since: since,
			Reason: namings.reason(p), Blocking: c.blocks(p),
		})
	}
	for _, p := range c.clusters {
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
		if p.user != nil && c.blocks(p.user) {
			return true
		}
		for u := range p.rare().users {
			if c.blocks(u) {
				return true
			}
		}
	case *resourcePart:
		if p == c.rootPart || p.blocking > 0 && p.users > len(p.clusters)+len(p.assigned) {
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

func errOf(p anyPart) error {
	switch p := p.(type) {
	case *clusterPart:
		return cmp.Or(p.rare().err, p.rare().ambient)
	case *endpointsPart:
		return cmp.Or(p.rare().err, p.rare().ambient)
	case *resourcePart:
		return cmp.Or(p.err, p.ambient)
	}
	return nil
}
