package machine

import (
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// Two requests of a type that only change interest are some time apart, unless the server
// has answered since: a millisecond, and in state of the world one more for each so many
// names, since each request restates them all.
const (
	pace        = time.Millisecond
	namesOfPace = 2048
)

func (ts *typeState) pace() time.Duration {
	if ts.stream.Delta {
		return pace
	}
	return pace * time.Duration(1+ts.watched/namesOfPace)
}

// answer is an ACK, or with a status a NACK, that is owed.
type answer struct {
	version string // of the response
	nonce   string
	detail  *wire.Status
}

// owe notes the answer to a response. Delta owes one for each; state of the world one for
// the newest, since each request speaks for all before it.
func (m *Machine) owe(now time.Time, resp *response) {
	ts := resp.ts
	a := answer{version: resp.Version, nonce: resp.Nonce}
	if len(resp.lines) > 0 {
		a.detail = &wire.Status{Code: codeInvalidArgument, Message: resp.message()}
	}
	text := ""
	if ts.storm.heard(now, resp, a.detail) {
		text = "the server repeats one response without end; answers to it are slowed down"
	}
	if text != "" {
		m.logType(ts, true, text)
	}
	if ts.storm.raging && a.detail == nil && resp.takesStarForName() {
		m.doubtStar(ts)
	}
	switch {
	case !ts.stream.Delta:
		ts.owed = append(ts.owed[:0], a)
	case a.nonce == "":
		// Without a nonce an answer would be taken for a change of interest.
		m.fx.Log = append(m.fx.Log, Log{
			Warn: true, Server: ts.stream.server, TypeURL: ts.typ.URL, Text: "a delta response has no nonce; it cannot be answered",
		})
	default:
		ts.owed = append(ts.owed, a)
	}
}

// send gives a free writer the next message: answers before pure interest, types in their
// order.
func (m *Machine) send(now time.Time, s *stream) {
	if s.state != up || s.writing != nil {
		return
	}
	if m.renewOutdated(now, s) {
		return
	}
	if at := s.Rate.ready(&s.throttle); now.Before(at) {
		m.holdBack(now, s, at)
		return
	}
	var pure []*typeState
	for _, ts := range s.order {
		ts.sendAt = time.Time{}
		if ts.busy.on(s.ref()) {
			continue // what is wanted rides on its answer
		}
		answering, changing := ts.due(now)
		if answering && m.write(now, ts) {
			return
		}
		if changing {
			pure = append(pure, ts)
		}
	}
	slices.SortStableFunc(pure, byDoubt)
	for _, ts := range pure {
		if at := ts.turn(); now.Before(at) {
			ts.sendAt = at
			continue
		}
		if m.write(now, ts) {
			return
		}
	}
}

// due says what may be sent now; sendAt is set where it may only be later.
func (ts *typeState) due(now time.Time) (answering, changing bool) {
	changing = ts.changing()
	if len(ts.owed) > 0 {
		at := ts.storm.earliest
		if changing || !now.Before(at) {
			return true, false
		}
		ts.sendAt = at
		return false, false
	}
	if !changing {
		return false, false
	}
	if at := ts.lastPure.Add(ts.pace()); now.Before(at) {
		ts.sendAt = at
		return false, false
	}
	return false, true
}

// changing says whether the server knows less than what is wanted. While a stream lingers
// nothing is said: either it ends, or all stays as it was.
func (ts *typeState) changing() bool {
	if ts.stream.watches == 0 {
		return false
	}
	if !ts.asked {
		return ts.wanted()
	}
	return len(ts.changed) > 0 || ts.owesNode() || ts.nextForm() != ts.form
}

// write composes the next message of a type and hands it to the writer. It says whether
// there was one: changes may have cancelled each other out.
func (m *Machine) write(now time.Time, ts *typeState) bool {
	s := ts.stream
	var a *answer
	if len(ts.owed) > 0 {
		a = &ts.owed[0]
		ts.owed = ts.owed[1:]
		ts.storm.answered(now)
		m.readOn(now, s)
	}
	var node []byte
	if !s.nodeSent || s.owedNode[ts.typ.URL] || m.config.NodeAlways || s.NodeAlways {
		node = s.node
	}
	var msg [][]byte
	if !s.Delta {
		msg = ts.composeSotW(a, node)
	} else if whole := ts.composeDelta(a, node); whole != nil {
		msg = [][]byte{whole}
	}
	m.answerBeside(now, ts)
	if msg == nil {
		return false
	}
	n := Notice{
		Kind: NoticeRequest, Server: s.server, TypeURL: ts.typ.URL, Stream: s.ref(),
		Exchange: &Exchange{Resources: ts.names.count, Size: sizeOf(msg)},
	}
	if a != nil {
		n.Kind, n.Version, n.Nonce = NoticeAck, a.version, a.nonce
		if a.detail != nil {
			n.Kind, n.Message = NoticeNack, a.detail.Message
		}
	}
	ts.freshSince = m.serial
	if a == nil {
		ts.lastPure = now
	}
	if !ts.asked {
		ts.firstAt = now
	}
	if !ts.answered {
		ts.largest = max(ts.largest, n.Size)
	}
	ts.asked, s.nodeSent = true, true
	delete(s.owedNode, ts.typ.URL)
	s.Rate.take(now, &s.throttle)
	s.writing = ts
	m.fx.Notify = append(m.fx.Notify, n)
	m.fx.Send = append(m.fx.Send, Send{s.ref(), msg})
	return true
}

func sizeOf(msg [][]byte) (size int) {
	for _, part := range msg {
		size += len(part)
	}
	return size
}

// written: what the message named is asked for from now on; timers start (gRFC A57).
func (m *Machine) written(now time.Time, ts *typeState) {
	first := !ts.left
	if first {
		ts.left, ts.firstAt = true, now
	}
	ts.renew()
	for _, e := range ts.fresh {
		switch {
		case e.isGlob():
			m.requested(now, e.of)
		case e.pinned: // it stands by
		case e.withheld && ts.form == wildLegacy && !ts.answered:
			ts.beside = append(ts.beside, e)
		case e.seen > ts.freshSince: // the answer was faster than the news of the request
		case !e.held() && !ts.spokenOf(e), e.withheld:
			m.startTimer(now, ts.stream, timer{entry: e})
			if !first {
				m.listen(now, e)
			}
		}
	}
	ts.fresh, ts.freshNames = nil, nil
	m.answerBeside(now, ts)
	if ts.starting {
		ts.starting = false
		m.requested(now, ts.star)
	}
	if s := ts.stream; first && ts.resumes && s.calmAt == 0 && !s.Polled && !s.FullState {
		s.calmAt = s.clock.at(now) + hush
	}
}

// requested: the request for a collection has left.
func (m *Machine) requested(now time.Time, c *collection) {
	c.known = true
	if !c.synced && !c.standby {
		m.startTimer(now, c.ts.stream, timer{of: c})
	}
}

// spokenOf says that the server said something of a resource that is not held, so that its
// silence from now on means nothing: that it is refused, or has an error. What was said on
// an earlier stream does not count.
func (ts *typeState) spokenOf(e *entry) bool {
	return ts.answered && !e.foreign() && (e.status == StatusNacked || e.status == StatusReceivedError)
}

// applyChanges brings the names up to what is wanted and returns what that changed. What
// nobody wants is forgotten here: the message that says so is being composed. What was asked
// for with parameters is taken back with the same.
func (ts *typeState) applyChanges() (added []*entry, removed []change) {
	if ts.stream.watches == 0 {
		return nil, nil // lingering
	}
	ts.renew()
	for _, e := range ts.changed {
		e.noted = false
		ts.name(e, e.wanted())
		if e.wanted() {
			added = append(added, e)
			continue
		}
		if e.asked {
			removed = append(removed, change{name: ts.onWire(e.name), params: ts.params(e.of)})
		}
		ts.spelled.drop(e.name)
		e.timer = 0
		ts.forget(e)
		e.asked = false
	}
	ts.changed = nil
	sortEntries(added)
	slices.SortFunc(removed, func(a, b change) int { return strings.Compare(a.name, b.name) })
	return added, removed
}

// ask marks entries as named by the message being composed.
func (ts *typeState) ask(es []*entry) {
	for _, e := range es {
		if !e.asked {
			e.asked = true
			ts.fresh = append(ts.fresh, e)
			ts.noteLate(e)
		}
	}
}

// leaving says whether the message with the writer names an entry for the first time.
func (ts *typeState) leaving(e *entry) bool {
	if len(ts.fresh) == 0 {
		return false
	}
	if ts.freshNames == nil {
		ts.freshNames = make(map[string]bool, len(ts.fresh))
		for _, e := range ts.fresh {
			ts.freshNames[e.name] = true
		}
	}
	return ts.freshNames[e.name]
}

// noteLate remembers what is asked for while a response may be out that does not know of it,
// if its absence there could be taken for the end of what another server gave.
func (ts *typeState) noteLate(e *entry) {
	if !ts.asked || ts.answered || !e.pinned && !e.foreign() {
		return
	}
	if ts.late == nil {
		ts.late = map[*entry]bool{}
	}
	ts.late[e] = true
}

func (ts *typeState) replaceLate(old, e *entry) {
	if ts.late[old] {
		delete(ts.late, old)
		ts.late[e] = true
	}
}

// leaveWild forgets what only the wildcard held.
func (ts *typeState) leaveWild() {
	c := ts.star
	ts.lateStar, c.known, c.timer = false, false, 0
	c.forgetState()
	for e := range ts.entries.all() {
		if e.of == c && !e.noted {
			ts.forget(e)
		}
	}
}

// allWanted lists the entries that are wanted by name, in order.
func (ts *typeState) allWanted() []*entry {
	es := make([]*entry, 0, ts.watched)
	for name := range ts.names.all() {
		if e := ts.askedFor(name); e != nil && e.wanted() {
			es = append(es, e)
		}
	}
	return es
}
