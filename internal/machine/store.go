package machine

import (
	"slices"
	"time"
)

// A store keeps accepted values for the next start of the program; store_load.go takes them into the state. It forgets
//   - what is not there any more, whoever decided that ([Machine.dropState]): among it a name that was never loaded, once a
//     full state lacks it and its time is over ([Machine.timedOut]);
//   - names that nobody watches, and that a complete collection lacks ([Machine.forgetUnseenStored]).
//
// Silence alone has it forget nothing. What a server says while the store is read goes before what the store has
// ([Load.place]).

// loadAfter is how long a server may be silent about a type until the store is asked.
const loadAfter = time.Second

// failed says that no server of the source can be reached.
func (src *source) failed() bool {
	return !slices.ContainsFunc(src.streams, func(s *stream) bool { return !s.unreachable() })
}

// heardServer says whether a server has spoken of the type on the present incarnation of its stream.
func (sh *share) heardServer() bool {
	return slices.ContainsFunc(sh.source.reached(), func(s *stream) bool {
		l := s.link(sh.cache.typ.URL)
		return l != nil && l.firstResponse != 0
	})
}

// loadSoon has the store asked for a subscription of which nothing is known: at once if no server can be reached, else after
// a second without a response of the type.
func (m *Machine) loadSoon(now time.Time, sub *subscription) {
	if !sub.needsStore() {
		return
	}
	// CACHE-3, LKG-9: every server's attempt has failed, or a second has passed.
	switch sh := sub.of.source.share(sub.of.cache); {
	case sh.source.failed():
		m.load(sh, sub)
	case sh.timer == 0 && !sh.heardServer():
		m.setAlarm(now, sh.source.streams[0], sh, loadAfter)
	}
}

// ring asks for all that is lacking, if no server has answered.
func (sh *share) ring(m *Machine, _ time.Time) {
	// LKG-8: only if no server has responded.
	if !sh.heardServer() {
		m.loadLacking(sh)
	}
}

// loadForFailed asks the store for what is lacking at sources whose last server has failed.
func (m *Machine) loadForFailed(s *stream) {
	for _, src := range s.sources {
		if src.Stored && src.failed() {
			for _, sh := range src.shares {
				m.loadLacking(sh)
			}
		}
	}
}

func (m *Machine) loadLacking(sh *share) {
	for sub := range sh.all() {
		m.load(sh, sub)
	}
}

// load has the store asked for a subscription of which nothing is known. What one step asks for is one load.
func (m *Machine) load(sh *share, sub *subscription) {
	if !sub.needsStore() || sh.loads[sub] != nil {
		return
	}
	i := slices.IndexFunc(m.fx.Load, func(ld *Load) bool { return ld.share == sh })
	if i < 0 {
		i = len(m.fx.Load)
		m.fx.Load = append(m.fx.Load, &Load{
			Source: sh.source.index, TypeURL: sh.cache.typ.URL, share: sh, complete: map[string]*Kept{},
		})
	}
	ld := m.fx.Load[i]
	sh.loads[sub] = ld
	ld.subs = append(ld.subs, sub)
	ld.Names = append(ld.Names, sub.name)
	ld.All = ld.All || sub.isCollection()
}

// store has the store keep a value that was accepted.
func (m *Machine) store(sub *subscription, expires int64) {
	if !sub.storable() {
		return
	}
	k := Kept{
		Name: sub.name, Raw: sub.raw, Version: sub.version, Server: sub.server(), Updated: sub.updated,
		Locator: sub.locator, Attributes: sub.attributes(), Expires: expires,
	}
	m.keepStored(sub, k)
}

// unstore has the store forget what it has of a subscription.
func (m *Machine) unstore(sub *subscription) {
	if sub.storable() {
		m.keepStored(sub, Kept{Name: sub.name})
	}
}

