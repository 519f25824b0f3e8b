package machine

import (
	"slices"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// describe gives the node of a new stream the parameters that were changed.
func (m *Machine) describe(s *stream, node []byte) []byte {
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
		if s.node = node; s.nodeSent {
			if s.owedNode == nil {
				s.owedNode = map[string]bool{}
			}
			s.owedNode[ev.TypeURL] = true
			m.agenda.touch(s)
		}
	}
}

// owesNode says that the server has to hear of changed parameters.
func (ts *typeState) owesNode() bool { return ts.stream.owedNode[ts.typ.URL] && ts.wanted() }

// constraints of an entry of the response; nil for none.
func (resp *response) constraints(i int) []byte {
	if n := resp.Resources[i].Variant; n > 0 {
		return resp.Constraints[n-1]
	}
	return nil
}

// chose says whether a variant of a resource is the one that is asked for: its constraints
// fulfil the parameters of its name (xRFC TP2). Others are nobody's. The entry may be nil.
func (ts *typeState) chose(e *entry, canonical string, constraints []byte) bool {
	switch {
	case constraints == nil:
		return true
	case e != nil:
		return ts.params(e.of).Match(constraints)
	}
	c := ts.home(canonical)
	return c == nil || ts.params(c).Match(constraints)
}

// retire counts as removed what the response says so of by name and constraints: but not
// variants of others, nor those in whose place it holds another, which is an update
// (xRFC TP2, "Unconstrained parameters").
func (resp *response) retire() {
	if len(resp.RemovedNames) == 0 {
		return
	}
	ts := resp.ts
	spoken := map[*entry]bool{}
	for i := range resp.Resources {
		if name, _ := ts.nameOf(&resp.Resources[i]); name != nil {
			if e := ts.askedAs(name); e != nil && ts.chose(e, e.name, resp.constraints(i)) {
				spoken[e] = true
			}
		}
	}
	for _, n := range resp.RemovedNames {
		if e := ts.askedAs(n.Name); e != nil && !spoken[e] && ts.chose(e, e.name, n.Constraints) {
			spoken[e] = true
			resp.Removed = append(resp.Removed, n.Name)
		}
	}
}

// askedAs finds the entry of a name, or one that was asked for by an alias of it; nil if
// there is none.
func (ts *typeState) askedAs(name []byte) *entry {
	e, _ := ts.lookup(name)
	if n := ts.aliases.of[string(name)]; e == nil && n != nil {
		e = n.keys[0]
	}
	return e
}
