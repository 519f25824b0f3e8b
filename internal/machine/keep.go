package machine

import "time"

// store has the store keep what was accepted.
func (m *Machine) store(sub *subscription, expires time.Time) {
	// LKG-1: what is accepted, and only that.
	if sub.stored() && sub.held() {
		// LKG-2: the source stands for authority and parameters.
		m.fx.Keep = append(m.fx.Keep, Kept{
			Source: sub.of.source.index, TypeURL: sub.of.cache.typ.URL, Name: sub.name, Raw: sub.raw, Version: sub.version,
			Server: sub.server(), Updated: time.Unix(0, sub.updated), Expires: expires, Locator: sub.locator,
			Attributes: sub.attributes(),
		})
	}
}

// unstore has the store forget what a server says is gone.
func (m *Machine) unstore(sub *subscription) {
	// LKG-5: explicit absence removes.
	if sub.stored() {
		m.fx.Keep = append(m.fx.Keep, Kept{Source: sub.of.source.index, TypeURL: sub.of.cache.typ.URL, Name: sub.name})
	}
}

// storeComplete has the store keep that a collection's first state came.
func (m *Machine) storeComplete(now time.Time, sub *subscription) {
	if !sub.stored() {
		return
	}
	sub.of.cache.unsettled = true
	m.fx.Keep = append(m.fx.Keep, Kept{
		Source: sub.of.source.index, TypeURL: sub.of.cache.typ.URL, Name: sub.name, Server: sub.stream().server, Updated: now, Complete: true,
	})
}

// settleStored has the store forget what collections whose state is complete do not have.
func (m *Machine) settleStored(l *link) {
	l.unsettled = false
	for _, c := range l.collections(nil) {
		if c.self != nil && c.self.complete && c.self.stored() {
			m.fx.Keep = append(m.fx.Keep, Kept{
				Source: c.source.index, TypeURL: l.typ.URL, Name: c.name, Covers: c.covers(),
			})
		}
	}
}

// covers says which names of its source the collection has.
func (c *collection) covers() func(string) bool {
	if !c.isGlob() {
		return func(string) bool { return true }
	}
	pattern := c.pattern
	return func(name string) bool {
		p, segment, ok := split(name)
		return ok && segment != star && p == pattern
	}
}
