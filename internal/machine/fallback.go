package machine

import (
	"slices"
	"time"
)

// passUnreachable is the index of the first server, from i on, that is not known to be unreachable; the last one
// if all are. It logs which servers the source leaves for it.
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
		sh.timer = 0 // LKG-9: the time until the store is asked begins with the first watch
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
		m.startOver(now, src, s) // its first request listed values that were just forgotten
	}
}

// fallBack has every source that needs it use its next server instead of one that failed.
func (m *Machine) fallBack(now time.Time, s *stream) {
	// FALLBACK-2: each source by itself.
	for _, src := range s.sources {
		if src.watches > 0 && src.stream() == s {
			m.fallBackSource(now, src)
		}
	}
}

// fallBackSource has a source leave the active server, which cannot be reached, for the first one after it that is not
// known to be so, if something is lacking (gRFC A71). If all are, the last one is active, and the watches are told of
// its trouble, as the result says.
func (m *Machine) fallBackSource(now time.Time, src *source) (told bool) {
	// FALLBACK-1: only where something is lacking.
	if src.active+1 == len(src.streams) || !src.ReachabilityOnly && !src.lacks() {
		return false
	}
	m.activate(now, src, m.passUnreachable(src, src.active))
	return src.stream().unreachable()
}

// revert makes a server that spoke the active one of all sources at which it stands by (gRFC A71).
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

// activate makes another server the active one. What is wanted and known stays as it is; the servers up
// to the active one are to know what is wanted, and those after it nothing.
func (m *Machine) activate(now time.Time, src *source, to int) {
	m.agenda.touch(src.streams...)
	from, dst, was := src.stream(), src.streams[to], src.active
	if to > was {
		m.startOver(now, src, dst)
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
	dst.troubled = true // when it speaks, who was told of another server's trouble is told that all is well
	for i := was + 1; i <= to; i++ {
		m.countWatch(now, src.streams[i], +src.watches)
	}
	// FALLBACK-5: the streams of the servers after it end, unless another source uses them.
	for i := to + 1; i <= was; i++ {
		m.countWatch(now, src.streams[i], -src.watches)
	}
	if to > was && from.state == up {
		m.closeStream(now, from)
	}
}

// handOver has the active server of a source do what the one before it did for a type's names, and says
// what each server is to know of.
func (m *Machine) handOver(now time.Time, sh *share, was int) {
	c, src, subs := sh.cache, sh.source, slices.SortedFunc(sh.all(), byName)
	for _, sub := range subs {
		if sub.of.source != src {
			continue // the end of its glob has given it to the wildcard of another source
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
		sub.forgetStream() // DNE-5: at this server it has a full period
		sub.seen = 0       // and not with the stream: a response that outlives its stream compares it
		sub.subscribed = l != nil && l.named(sub)
		if !sub.subscribed { // SOTW-6: what the server was told of stays until it is told otherwise
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

// startOver closes the stream of a server that still has the source's names from before: on that one it would not send
// them again.
func (m *Machine) startOver(now time.Time, src *source, s *stream) {
	hangsOver := func(l *link) bool { return l.hangsOver(src) }
	if s.state == up && (s.watches == 0 || slices.ContainsFunc(s.links, hangsOver)) {
		m.closeStream(now, s)
	}
}

// hangsOver says whether a server still knows of names of a source that is to use it again.
func (l *link) hangsOver(src *source) bool {
	for sub := range src.share(l.cache).all() {
		if l.named(sub) {
			return true
		}
	}
	return false
}
