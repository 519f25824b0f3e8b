package machine

import (
	"errors"
	"slices"
	"time"
)

// errMoved is never told: it stands for trouble that watches were told of when another
// server was active, so that it is cleared when this one speaks.
var errMoved = errors.New("the server before it was in trouble")

// move makes another server active. Watches, and what is held, go along; values that the
// new server has not confirmed have no version there. At a server of higher priority the
// names go on standing by; one of lower priority is done with.
func (m *Machine) move(now time.Time, ch *chain, to int) {
	m.agenda.touch(ch.streams...)
	from, dst := ch.stream(), ch.streams[to]
	if to > ch.active && dst.state == up {
		m.startOver(now, ch, dst)
	}
	mv := mover{m: m, now: now, ch: ch, dst: dst, was: from, standing: to > ch.active}
	ch.use(to)
	for _, ts := range from.order {
		mv.moveType(ts)
	}
	for _, ts := range dst.order {
		switch {
		case ts.suspicion.fault != nil:
			m.tellType(ts, ts.suspicion.fault, ch)
		case dst.works():
			m.tellTypeClear(ts, ch)
		}
	}
	if dst.told == nil && !dst.works() {
		dst.told = &Fault{Kind: FaultConnection, Err: errMoved}
	}
	m.wanted(now, dst, mv.watches-mv.stood)
	m.wanted(now, from, mv.stand-mv.watches)
	if mv.standing && from.state == up {
		m.restart(now, from)
	}
}

// startOver begins a stream anew that a chain falls back to, if its server was not told yet
// that the chain had left: it would not say again what it was asked for.
func (m *Machine) startOver(now time.Time, ch *chain, s *stream) {
	switch {
	case s.watches == 0:
		m.letGo(now, s)
	case slices.ContainsFunc(s.order, func(ts *typeState) bool { return ts.hangsOver(ch) }):
		m.restart(now, s)
	}
}

// hangsOver says whether a server is still asked for something of a chain that wants nothing
// of it any more.
func (ts *typeState) hangsOver(ch *chain) bool {
	if ts.star.chain == ch && ts.form != wildNone {
		return true
	}
	for e := range ts.entriesOf(ch) {
		if e.asked {
			return true
		}
	}
	return false
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
	for _, e := range ts.inOrder(mv.ch) {
		switch {
		case e.isGlob():
		case e.wanted() || ts.member(e) && e.known():
			es = append(es, e)
		default:
			ts.abandon(e)
		}
	}
	cs := slices.DeleteFunc(ts.collectionsOf(mv.ch), func(c *collection) bool { return !c.wanted() })
	if len(es) == 0 && len(cs) == 0 {
		return
	}
	to := mv.dst.typeOf(ts.typ)
	for _, c := range cs {
		mv.moveCollection(c, to)
	}
	for _, e := range es {
		mv.moveEntry(e, ts, to)
		if e.asked && !to.leaving(e) && !e.held() { // else its timer starts when the message has left
			mv.m.awaitAsked(mv.now, e)
		}
	}
	for _, c := range cs {
		c.pin() // not before: one that nobody wants here is left, with its members
	}
	to.moved = true
}

// abandon forgets what is known of an entry that nobody wants, since its chain uses another
// server, but not that the server is asked for it.
func (ts *typeState) abandon(e *entry) {
	if ts.drop(e); e.noted {
		ts.stub(e)
	}
}

// stub puts in place of an entry what says only whether the server is asked for it.
func (ts *typeState) stub(e *entry) *entry {
	s := &entry{name: e.name, status: StatusRequested, asked: e.asked, noted: e.noted}
	ts.entries.put(s)
	ts.replaceLate(e, s)
	e.of.adopt(s)
	ts.moved = true
	return s
}

// renew puts into changed and fresh the entries that moves have made those of their names.
func (ts *typeState) renew() {
	if ts.moved {
		ts.moved = false
		ts.changed, ts.fresh = ts.current(ts.changed), ts.current(ts.fresh)
	}
}

// current replaces entries that are not those of their names any more by those that are.
func (ts *typeState) current(es []*entry) []*entry {
	kept := es[:0]
	for _, e := range es {
		if e = ts.entries.get(e.name); e != nil {
			kept = append(kept, e)
		}
	}
	return kept
}

func (mv *mover) moveCollection(c *collection, to *typeState) {
	to.spell(c.name, c.ts.onWire(c.name))
	d := to.counterpart(c, mv.ch)
	d.watches, d.explicit = c.own(), c.explicit
	mv.stood -= d.setStandby(false)
	if d.synced, d.absence, d.orphan, d.ambient = c.synced, c.absence, c.orphan, c.ambient; d.synced {
		delete(to.waiting, d)
	}
	d.self.fault = c.self.fault
	for _, w := range d.watches {
		w.entry = d.self
	}
	mv.watches += len(d.watches)
	c.watches, c.explicit, c.timer = nil, false, 0
	c.forgetState()
	if mv.standing {
		mv.stand += c.setStandby(true)
	}
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
	joining, flaws, renewed, given := e.joining(), from.flaws[e], from.renewed[e], from.aliases.versionOf(e)
	shared := from.aliases.shared[e]
	e.setJoining(nil)
	to.spell(e.name, from.onWire(e.name))
	spelling := from.spelled.given[e]
	mv.leaveBehind(e, from, len(joining) > 0)

	c, before := to.star, to.entries.get(e.name)
	if e.of != from.star {
		c = to.collectionFor(mv.ch, e.name, e.of.authority)
	} else if c.chain = mv.ch; before != nil && before.of.chain != mv.ch || to.globOf(e.name) != nil {
		mv.dst.strip(e)
		return // it is of others there: the wildcard hears of theirs
	}
	if before != nil {
		to.drop(before)
	}
	to.entries.put(e)
	c.adopt(e)
	e.count(shared)
	e.setJoining(joining)
	to.setFlaws(e, flaws)
	if renewed {
		to.renewed[e] = true
	}
	if given != e.name {
		to.aliases.give(e, given)
	}
	to.spelled.give(e, spelling)
	e.asked, e.noted, e.timer, e.withheld = false, false, 0, false
	mv.sign(e)
	stood := before != nil && before.wanted()
	if before != nil {
		e.asked, e.noted = before.asked, before.noted
		to.replaceLate(before, e)
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
	if e.status == StatusRequested {
		return // nothing is known
	}
	if !e.foreign() {
		e.from = uint16(mv.was.server + 1)
	}
	if int(e.from) == mv.dst.server+1 {
		e.from = 0
	}
}

// leaveBehind puts in place of an entry what the old server is to know of it.
func (mv *mover) leaveBehind(e *entry, from *typeState, joins bool) {
	from.stream.ttls.move(mv.now, e, &mv.dst.ttls)
	from.stream.graces.move(mv.now, e, &mv.dst.graces)
	from.stream.attributes.move(e, &mv.dst.attributes)
	from.drop(e)
	wanted := len(e.watches) > 0 || joins
	if !wanted && !e.noted {
		return // a member, which was never asked for by name
	}
	behind := from.stub(e)
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
