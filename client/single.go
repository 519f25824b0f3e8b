package client

import (
	"github.com/xdswatch/xdswatch/internal/follow"
	"github.com/xdswatch/xdswatch/internal/machine"
)

// single is a watch of one resource.
type single struct {
	handler caller
	Watch
}

// Tell implements engine.Sink.
func (s *single) Tell(n *machine.Notice) bool {
	if !s.alive() {
		return false
	}
	if taken, wantsFlush := s.tell(n, s.view, s); taken {
		return wantsFlush
	}
	return s.hear(s.client.event(n))
}

// TellAll implements engine.Crowd.
func (s *single) TellAll(n *machine.Notice, to []*machine.Watch, next *int) (wantsFlush bool) {
	if follow.Redirects(n) {
		*next++
		return s.Tell(n)
	}
	r := s.client.roundOf(n)
	r.to, r.next, r.wantsFlush = to, next, false
	defer func() {
		if r.at != nil {
			s := r.at
			r.at = nil
			s.fail(recover())
			s.called()
		}
	}()
	for r.more() {
		r.at.handler.callAll(r)
	}
	return r.wantsFlush
}

// round is the event of a notice, for all watches that are told of it in one lane, and tells those that are told
// one after the other.
type round struct {
	notice     *machine.Notice
	event      Event[any]
	to         []*machine.Watch
	next       *int    // of to
	at         *single // whose handler is to be called, or runs; nil once it has returned
	wantsFlush bool
}

func (c *Client) roundOf(n *machine.Notice) *round {
	r, ok := n.Owner.(*round)
	if !ok {
		r = &round{notice: n, event: c.newEvent(n)}
		n.Owner = r
	}
	return r
}

// more goes on to the next handler, unless there is one that was not called.
func (r *round) more() bool {
	for r.at == nil && *r.next < len(r.to) && !r.wantsFlush {
		s, ok := r.to[*r.next].Owner.(*single)
		if !ok {
			break
		}
		*r.next++
		switch {
		case s.tree.Load() != nil:
			r.wantsFlush = s.Tell(r.notice)
		case s.alive():
			r.at = s
		}
	}
	return r.at != nil
}

// called is called when the handler has returned.
func (r *round) called() {
	s := r.at
	r.at = nil
	s.called()
	s.answer.take(&s.client.answers, &r.event)
}

// Alive implements engine.Sink and [follow.Sink].
func (s *single) Alive() bool { return s.alive() }

// Hear implements [follow.Sink].
func (s *single) Hear(t *follow.Told) bool { return s.hear(s.client.followed(t)) }

func (s *single) hear(ev Event[any]) bool {
	s.handle(func() { s.handler.call(ev) })
	s.answer.take(&s.client.answers, &ev)
	return false
}

// Flush implements engine.Sink.
func (s *single) Flush(bool) {}

// caller calls a handler of single events, whatever the type of its values is.
type caller interface {
	// call is for an event that nobody else is told of.
	call(ev Event[any])
	// callAll is for the one at which a round is, and may be for more of it.
	callAll(r *round)
}

func (h Handler[T]) call(ev Event[any]) { h(Typed[T](ev)) }

func (h Handler[T]) callAll(r *round) {
	for ev, same := Typed[T](r.event), true; same; {
		h(ev)
		if r.called(); !r.more() {
			return
		}
		h, same = r.at.handler.(Handler[T])
	}
}

// event makes the event of a notice, once for all watches that are told of it in one lane.
func (c *Client) event(n *machine.Notice) Event[any] {
	if n.Owner == nil && len(n.To)+len(n.All) == 1 { // it is for nobody else
		return c.newEvent(n)
	}
	return c.roundOf(n).event
}
