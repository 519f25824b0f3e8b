package machine

import (
	"slices"
	"time"
)

// recallAfter is how long a server may be silent about a type until the store is asked.
const recallAfter = time.Second

// failed says that no server of the source can be reached.
func (src *source) failed() bool {
	return !slices.ContainsFunc(src.streams, func(s *stream) bool { return !s.unreachable() })
}

// heardServer says whether a server has spoken of the type on the present incarnation of its stream.
func (r *recall) heardServer() bool {
	return slices.ContainsFunc(r.source.reached(), func(s *stream) bool {
		l := s.types[r.cache.typ.URL]
		return l != nil && l.firstResponse != 0
	})
}

// askStore has the store asked for what is watched and not known, at once if no server can be reached, or
// after a second without an answer.
func (m *Machine) askStore(now time.Time, sub *subscription) {
	if !sub.stored() || !sub.lacking() {
		return
	}
	// LKG-9: every server's attempt has failed, or a second has passed.
	switch r := sub.of.cache.recallOf(sub.of.source); {
	case r.source.failed():
		m.seekStored(r, sub)
	case r.timer == 0 && !r.heardServer():
		m.setAlarm(now, r.source.streams[0], r, recallAfter)
	}
}

// ring asks for all that is lacking, if no server has answered.
func (r *recall) ring(m *Machine, _ time.Time) {
	// LKG-8: only while nothing answered.
	if !r.heardServer() {
		m.seekLacking(r)
	}
}

// recallFailed asks the store for what is lacking at sources whose last server has failed.
func (m *Machine) recallFailed(s *stream) {
	for _, src := range s.sources {
		if src.Stored && src.watches > 0 && src.failed() {
			for _, c := range src.caches {
				if c.typ.Stored {
					m.seekLacking(c.recallOf(src))
				}
			}
		}
	}
}

func (m *Machine) seekLacking(r *recall) {
	if star := r.cache.star; star.source == r.source {
		m.seekStored(r, star.self)
	}
	for sub := range r.cache.of(r.source) {
		m.seekStored(r, sub)
	}
}

// seekStored has the store asked for a subscription that is lacking, by one load of what the step looks for.
func (m *Machine) seekStored(r *recall, sub *subscription) {
	if !sub.lacking() || r.under[sub] != nil {
		return
	}
	i := slices.IndexFunc(m.fx.Load, func(ld *Load) bool { return ld.recall == r })
	if i < 0 {
		i = len(m.fx.Load)
		m.fx.Load = append(m.fx.Load, &Load{
			Source: r.source.index, TypeURL: r.cache.typ.URL, recall: r, complete: map[string]*Kept{},
		})
	}
	ld := m.fx.Load[i]
	r.under[sub] = ld
	ld.subs = append(ld.subs, sub)
	ld.Names = append(ld.Names, sub.name)
	ld.All = ld.All || sub.isCollection()
}
