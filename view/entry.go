package view

import (
	"cmp"
	"errors"
	"slices"
)

// render makes the entry of a cluster.
func (c *core) render(p *clusterPart) {
	m := p.rare()
	e := *p.cur
	e.refs = p.named()
	if p.holds > 0 {
		e.refs |= refHold
	}
	if m.by.hook {
		e.refs |= refHint
	}
	more := clusterMore{parents: m.by.aggregates, deleted: m.deleted}
	switch {
	case e.Message == nil && c.failed(p):
		e.status, more.err = StatusError, m.err
	case e.Message == nil:
		e.status, more.note = StatusWaiting, m.err
	default:
		e.status = StatusOK
		more.leaves = m.leaves
		if more.err = c.spoiled(p, &e); more.err != nil {
			e.status, more.leaves = StatusError, nil
		}
		more.note = c.noteOf(p)
	}
	switch {
	case e.Message == nil:
		e.Endpoints = nil
	case e.kind == KindEDS:
		e.Endpoints = p.eds.cur
	case e.kind != KindStatic && e.kind != KindDNS:
		e.Endpoints = nil
	case e.Endpoints == nil || e.Endpoints.Message != e.Message.GetLoadAssignment() || e.Endpoints.Origin != e.Origin:
		e.Endpoints = &Endpoints{Origin: e.Origin, Message: e.Message.GetLoadAssignment()}
	}
	e.more = nil
	if !more.empty() {
		e.more = &more
	}
	c.replace(p, &e)
}

// failed says whether a cluster without a message is in error. One that was shown as good or in error is in error
// until there is something better.
func (c *core) failed(p *clusterPart) bool {
	return p.state != stateHeld && c.answeredFor(p, p.state) ||
		p.state != stateDoubt && p.inTree && p.blocks() && p.cur.status != StatusWaiting
}

func (m *clusterMore) empty() bool {
	return m.err == nil && m.note == nil && m.deleted.IsZero() && m.leaves == nil && m.parents == nil
}

// spoiled is the error of a cluster that has a message; nil mostly.
func (c *core) spoiled(p *clusterPart, e *Cluster) error {
	m := p.rare()
	if m.list != nil && len(m.children) == 0 {
		err := cmp.Or(m.list.listErr(), errNoMember) // the new ones have no answer yet
		return c.fault(cdsKind.TypeURL(), p.name, e.Origin, err)
	}
	if m.leafErr != nil {
		return m.leafErr
	}
	for _, n := range m.needs {
		if err := n.err(); err != nil {
			return err
		}
	}
	return nil
}

func (c *core) noteOf(p *clusterPart) error {
	m := p.rare()
	switch {
	case p.eds != nil:
		return join(m.ambient, m.read, p.eds.note())
	case m.list != nil && m.list.message != nil:
		return join(m.ambient, m.read, m.list.err, m.list.ambient)
	}
	return join(m.ambient, m.read)
}

// join is errors.Join, which allocates also where there is nothing to join.
func join(errs ...error) error {
	if slices.IndexFunc(errs, func(err error) bool { return err != nil }) < 0 {
		return nil
	}
	return errors.Join(errs...)
}

// replace puts an entry in the place of the one before it, and notes how much it differs.
func (c *core) replace(p *clusterPart, e *Cluster) {
	old := p.cur
	p.cur = e
	if (old.status == StatusWaiting) != (e.status == StatusWaiting) {
		c.due.stirred = true
	}
	if p == c.rootCluster && (old.status != e.status || e.status == StatusError) {
		c.due.stirred = true
	}
	if !p.inTree {
		return
	}
	if c.out.clusters.Set(p.name, e); e.status != StatusWaiting {
		c.out.news.add(slotKey{false, p.name})
	}
	switch {
	case !e.same(old):
		c.loudEntry(p, old, e)
	case e.refs != old.refs || e.Origin != old.Origin || !slices.Equal(e.rare().parents, old.rare().parents) || e.Endpoints != old.Endpoints:
		c.out.differs(changeQuiet)
	}
}

// loud has a change published, if it is of a published cluster.
func (c *core) loud(p *clusterPart) {
	if p.inTree {
		c.out.differs(changeLoud)
	}
}

// loudEntry is loud, unless it is only of attributes of endpoints, which may be merged.
func (c *core) loudEntry(p *clusterPart, old, e *Cluster) {
	if c.config.merge > 0 && onlyAttributes(old, e) {
		if c.out.merging.clusters == nil {
			c.out.merging.clusters = map[*clusterPart]bool{}
		}
		c.out.merging.clusters[p] = true
		c.out.differs(changeAttributes)
		return
	}
	c.loud(p)
}
