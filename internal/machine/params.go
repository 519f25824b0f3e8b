package machine

import (
	"slices"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// withParams gives the node of a new stream the parameters that were changed.
func (m *Machine) withParams(s *stream, node []byte) []byte {
	if s.NoParams {
		return node
	}
	// NODE-5: a new stream has the changed parameters.
	for _, p := range m.params {
		node, _ = wire.SetNodeParams(node, p.TypeURL, p.Values)
	}
	return node
}

// changeParams changes parameters of the node. Each server whose node changes is owed a request of the type.
func (m *Machine) changeParams(ev ParamsChanged) {
	if i := slices.IndexFunc(m.params, func(p ParamsChanged) bool { return p.TypeURL == ev.TypeURL }); i >= 0 {
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
		// NODE-5: the next request of the type has the node again.
		if s.owedNode != nil {
			s.owedNode[ev.TypeURL] = true
			m.agenda.touch(s)
		}
	}
}

// owesNode says that the server was not told the changed parameters of the node yet.
// NODE-5: a request has them as soon as the pace of the type's requests allows.
func (l *link) owesNode() bool { return l.stream.owedNode[l.cache.typ.URL] && l.wanted() }

// chose says whether a variant of a resource is the one that is subscribed to: the parameters of its name match its
// constraints (xRFC TP2). Other variants are passed over. The subscription may be nil.
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
