package machine

import (
	"errors"
	"slices"
	"time"
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
	watches int // that are alive
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

// chainOf finds or makes the chain that answers for a type's names of a source.
func (m *Machine) chainOf(source int, typeURL string) *chain {
	src, key := m.sources[source], chainKey{source: source}
	if slices.ContainsFunc(src.Servers, func(i int) bool { return m.servers[i].PerType }) {
		key.url = typeURL
	}
	ch := m.chains[key]
	if ch == nil {
		ch = &chain{Source: src}
		for _, server := range src.Servers {
			ch.streams = append(ch.streams, m.streamFor(server, src.Scope, typeURL))
		}
		m.chains[key] = ch
		m.inOrder = append(m.inOrder, ch)
	}
	return ch
}

func (ch *chain) stream() *stream { return ch.streams[ch.active] }

// begin chooses the server for the first watch after a time without any: the first of which
// nothing bad is known, or the last.
func (m *Machine) begin(ch *chain) {
	before := ch.active
	ch.active = 0
	for !ch.last() && ch.stream().unreachable() {
		if ch.active >= before {
			m.logServer(ch.stream(), true, "the server cannot be reached; the next one is asked")
		}
		ch.active++
	}
}

// last says that there is no server left to fall back to.
func (ch *chain) last() bool { return ch.active+1 == len(ch.streams) }

// fallBack moves every chain that needs it away from a stream that failed.
func (m *Machine) fallBack(now time.Time, s *stream) {
	for _, ch := range m.inOrder {
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

// lacks says whether something is watched of which nothing is known. What is known not to
// exist, or was refused, is not lacking.
func (ch *chain) lacks() bool {
	for _, ts := range ch.stream().order {
		for _, e := range ts.entries {
			if e.of.chain == ch && !e.pinned && e.wanted() && e.status == StatusRequested {
				return true
			}
		}
		for _, c := range ts.collections() {
			if c.chain == ch && len(c.watches) > 0 && !c.synced && c.absence == nil {
				return true
			}
		}
	}
	return false
}

// revert makes the server active that spoke, if it is of higher priority than the one that
// is (gRFC A71).
func (m *Machine) revert(now time.Time, s *stream, ts *typeState) {
	for _, ch := range m.inOrder {
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
	if ts.plain[ch] != nil {
		return true
	}
	return slices.ContainsFunc(ts.collections(), func(c *collection) bool { return c.chain == ch })
}

// standBy asks for what a watch is of at the servers of higher priority too.
func (m *Machine) standBy(now time.Time, ch *chain, w *Watch) {
	for _, s := range ch.streams[:ch.active] {
		ts := s.typeOf(w.Type)
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
			} else if e := ts.entries[w.Name]; e != nil && e.pinned {
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
		for _, c := range ts.collections() {
			if c.chain == ch {
				m.wanted(now, s, c.setStandby(false))
			}
		}
		for _, e := range ts.inOrder() {
			if e.of.chain == ch && e.pinned {
				m.unpin(now, e)
			}
		}
	}
}

// active finds what stands by at the server that is active.
func (e *entry) active() *entry {
	if e.pinned && !e.isGlob() {
		if ts := e.of.chain.stream().types[e.of.ts.typ.URL]; ts != nil && ts.entries[e.name] != nil {
			return ts.entries[e.name]
		}
	}
	return e
}

func (c *collection) active() *collection {
	if c.standby {
		if ts := c.chain.stream().types[c.ts.typ.URL]; ts != nil && ts.find(c) != nil {
			return ts.find(c)
		}
	}
	return c
}

// errMoved is never told: it stands for trouble that watches were told of when another
// server was active, so that it is cleared when this one speaks.
var errMoved = errors.New("the server before it was in trouble")

// move makes another server active. Watches, and what is held, go along; values that the
// new server has not confirmed have no version there. At a server of higher priority the
// names go on standing by; one of lower priority is done with.
func (m *Machine) move(now time.Time, ch *chain, to int) {
	from, dst := ch.stream(), ch.streams[to]
	if dst.watches == 0 && dst.state == up {
		m.letGo(now, dst) // it lingers, and would not say again what it was not told to stop saying
	}
	mv := mover{m: m, now: now, ch: ch, dst: dst, was: from, standing: to > ch.active}
	ch.active = to
	for _, ts := range from.order {
		mv.moveType(ts)
	}
	for _, ts := range dst.order {
		switch {
		case ts.fault != nil:
			m.tellType(ts, ts.fault, ch)
		case dst.works():
			m.tellTypeClear(ts, ch)
		}
	}
	if dst.told == nil && !dst.works() {
		dst.told = &Fault{Kind: FaultConnection, Err: errMoved}
	}
	m.wanted(now, dst, mv.watches-mv.stood)
	m.wanted(now, from, mv.stand-mv.watches)
	if mv.standing && from.state == up && from.watches > 0 {
		m.restart(from)
	}
}

// mover is one move of a chain.
type mover struct {
	m        *Machine
	now      time.Time
	ch       *chain
	dst      *stream
	was      *stream // of the old server
	standing bool    // it is of higher priority

	watches int // that moved
	stand   int // that stand by at the old server now
	stood   int // that stood by at the new one
}

func (mv *mover) moveType(ts *typeState) {
	var es []*entry
	for _, e := range ts.inOrder() {
		switch {
		case e.of.chain != mv.ch || e.isGlob():
		case e.wanted() || ts.member(e) && e.known():
			es = append(es, e)
		case !e.noted:
			ts.drop(e) // of a response that is being worked on
		}
	}
	var cs []*collection
	for _, c := range ts.collections() {
		if c.chain == mv.ch && c.wanted() {
			cs = append(cs, c)
		}
	}
	if len(es) == 0 && len(cs) == 0 {
		return
	}
	to := mv.dst.typeOf(ts.typ)
	leaving := map[string]bool{} // whose timers start when the message has left
	for _, e := range to.fresh {
		leaving[e.name] = true
	}
	for _, c := range cs {
		mv.moveCollection(c, to)
	}
	for _, e := range es {
		mv.moveEntry(e, ts, to)
		if e.asked && !leaving[e.name] && !e.held() {
			mv.m.startTimer(mv.now, mv.dst, timer{entry: e})
		}
	}
	ts.changed, ts.fresh = ts.current(ts.changed), ts.current(ts.fresh)
	to.changed, to.fresh = to.current(to.changed), to.current(to.fresh)
}

// current replaces entries that are not those of their names any more by those that are.
func (ts *typeState) current(es []*entry) []*entry {
	kept := es[:0]
	for _, e := range es {
		if e = ts.entries[e.name]; e != nil {
			kept = append(kept, e)
		}
	}
	return kept
}

func (mv *mover) moveCollection(c *collection, to *typeState) {
	d := to.counterpart(c, mv.ch)
	d.watches, d.shared, d.explicit = c.own(), false, c.explicit
	mv.stood -= d.setStandby(false)
	d.synced, d.absence, d.ambient = c.synced, c.absence, c.ambient
	d.self.fault, c.self.fault = c.self.fault, nil
	for _, w := range d.watches {
		w.entry = d.self
	}
	mv.watches += len(d.watches)
	c.watches, c.explicit, c.timer = nil, 0, 0
	c.forgetState()
	if mv.standing {
		mv.stand += c.setStandby(true)
	}
	c.pin()
	d.pin()
	if d.known && !d.synced {
		mv.m.startTimer(mv.now, mv.dst, timer{of: d})
	}
}

// find finds what a collection that is watched is on another stream; nil if it is not there.
func (ts *typeState) find(c *collection) *collection {
	if c.isGlob() {
		return ts.globs[c.pattern]
	}
	return ts.star
}

// counterpart finds or makes what a collection that is watched is on another stream.
func (ts *typeState) counterpart(c *collection, ch *chain) *collection {
	if c.isGlob() {
		return ts.globFor(ch, c.name, c.authority)
	}
	ts.star.chain = ch
	return ts.star
}

func (mv *mover) moveEntry(e *entry, from, to *typeState) {
	joining := e.joining()
	e.setJoining(nil)
	mv.leaveBehind(e, from, len(joining) > 0)

	c, before := to.star, to.entries[e.name]
	if e.of != from.star {
		c = to.collectionFor(mv.ch, e.name, e.of.authority)
	} else if c.chain = mv.ch; structured(e.name) && (before != nil && before.of.chain != mv.ch || to.globOf(e.name) != nil) {
		return // the wildcard hears of the one that is there
	}
	to.entries[e.name] = e
	c.adopt(e)
	e.setJoining(joining)
	e.asked, e.noted, e.timer, e.withheld, e.pinned = false, false, 0, false, false
	mv.sign(e)
	stood := before != nil && before.wanted()
	if before != nil {
		e.asked, e.noted = before.asked, before.noted
	}
	switch {
	case !e.wanted():
		if to.stream.Delta && to.asked {
			to.withhold(e)
		}
	case stood:
		mv.stood++
	default:
		to.watched++
		to.note(e, true)
	}
	mv.watches += len(e.watches) + len(joining)
}

// sign notes which server said what is known of an entry.
func (mv *mover) sign(e *entry) {
	switch {
	case e.status == StatusRequested && !e.held():
		e.from = 0
		return
	case !e.foreign():
		e.from = uint16(mv.was.server + 1)
	}
	if int(e.from) == mv.dst.server+1 {
		e.from = 0
	}
}

// leaveBehind puts in place of an entry what the old server is to know of it.
func (mv *mover) leaveBehind(e *entry, from *typeState, joins bool) {
	from.stream.ttls.move(mv.now, e, &mv.dst.ttls)
	from.drop(e)
	wanted := len(e.watches) > 0 || joins
	if !wanted && !e.noted {
		return // a member, which was never asked for by name
	}
	behind := &entry{name: e.name, of: e.of, status: StatusRequested, asked: e.asked, noted: e.noted}
	from.entries[e.name] = behind
	behind.of.adopt(behind)
	switch {
	case wanted && mv.standing:
		behind.pinned = true
		mv.stand++
	case wanted:
		from.watched--
		from.note(behind, false)
		if from.silent() {
			from.forget(behind)
		}
	}
}

func (m *Machine) logServer(s *stream, warn bool, text string) {
	m.fx.Log = append(m.fx.Log, Log{Warn: warn, Server: s.server, Text: text})
}
