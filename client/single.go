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
	var at *single // whose handler runs
	defer func() {
		if at != nil {
			at.fail(recover())
			at.called()
		}
	}()
	for *next < len(to) && !wantsFlush {
		s, ok := to[*next].Owner.(*single)
		if !ok {
			break
		}
		*next++
		switch {
		case s.tree.Load() != nil:
			wantsFlush = s.Tell(n)
		case s.alive():
			at = s
			s.handler.callNext(r)
			at = nil
			s.called()
			s.answer.take(&s.client.answers, &r.event)
		}
	}
	return wantsFlush
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

// round is an event for all watches that are told of it in one lane, one after the other.
type round struct {
	event Event[any]
	typed any // the event as the last handler took it: a pointer to an Event of its type
}

func (c *Client) roundOf(n *machine.Notice) *round {
	r, ok := n.Owner.(*round)
	if !ok {
		r = &round{event: c.newEvent(n)}
		n.Owner = r
	}
	return r
}

// event makes the event of a notice, once for all watches that are told of it in one lane.
func (c *Client) event(n *machine.Notice) Event[any] {
	if n.Owner == nil && len(n.To)+len(n.All) == 1 { // it is for nobody else
		return c.newEvent(n)
	}
	return c.roundOf(n).event
}

// caller calls a handler of single events, whatever the type of its values is.
type caller interface {
	// call is for an event that nobody else is told of: it costs no allocation.
	call(Event[any])
	// callNext is for the next watch of a round, which keeps the event as this one takes it.
	callNext(*round)
}

func (h Handler[T]) call(ev Event[any]) { h(Typed[T](ev)) }

func (h Handler[T]) callNext(r *round) {
	ev, ok := any(&r.event).(*Event[T])
	if !ok {
		ev, ok = r.typed.(*Event[T])
	}
	if !ok {
		typed := Typed[T](r.event)
		ev, r.typed = &typed, &typed
	}
	h(*ev)
}
