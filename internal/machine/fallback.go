package machine

import (
	"slices"
	"time"
)

// A source uses its servers in their order. Which one is active changes in three ways:
//   - the first watch after a time without any has chooseServer choose;
//   - trouble with the active server ([Machine.down]), or a watch that begins while there is trouble ([Machine.watch]), has
//     fallBackSource take a server after it, if something is lacking;
//   - the first response of a server before the active one has revert take that one ([Machine.received]).
//
// activate then does what follows.

// passUnreachable is the index of the first server, from i on, that is not known to be unreachable; the last one
// if all are. It logs which servers the source leaves.
func (m *Machine) passUnreachable(src *source, i int) int {
	for ; i+1 < len(src.streams) && src.streams[i].unreachable(); i++ {
		if i >= src.active {
			m.logServer(src.streams[i], warning, "the server cannot be reached; the next one is asked")
		}
	}
	return i
}

// chooseServer chooses the server for the first watch after a time without any.
func (m *Machine) chooseServer(now time.Time, src *source) {
	for _, sh := range src.shares {
		sh.timer = 0 // LKG-9: the time after which the client asks the store begins with the first watch
	}
	to := m.passUnreachable(src, 0)
	if to == src.active {
		return
	}
	for _, sh := range src.shares {
		for sub := range sh.all() {
			sub.forgetStream()
		}
		sh.dropUnwanted()
	}
	src.active = to
	for _, s := range src.reached() {
		m.closeIfNamed(now, src, s) // its first request listed versions of values that the client has just forgotten
	}
}

// fallBack has each source whose active server is in trouble fall back, if it has to.
func (m *Machine) fallBack(now time.Time, s *stream) {
	// FALLBACK-2: each source by itself.
	for _, src := range s.sources {
		if src.watches > 0 && src.stream() == s {
			m.fallBackSource(now, src)
		}
	}
}

// fallBackSource makes another server active instead of one that cannot be reached, if something is lacking (gRFC A71): the
// first one after it that is not known to be unreachable. If all are unreachable, the last one becomes active, and the result
// says that the watches were told of its trouble.
func (m *Machine) fallBackSource(now time.Time, src *source) (told bool) {
	// FALLBACK-1: only where something is lacking.
	if src.active+1 == len(src.streams) || !src.ReachabilityOnly && !src.lacks() {
		return false
	}
	m.activate(now, src, m.passUnreachable(src, src.active))
	return src.stream().unreachable()
}

// revert makes a server that has responded active again, in all sources that use a server after it (gRFC A71).
func (m *Machine) revert(now time.Time, s *stream) {
	for _, src := range s.sources {
		// FALLBACK-5: the first response of a server before the active one, of any type that was requested from it.
		if src.standsBy(s) {
			if src.watches > 0 {
				m.logServer(s, information, "the server answers again and is used")
			}
			m.activate(now, src, slices.Index(src.streams, s))
		}
	}
}

// activate makes another server the active one. What is wanted and known stays as it is. Names are requested from the servers
// up to the active one, and from none after it.
func (m *Machine) activate(now time.Time, src *source, to int) {
	m.agenda.touch(src.streams...)
	from, dst, was := src.stream(), src.streams[to], src.active
	if to > was {
		m.closeIfNamed(now, src, dst)
	}
	src.active = to
	for _, sh := range src.shares {
		m.handOver(now, sh, was)
	}
	for _, l := range dst.links {
		// FALLBACK-4: no server is left, or the type is not served.
		if f := l.toldTrouble(); f != nil || dst.works() {
			m.tellEveryone(src.share(l.cache).all(), f, (*subscription).watches)
		}
	}
	dst.troubled = true // watches may know of another server's trouble, so they are told when this server speaks
	for i := was + 1; i <= to; i++ {
		m.watchesChanged(now, src.streams[i], +src.watches)
	}
	// FALLBACK-5: the streams of the servers after it end, unless another source uses them.
	for i := to + 1; i <= was; i++ {
		m.watchesChanged(now, src.streams[i], -src.watches)
	}
	if to > was && from.state == up {
		m.renewStream(now, from)
	}
}

// handOver gives the names of a type to the server that is active now, in place of the one that was: requests name them or
// do so no more, and their timers begin anew.
func (m *Machine) handOver(now time.Time, sh *share, was int) {
	c, src, subs := sh.cache, sh.source, slices.SortedFunc(sh.all(), byName)
	for _, sub := range subs {
		if sub.of.source != src {
			continue // dropIfUnwanted has dropped its glob, and the wildcard of another source has it now
		}
		if sub.wanted() {
			// FALLBACK-3: all names are requested from the next server.
			for i := was + 1; i <= src.active; i++ {
				src.streams[i].linkTo(c).want(sub, true)
			}
			// FALLBACK-5: and none any more from those after it.
			for i := src.active + 1; i <= was; i++ {
				src.streams[i].linkTo(c).want(sub, false)
			}
		}
		l := sub.link()
		sub.forgetStream() // DNE-5: this server has a full period to answer
		sub.seen = 0       // forgetStream leaves that, since a response that is worked on after the end of its stream compares it
		sub.subscribed = l != nil && l.named(sub)
		if !sub.subscribed { // SOTW-6: what requests name stays until the one that unsubscribes it
			c.dropIfUnwanted(sub)
		}
		if l != nil && l.has(sub) && !sub.isCollection() {
			l.takeOver(sub)
			m.await(now, sub)
		}
	}
	for _, sub := range subs {
		if sub.isCollection() {
			m.await(now, sub)
		}
	}
}

// closeIfNamed closes the stream of a server that a source uses again, if requests on it name subscriptions of the source
// from before, or if nobody watches anything on it, so that it only lingers: there the server would not send them again. Who
// calls it counts the watches of the source next, which opens a new stream.
func (m *Machine) closeIfNamed(now time.Time, src *source, s *stream) {
	if s.state == up && (s.watches == 0 || slices.ContainsFunc(s.links, func(l *link) bool { return l.namesAnyOf(src) })) {
		m.renewStream(now, s)
	}
}

// namesAnyOf says whether requests of the link name a subscription of a source.
func (l *link) namesAnyOf(src *source) bool {
	for sub := range src.share(l.cache).all() {
		if l.named(sub) {
			return true
		}
	}
	return false
}
