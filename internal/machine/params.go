package machine

import (
	"slices"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// describe gives the node of a new stream the parameters that were changed.
func (m *Machine) describe(s *stream, node []byte) []byte {
	// NODE-5: a new stream has the changed parameters.
	if s.NoParams {
		return node
	}
	for _, p := range m.params {
		node, _ = wire.SetNodeParams(node, p.TypeURL, p.Values)
	}
	return node
}

// described: a request of the type is owed to each server that has another node.
func (m *Machine) described(ev Described) {
	if i := slices.IndexFunc(m.params, func(p Described) bool { return p.TypeURL == ev.TypeURL }); i >= 0 {
		m.params[i] = ev
	} else {
		m.params = append(m.params, ev)
	}
	for _, s := range m.streams {
		if s.state != up || s.NoParams {
			continue
		}
		node, changed := wire.SetNodeParams(s.node, ev.TypeURL, ev.Values)
		if !changed {
			continue
		}
		s.node, m.node = node, node
		if s.nodeSent {
			if s.owedNode == nil {
				s.owedNode = map[string]bool{}
			}
			s.owedNode[ev.TypeURL] = true
			m.agenda.touch(s)
		}
	}
}

// owesNode says that the server has to hear of changed parameters.
// NODE-5: it is told at once.
func (l *link) owesNode() bool { return l.stream.owedNode[l.typ.URL] && l.wanted() }

// constraints of an entry of the response; nil for none.
func (resp *response) constraints(i int) []byte {
	if n := resp.Resources[i].Variant; n > 0 {
		return resp.Constraints[n-1]
	}
	return nil
}

// chose says whether a variant of a resource is the one that is subscribed to: its constraints
// fulfil the parameters of its name (xRFC TP2). Others are nobody's. The subscription may be nil.
func (l *link) chose(sub *subscription, canonical string, constraints []byte) bool {
	switch {
	// DYN-2: a resource without constraints fits all.
	case constraints == nil:
		return true
	case sub != nil:
		return l.params(sub.of).Match(constraints)
	}
	c := l.home(canonical)
	return c == nil || l.params(c).Match(constraints)
}

// retire counts as removed what the response says so of by name and constraints: but not
// variants of others, nor those in whose place it holds another, which is an update
// (xRFC TP2, "Unconstrained parameters").
func (resp *response) retire() {
	if len(resp.RemovedNames) == 0 {
		return
	}
	l := resp.link
	spoken := map[*subscription]bool{}
	for i := range resp.Resources {
		if name, _ := l.nameOf(&resp.Resources[i]); name != nil {
			if sub := l.subscribedAs(name); sub != nil && l.chose(sub, sub.name, resp.constraints(i)) {
				spoken[sub] = true
			}
		}
	}
	for _, n := range resp.RemovedNames {
		// DYN-3: what is replaced is not removed.
		if sub := l.subscribedAs(n.Name); sub != nil && !spoken[sub] && l.chose(sub, sub.name, n.Constraints) {
			spoken[sub] = true
			resp.Removed = append(resp.Removed, n.Name)
		}
	}
}

// subscribedAs finds the subscription of a name, or one that was subscribed to by an alias of it; nil if
// there is none.
func (l *link) subscribedAs(name []byte) *subscription {
	sub, _ := l.lookup(name)
	if n := l.aliases.of[string(name)]; sub == nil && n != nil {
		// DYN-3: who asked by an alias hears of the removal.
		sub = n.keys[0]
	}
	return sub
}
