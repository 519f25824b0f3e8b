package machine

import (
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// owe notes the reply to a response. In delta the client owes a reply to each response that has a nonce. In state of the
// world it owes one to the newest, which is one to those before it too.
func (m *Machine) owe(now time.Time, resp *response) {
	l := resp.link
	a := reply{version: resp.Version, nonce: resp.Nonce}
	if resp.nacked() {
		// ACK-4: a NACK has a code that is not OK.
		a.detail = &wire.Status{Code: codeInvalidArgument, Message: resp.message()}
	}
	switch {
	case !l.stream.Delta:
		l.replies = append(l.replies[:0], a)
	// ACK-12: a delta response without a nonce is not answered: the server would take that for a change of interest.
	case a.nonce == "":
		m.logType(l, warning, "a delta response has no nonce; it cannot be answered")
	default:
		l.replies = append(l.replies, a)
	}
	for _, q := range l.stream.quirks {
		q.replying(m, now, resp)
	}
}

// send gives a free writer the next message: replies before requests that only change interest, types in their order.
// It returns when something else that is owed may be sent; zero if nothing is owed, or if the writer is not free.
func (m *Machine) send(now time.Time, s *stream) (again time.Time) {
	// STREAM-9: one message at a time is with the writer.
	if s.state != up || s.writing != nil {
		return time.Time{}
	}
	token := s.Rate.ready(&s.throttle)
	var turns []turn
	waiting := 0
	for _, l := range s.links {
		// ACK-9: while a response is worked on, the type sends nothing; the reply then also says what is wanted. The response
		// may be of the stream before: then the first request lists the versions that it gives.
		if l.busy != nil {
			continue
		}
		switch at, outdated := m.restartAt(now, l); {
		// WILD-3: a wildcard begins with a new stream.
		case outdated && !now.Before(at):
			m.restartPaced(now, s)
			return time.Time{}
		case outdated: // until then what is owed goes on this stream
			again = sooner(again, at)
		}
		what := l.debt()
		if what == (debt{}) {
			continue
		}
		switch at, doubts := l.notBefore(what); {
		case now.Before(at):
			again = sooner(again, later(at, token))
		case now.Before(token): // RATE-1
			again = sooner(again, token)
			waiting++
		default:
			turns = append(turns, turn{l, what, doubts})
		}
	}
	s.throttle.noteWaiting(waiting)
	slices.SortStableFunc(turns, byTurn)
	for _, t := range turns {
		if m.write(now, t.link, t.what) {
			return time.Time{}
		}
	}
	return again
}

// byTurn puts replies before requests that only change interest, and of these types that are doubted least before
// others; else the order of the types stays.
func byTurn(a, b turn) int {
	// STREAM-9: replies go before interest.
	if a.what.reply != b.what.reply {
		if a.what.reply {
			return -1
		}
		return 1
	}
	return a.doubts - b.doubts
}

// debt is what the client owes the server; [link.notBefore] says when it may be sent.
func (l *link) debt() debt { return debt{reply: len(l.replies) > 0, interest: l.changing()} }

// changing says whether a request is owed because something else is wanted than what the server was told. While a stream
// lingers none is: either the stream ends, or a watch begins again.
func (l *link) changing() bool {
	// STREAM-6: nothing is said while the stream lingers.
	if l.stream.watches == 0 {
		return false
	}
	// STREAM-3, ONDEMAND-2: a type without interest says nothing; a first request without names subscribes to everything.
	if !l.requested {
		return l.wanted()
	}
	// NODE-5: changed parameters of the node are interest too.
	return l.names.Pending() || l.owesNode() || l.nextForm() != l.form
}

// write composes the next message of a type and hands it to the writer. It says whether
// there was one: changes may have cancelled each other out.
func (m *Machine) write(now time.Time, l *link, what debt) bool {
	s := l.stream
	var a reply
	if what.reply {
		// ACK-1, ACK-5: each reply, and the error in it, is sent once.
		a, l.replies = l.replies[0], l.replies[1:]
	}
	var node []byte
	// NODE-1, NODE-5: the first message of a stream has the node, and that of a type whose parameters were changed.
	if s.owedNode == nil || s.owedNode[l.cache.typ.URL] || s.NodeAlways {
		node = s.node
	}
	compose := l.composeSotW
	if s.Delta {
		compose = l.composeDelta
	}
	msg := compose(what, a, node)
	if msg == nil {
		m.sent(now, l) // names beside a legacy wildcard need no request
		return false
	}
	n := m.tellOf(s.ref, NoticeRequest, l.cache.typ.URL)
	n.Exchange = &Exchange{Size: sizeOf(msg)}
	switch {
	case !what.reply:
		l.pace(now)
	case a.detail == nil:
		n.Kind, n.Version, n.Nonce = NoticeAck, a.version, a.nonce
	default:
		n.Kind, n.Version, n.Nonce, n.Message = NoticeNack, a.version, a.nonce, a.detail.Message
	}
	for _, q := range s.quirks {
		q.requested(now, l, what, n.Size)
	}
	l.requested = true
	if delete(s.owedNode, l.cache.typ.URL); s.owedNode == nil {
		s.owedNode = map[string]bool{}
	}
	s.Rate.spend(now, &s.throttle)
	s.writing = l
	if !s.heldBack.IsZero() {
		m.readOn(now, s)
	}
	m.fx.Send = append(m.fx.Send, Send{s.ref, msg})
	return true
}

func sizeOf(msg [][]byte) (size int) {
	for _, part := range msg {
		size += len(part)
	}
	return size
}

// written notes that a message has left, so that the timers of the names in it start (gRFC A57).
func (m *Machine) written(now time.Time, l *link) {
	first := !l.written
	l.written = true
	fresh := m.sent(now, l)
	for _, q := range l.stream.quirks {
		q.written(m, now, l, first, fresh)
	}
}

// sent decides what follows for the names that a message has anew, once it has left: their timers begin, or they do not
// exist. It returns their subscriptions.
func (m *Machine) sent(now time.Time, l *link) (fresh []*subscription) {
	fresh = l.message.fresh
	l.message = message{}
	for _, sub := range fresh {
		if !l.has(sub) {
			continue
		}
		switch {
		// WILD-2, P-1: the full state that answered the legacy wildcard on this stream does not have the name.
		case l.lastFullState != 0 && l.form == wildLegacy && sub.wanted() && !sub.exists() && !sub.isCollection():
			m.takeDeletion(now, sub, ReasonAbsent)
		default:
			// LKG-5: a full state that came before the request left does not lack it.
			if sub.unanswered() && !sub.usable() && sub.seen.before(l.lastFullState) {
				sub.seen = l.lastFullState
			}
			m.await(now, sub) // DNE-2: the request has left
		}
	}
	return fresh
}
