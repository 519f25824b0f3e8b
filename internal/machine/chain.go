package machine

import (
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// Source is who answers for names: servers in order of priority. The first is used; when it
// cannot be reached and something is lacking, the next one is (gRFC A71).
type Source struct {
	Servers []int // indices of the machine's servers; at least one
	// ReachabilityOnly is gRFC A95's fallback_on_reachability_only: the next server is used
	// though nothing is lacking.
	ReachabilityOnly bool
	// Scope sets streams apart: sources of different scopes share none, so that the same
	// name may be asked for by both.
	Scope int
	// Answers says whether one of the servers answers for the structured names of an authority, so
	// that it may speak of those that nobody asked for by themselves. Always the same for the same;
	// nil says that it does for all.
	Answers func(server int, authority string) bool
	// Params are what the names are asked for with, at servers that know them; nil for none.
	Params *wire.Params
}

// chain is a source at work: which of its servers is active. Where a server has a stream
// for each type, so has each type a chain.
//
// What is watched, and what is held, is with the active server's stream. At servers of
// higher priority the same names stand by: they are asked for, and the first response
// makes that server the active one again. Servers of lower priority are asked for nothing.
type chain struct {
	Source
	streams []*stream // of the servers
	active  int
	watches int    // that are alive
	all     *Fault // what joined made last
}

type chainKey struct {
	source int
	url    string // "" if all types share streams
}

// AddServer adds a server and returns its index.
func (m *Machine) AddServer(s Server) int {
	m.servers = append(m.servers, &s)
	m.budgets = append(m.budgets, new(int))
	return len(m.servers) - 1
}

// AddSource adds a source and returns its index.
func (m *Machine) AddSource(s Source) int {
	m.sources = append(m.sources, s)
	return len(m.sources) - 1
}

// chainKeyOf names the chain that answers for a type's names of a source.
func (m *Machine) chainKeyOf(source int, typeURL string) chainKey {
	key := chainKey{source: source}
	if slices.ContainsFunc(m.sources[source].Servers, func(i int) bool { return m.servers[i].PerType }) {
		key.url = typeURL
	}
	return key
}

// chainOf finds or makes the chain that answers for a type's names of a source.
func (m *Machine) chainOf(source int, typeURL string) *chain {
	src, key := m.sources[source], m.chainKeyOf(source, typeURL)
	ch := m.chains[key]
	if ch == nil {
		ch = &chain{Source: src}
		for _, server := range src.Servers {
			s := m.streamFor(server, src.Scope, typeURL)
			s.chains = append(s.chains, ch)
			ch.streams = append(ch.streams, s)
		}
		m.chains[key] = ch
	}
	return ch
}

func (ch *chain) stream() *stream { return ch.streams[ch.active] }

// use makes a server the active one.
func (ch *chain) use(i int) {
	for _, s := range ch.streams[:ch.active] {
		s.passed--
	}
	ch.active = i
	for _, s := range ch.streams[:i] {
		s.passed++
	}
}

// begin chooses the server for the first watch after a time without any: the first of which
// nothing bad is known, or the last.
func (m *Machine) begin(now time.Time, ch *chain) {
	before := ch.active
	ch.use(0)
	for !ch.last() && ch.stream().unreachable() {
		if ch.active >= before {
			m.logServer(ch.stream(), true, "the server cannot be reached; the next one is asked")
		}
		ch.use(ch.active + 1)
	}
	if ch.active == before {
		return
	}
	for _, ts := range ch.streams[before].order {
		for _, e := range ts.inOrder(ch) {
			if !e.isGlob() {
				ts.abandon(e)
			}
		}
	}
	if s := ch.stream(); s.state == up {
		m.startOver(now, ch, s)
	}
}

// last says that there is no server left to fall back to.
func (ch *chain) last() bool { return ch.active+1 == len(ch.streams) }

// fallBack moves every chain that needs it away from a stream that failed.
func (m *Machine) fallBack(now time.Time, s *stream) {
	for _, ch := range s.chains {
		if ch.watches > 0 && ch.stream() == s {
			m.fallBackChain(now, ch)
		}
	}
}

// fallBackChain moves a chain whose server cannot be reached to the first one after it of
// which nothing bad is known, if something is lacking (gRFC A71). If there is none its
// watches are told of the last one's trouble. It says whether the chain moved.
func (m *Machine) fallBackChain(now time.Time, ch *chain) bool {
	if ch.last() || !ch.ReachabilityOnly && !ch.lacks() {
		return false
	}
	for !ch.last() && ch.stream().unreachable() {
		m.logServer(ch.stream(), true, "the server cannot be reached; the next one is asked")
		m.move(now, ch, ch.active+1)
	}
	if s := ch.stream(); s.unreachable() {
		for _, ts := range s.order {
			m.tellType(ts, s.fault, ch)
		}
	}
	return true
}

// joined is trouble with the active server, with that of the servers of higher priority: the
// program hears of all (U-7). It is made once, though many hear of it.
func (ch *chain) joined(f *Fault) *Fault {
	if f == nil || ch == nil || ch.active == 0 || f != ch.stream().fault && f != ch.stream().told {
		return f
	}
	var all []ServerFault
	for _, s := range ch.streams[:ch.active] {
		if s.fault != nil {
			all = append(all, ServerFault{s.server, s.fault})
		}
	}
	if len(all) == 0 {
		return f
	}
	all = append(all, ServerFault{ch.stream().server, f})
	if ch.all == nil || !slices.Equal(ch.all.All, all) {
		own := *f
		own.All, ch.all = all, &own
	}
	return ch.all
}

// lacks says whether something is watched of which nothing is known. What is known not to
// exist, or was refused, is not lacking.
func (ch *chain) lacks() bool {
	for _, ts := range ch.stream().order {
		for e := range ts.entriesOf(ch) {
			if !e.pinned && e.wanted() && e.status == StatusRequested {
				return true
			}
		}
		for _, c := range ts.collectionsOf(ch) {
			if len(c.watches) > 0 && !c.synced && c.absence == nil {
				return true
			}
		}
	}
	return false
}

// revert makes the server active that spoke, if it is of higher priority than the one that
// is (gRFC A71).
func (m *Machine) revert(now time.Time, s *stream, ts *typeState) {
	if s.passed == 0 {
		return
	}
	for _, ch := range s.chains {
		i := slices.Index(ch.streams[:ch.active], s)
		if i < 0 || ch.watches == 0 || !ts.serves(ch) {
			continue
		}
		m.logServer(s, false, "the server answers again and is used")
		for j := i + 1; j < ch.active; j++ {
			m.dismiss(now, ch, ch.streams[j])
		}
		m.move(now, ch, i)
	}
}

// serves says whether a chain asks for the type on this stream.
func (ts *typeState) serves(ch *chain) bool {
	for range ts.membersOf(ch) {
		return true
	}
	return ts.star.chain == ch
}

// standBy asks for what a watch is of at the servers of higher priority too.
func (m *Machine) standBy(now time.Time, ch *chain, w *Watch) {
	for _, s := range ch.streams[:ch.active] {
		ts := s.typeOf(w.Type)
		ts.spell(w.Name, w.Spelling)
		c := ts.collectionOf(ch, w)
		switch {
		case w.Wildcard:
			m.wanted(now, s, c.setStandby(true))
		default:
			e := ts.entryOf(c, w.Name)
			if !e.wanted() {
				ts.watched++
				ts.note(e, true)
				m.wanted(now, s, +1)
			}
			e.pinned = true
		}
	}
}

// standDown takes back what standBy asked for, with the last watch of it.
func (m *Machine) standDown(now time.Time, w *Watch) {
	ch := w.entry.of.chain
	for _, s := range ch.streams[:ch.active] {
		if ts := s.types[w.Type.URL]; ts != nil {
			if c := ts.find(w.entry.of); w.Wildcard && c != nil {
				m.wanted(now, s, c.setStandby(false))
			} else if e := ts.entries.get(w.Name); e != nil && e.pinned {
				m.unpin(now, e)
			}
		}
	}
}

// setStandby says by how much the stream is wanted more.
func (c *collection) setStandby(on bool) (by int) {
	if c.standby == on {
		return 0
	}
	c.standby = on
	c.pin()
	if on {
		return +1
	}
	return -1
}

// pin has a glob asked for while it is wanted.
func (c *collection) pin() {
	ts, e, on := c.ts, c.self, c.wanted()
	if !c.isGlob() || e.pinned == on {
		return
	}
	e.pinned = on
	if on {
		ts.watched++
	} else {
		ts.watched--
	}
	ts.note(e, on)
	if !on && ts.silent() {
		ts.forget(e)
	}
}

func (m *Machine) unpin(now time.Time, e *entry) {
	ts := e.of.ts
	e.pinned = false
	ts.watched--
	ts.note(e, false)
	m.wanted(now, ts.stream, -1)
	if ts.silent() {
		ts.forget(e)
	}
}

// dismiss takes back everything that a chain asked for at a server where it stands by.
func (m *Machine) dismiss(now time.Time, ch *chain, s *stream) {
	for _, ts := range s.order {
		for _, c := range ts.collectionsOf(ch) {
			m.wanted(now, s, c.setStandby(false))
		}
		for _, e := range ts.inOrder(ch) {
			if e.pinned {
				m.unpin(now, e)
			}
		}
	}
}

func (m *Machine) logServer(s *stream, warn bool, text string) {
	m.fx.Log = append(m.fx.Log, Log{Warn: warn, Server: s.server, Text: text})
}

// active finds what stands by at the server that is active.
func (c *collection) active() *collection {
	if c.standby {
		if ts := c.chain.stream().types[c.ts.typ.URL]; ts != nil && ts.find(c) != nil {
			return ts.find(c)
		}
	}
	return c
}