// storeComplete has the store keep that a collection's first state came.
func (m *Machine) storeComplete(now time.Time, c *collection) {
	if c.storable() {
		c.cache.unsettled = append(removeFrom(c.cache.unsettled, c), c)
		m.keepStored(&c.subscription, Kept{Name: c.name, Server: c.stream().server, Updated: now.UnixNano(), Complete: true})
	}
}

// keepStored has the store make a change for each source that would look for it.
func (m *Machine) keepStored(sub *subscription, k Kept) {
	m.keepAt(sub.of.source, sub, k)
	if also := sub.alsoOf(); also != nil && also.Stored {
		m.keepAt(also, sub, k)
	}
}

// alsoOf is a second source under which a structured name is stored: the wildcard's, or, for what the wildcard
// holds itself, the owner of the name's authority. Nil for none.
func (sub *subscription) alsoOf() *source {
	c := sub.of.cache
	switch star := c.star; {
	case !structured(sub.name), sub.isCollection(), star.source == nil:
		return nil
	case sub.of.source != star.source && star.cache.starCovers(sub):
		return star.source
	case sub.of == star:
		if owner := c.sourceOfAuthority(sub.authority()); owner != star.source {
			return owner
		}
	}
	return nil
}

// keepAt adds a change to those of this step.
func (m *Machine) keepAt(src *source, sub *subscription, k Kept) {
	// LKG-2: the source stands for authority and parameters.
	source, url := src.index, sub.of.cache.typ.URL
	if sh := src.share(sub.of.cache); len(sh.loads) > 0 && k.Raw == nil && !k.Complete {
		sh.gone[k.Name] = true
	}
	n := len(m.fx.Keep) - 1
	if n < 0 || m.fx.Keep[n].Source != source || m.fx.Keep[n].TypeURL != url || m.fx.Keep[n].Covers != nil {
		m.fx.Keep = append(m.fx.Keep, Keep{Source: source, TypeURL: url})
		n++
	}
	m.fx.Keep[n].Changes = append(m.fx.Keep[n].Changes, k)
}

// unsettles says whether the store has to forget what a collection of the link does not have.
func (l *link) unsettles() bool {
	return slices.ContainsFunc(l.cache.unsettled, func(c *collection) bool { return c.ownedBy(l.stream) })
}

// forgetUnseenStored has the store forget what collections whose state is complete do not have.
func (m *Machine) forgetUnseenStored(l *link) {
	all := l.cache.unsettled
	l.cache.unsettled = nil
	sortCollections(all)
	for _, c := range all {
		switch {
		case !c.ownedBy(l.stream): // another server's word counts
			l.cache.unsettled = append(l.cache.unsettled, c)
		// LKG-5: the store forgets what the collection lacks, also if nobody watches the collection at the moment.
		case c.complete && !c.gone:
			m.fx.Keep = append(m.fx.Keep, Keep{
				Source: c.source.index, TypeURL: l.cache.typ.URL, Settled: c.name, Covers: c.covers(), Known: l.namesToKeep(c),
			})
		}
	}
}

// namesToKeep are the names that the store must not forget: the collection's own, and those in it of which a server gave the
// held value, or of which a value was refused or an error came on this stream. Where a guard judges removals, a stale member
// is among them until it is removed.
func (l *link) namesToKeep(c *collection) []string {
	names := []string{c.name}
	judged := l.cache.typ.Guarded && !l.keepsForGood()
	for sub := range c.all() {
		given := sub.held() && (!sub.stale() || judged && sub.of == c && !sub.wanted())
		if given || sub.exists() && l.spokeOf(sub) {
			names = append(names, sub.name)
		}
	}
	return names
}

// covers returns what says whether a name of the source would be a member of the collection. For most servers a structured
// name is no member of the wildcard.
func (c *collection) covers() func(string) bool {
	if !c.isGlob() {
		return func(name string) bool { return !structured(name) }
	}
	of := patternOf(c.name)
	return func(name string) bool { return patternOf(name) == of }
}
