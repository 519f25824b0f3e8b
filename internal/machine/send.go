package machine

import (
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// answer is an ACK, or with a status a NACK, that is owed.
type answer struct {
	version string // of the response
	nonce   string
	detail  *wire.Status
}

// owe notes the answer to a response. Delta owes one for each; state of the world one for
// the newest, since each request speaks for all before it.
func (m *Machine) owe(now time.Time, resp *response) {
	l := resp.link
	a := answer{version: resp.Version, nonce: resp.Nonce}
	if len(resp.lines) > 0 {
		// ACK-4: a NACK has a code that is not OK.
		a.detail = &wire.Status{Code: codeInvalidArgument, Message: resp.message()}
	}
	for _, q := range l.stream.quirks {
		q.judged(m, now, resp, a.detail)
	}
	switch {
	case !l.stream.Delta:
		l.owed = append(l.owed[:0], a)
	// ACK-12: it is not answered.
	case a.nonce == "":
		// Without a nonce an answer would be taken for a change of interest.
		m.fx.Log = append(m.fx.Log, Log{
			Warn: true, Server: l.stream.server, TypeURL: l.typ.URL, Text: "a delta response has no nonce; it cannot be answered",
		})
	default:
		l.owed = append(l.owed, a)
	}
}

// turn is a type that may speak now.
type turn struct {
	link *link
	what speech
	rank int
}

// send gives a free writer the next message: answers before pure interest, types in their
// order.
func (m *Machine) send(now time.Time, s *stream) {
	if s.state != up || s.writing != nil {
		return
	}
	token := s.Rate.ready(&s.throttle)
	var turns []turn
	waiting := 0
	for _, l := range s.order {
		l.pacer.next = time.Time{}
		// ACK-9: the type says nothing meanwhile; what is wanted rides on its answer.
		if l.busy.on(s.ref()) {
			continue
		}
		if m.renewOutdated(now, l) {
			return
		}
		what := l.owes()
		if what == sayNothing {
			continue
		}
		switch at, rank := m.notBefore(now, l, what); {
		case now.Before(at):
			l.pacer.wait(later(at, token))
		case now.Before(token): // RATE-1
			l.pacer.wait(token)
			waiting++
		default:
			turns = append(turns, turn{l, what, rank})
		}
	}
	s.throttle.hold(waiting)
	slices.SortStableFunc(turns, byTurn)
	for _, t := range turns {
		if m.write(now, t.link, t.what) {
			return
		}
	}
}

// byTurn orders types that may speak, and that come in their own order.
func byTurn(a, b turn) int {
	// STREAM-9: answers go before interest.
	if alone := a.what == sayInterest; alone != (b.what == sayInterest) {
		if alone {
			return 1
		}
		return -1
	}
	return a.rank - b.rank
}

// owes is what may be said, in time.
func (l *link) owes() speech {
	switch changing := l.changing(); {
	case len(l.owed) > 0 && changing:
		return sayBoth
	case len(l.owed) > 0:
		return sayAnswer
	case changing:
		return sayInterest
	}
	return sayNothing
}

// changing says whether the server knows less than what is wanted. While a stream lingers
// nothing is said: either it ends, or all stays as it was.
func (l *link) changing() bool {
	if l.stream.watches == 0 {
		return false
	}
	if !l.requested {
		return l.wanted()
	}
	return len(l.names.pending) > 0 || l.owesNode() || l.nextForm() != l.form
}

// write composes the next message of a type and hands it to the writer. It says whether
// there was one: changes may have cancelled each other out.
func (m *Machine) write(now time.Time, l *link, what speech) bool {
	s := l.stream
	var a *answer
	if len(l.owed) > 0 {
		a = &l.owed[0]
		l.owed = l.owed[1:]
		m.readOn(now, s)
	}
	var node []byte
	if !s.nodeSent || s.owedNode[l.typ.URL] || m.config.NodeAlways || s.NodeAlways {
		node = s.node
	}
	var msg [][]byte
	if !s.Delta {
		msg = l.composeSotW(a, node)
	} else if whole := l.composeDelta(a, node); whole != nil {
		msg = [][]byte{whole}
	}
	m.answerBeside(now, l)
	if msg == nil {
		return false
	}
	n := Notice{
		Kind: NoticeRequest, Server: s.server, TypeURL: l.typ.URL, Stream: s.ref(),
		Exchange: &Exchange{Resources: l.names.count, Size: sizeOf(msg)},
	}
	if !s.Delta && l.form == wildExplicit {
		n.Resources++
	}
	if a != nil {
		n.Kind, n.Version, n.Nonce = NoticeAck, a.version, a.nonce
		if a.detail != nil {
			n.Kind, n.Message = NoticeNack, a.detail.Message
		}
	}
	l.freshSince, l.overtaken = m.serial, false
	if a == nil {
		l.pacer.sent(now, l)
	}
	for _, q := range s.quirks {
		q.sent(now, l, what, n.Size)
	}
	// NODE-1: the node goes with the first message alone.
	l.requested, s.nodeSent = true, true
	delete(s.owedNode, l.typ.URL)
	s.Rate.take(now, &s.throttle)
	s.writing = l
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

// written: what the message named is subscribed to from now on; timers start (gRFC A57).
func (m *Machine) written(now time.Time, l *link) {
	first := !l.left
	l.left = true
	fresh := l.fresh
	l.fresh, l.freshNames = nil, nil
	for _, sub := range fresh {
		switch {
		case !l.has(sub):
		// P-1: the timer waits for the wildcard's answer.
		case sub.withheld && l.form == wildLegacy && !l.answered:
			l.beside = append(l.beside, sub)
		case sub.seen > l.freshSince: // the answer was faster than the news of the request
		default:
			m.await(now, sub)
		}
	}
	m.answerBeside(now, l)
	if l.starting {
		if l.starting = false; l.star.ownedBy(l.stream) {
			m.await(now, l.star.self)
		}
	}
	for _, q := range l.stream.quirks {
		q.written(m, now, l, first, fresh)
	}
}

// spokenOf says that the server said something of a resource that is not held, so that its
// silence from now on means nothing: that it is refused, or has an error. What was said on
// an earlier stream does not count.
func (l *link) spokenOf(sub *subscription) bool {
	return l.answered && !sub.foreign() && (sub.status == StatusNacked || sub.status == StatusReceivedError)
}

// applyChanges brings the names up to what is wanted and returns what that changed. What
// nobody wants is forgotten here: the message that says so is being composed. What was asked
// for with parameters is taken back with the same.
func (l *link) applyChanges() (added []*subscription, removed []change) {
	if l.stream.watches == 0 {
		return nil, nil // lingering
	}
	for _, c := range l.names.settle() {
		sub := l.named([]byte(c.name))
		owned := sub != nil && l.owns(sub)
		if owned {
			sub.noted = false
		}
		switch {
		// DELTA-7: subscribed to again though it was before.
		case c.add && sub != nil:
			added = append(added, sub)
		case c.add:
		case owned:
			if sub.subscribed || c.told {
				removed = append(removed, c)
			}
			delete(l.spelled, sub)
			sub.timer = 0
			l.forget(sub)
			sub.subscribed = false
		case c.told:
			removed = append(removed, c)
		}
	}
	return added, removed
}

// named finds the subscription of a name as it is subscribed to; nil if there is none.
func (c *cache) named(name []byte) *subscription {
	sub, _, _ := c.identify(name)
	return sub
}

// subscribe marks subscriptions as named by the message being composed.
func (l *link) subscribe(subs []*subscription) {
	for _, sub := range subs {
		owned := l.owns(sub)
		if !owned || !sub.subscribed || sub.timer == 0 {
			l.fresh = append(l.fresh, sub)
		}
		sub.subscribed = sub.subscribed || owned
	}
}

// leaving says whether the message with the writer names a subscription for the first time.
func (l *link) leaving(sub *subscription) bool {
	if len(l.fresh) == 0 {
		return false
	}
	if l.freshNames == nil {
		l.freshNames = make(map[string]bool, len(l.fresh))
		for _, sub := range l.fresh {
			l.freshNames[sub.name] = true
		}
	}
	return l.freshNames[sub.name]
}

// leaveWild forgets what only the wildcard held.
func (l *link) leaveWild() {
	c := l.star
	if !c.ownedBy(l.stream) {
		return
	}
	c.forgetState()
	for sub := range l.owned() {
		if sub.of == c && !sub.noted {
			l.forget(sub)
		}
	}
}

// allWanted lists the subscriptions that are wanted by name, in order.
func (l *link) allWanted() []*subscription {
	subs := make([]*subscription, 0, l.watched)
	for name := range l.names.all() {
		if sub := l.named(name); sub != nil && sub.wanted() {
			subs = append(subs, sub)
		}
	}
	return subs
}
