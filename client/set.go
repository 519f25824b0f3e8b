package client

import (
	"context"
	"errors"

	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/follow"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
)

// Set is one handler for many resources of a type, which the program adds and removes. Its
// methods are safe for concurrent use and may be called inside its handler.
type Set struct {
	core
	handler BatchHandler[any]
	kind    resource.AnyType
	turn    chan struct{} // held by the dispatcher that calls the handler

	// Guarded by core.mu.
	members map[string]*member  // by canonical name, those of other spellings behind the first
	batches map[int32]*setBatch // by lane: dispatchers of several authorities may tell the set
}

// NewSet makes an empty set; see [Set.Add]. For ctx, Close and errors see [Client.Watch]; those of names
// are errors of Add.
func (c *Client) NewSet(ctx context.Context, kind resource.AnyType, h BatchHandler[any], opts ...WatchOption) (*Set, error) {
	if h == nil {
		return nil, ErrNilHandler
	}
	v, err := c.check(ctx, kind, options(opts))
	if err != nil {
		return nil, err
	}
	kind, form := c.serving(kind)
	if _, err := c.typeOf(kind, ""); err != nil {
		return nil, err
	}
	s := &Set{
		handler: wish{client: c, form: form}.wishingAll(h), kind: kind, turn: make(chan struct{}, 1),
		members: map[string]*member{}, batches: map[int32]*setBatch{},
	}
	s.init(ctx, c, v, isSet)
	s.watch.Owner = s
	if err := s.begin(); err != nil {
		return nil, err
	}
	return s, nil
}

// Add subscribes to resources; it ignores a name that is in the set already. Another spelling of
// such a name has events of its own, whose Event.Asked tells them apart. Add adds good names
// even if others are not, and joins the errors of the others. After the end of the set it
// returns the set's error. It blocks as [Client.Watch] does.
func (s *Set) Add(names ...string) error {
	var errs []error
	var added []*machine.Watch
	var members []*member
	for _, name := range names {
		m := &member{set: s, name: name}
		a, err := s.client.prepare(s.kind, name, s.view, &m.watch)
		if end := s.Err(); end != nil {
			return end
		}
		if err != nil {
			errs = append(errs, err)
		} else if s.enter(m, a) {
			added, members = append(added, &m.watch), append(members, m)
		}
	}
	if len(added) > 0 {
		errs = append(errs, s.run(added...))
	}
	for _, m := range members {
		if m.answer.over() { // removed meanwhile: that stop may have come before the start
			s.stop(&m.watch)
		}
	}
	return errors.Join(errs...)
}

// enter makes a member one of a name; it says no if there is one already or the set is over.
func (s *Set) enter(m *member, a asked) bool {
	m.tellTo(m, s.client, s.kind, a)
	m.answer.expect(s.client)
	s.mu.Lock()
	in := !s.state.over() && s.spelled(a.name, m.name) == nil
	if in {
		s.put(a.name, m)
		if m.batch = s.batches[m.watch.Lane]; m.batch == nil {
			m.batch = &setBatch{batcher: batcher{client: s.client}, set: s}
			s.batches[m.watch.Lane] = m.batch
		}
	}
	s.mu.Unlock()
	if !in {
		m.answer.settle(s.client)
	}
	return in
}

// Remove ends the subscriptions to resources; it ignores names that are not in the set. After it
// returns, no call of the handler begins that has events of them; see [Watch.Stop]. A name in a
// spelling that was not added removes all spellings of it.
func (s *Set) Remove(names ...string) {
	removed := false
	for _, name := range names {
		if canonical, err := s.client.canonical(s.kind, name); err == nil {
			removed = s.remove(canonical, name) || removed
		}
	}
	if removed && !engine.InHandler() {
		engine.Await(s.noTurn)
	}
}

// remove removes the member of a name as it is spelled, else those of all spellings.
func (s *Set) remove(canonical, name string) bool {
	var gone []*member
	s.mu.Lock()
	one, m := s.spelled(canonical, name), s.members[canonical]
	delete(s.members, canonical)
	for m != nil {
		next := m.next
		if one == nil || m == one {
			gone = append(gone, m)
		} else {
			s.put(canonical, m)
		}
		m = next
	}
	s.mu.Unlock()
	for _, m := range gone {
		m.leave()
	}
	return len(gone) > 0
}

// put adds a member, under the lock.
func (s *Set) put(canonical string, m *member) {
	// U-11: each spelling is told in its own.
	m.next, s.members[canonical] = s.members[canonical], m
}

// spelled is the member of a name in a spelling, nil if there is none, under the lock.
func (s *Set) spelled(canonical, name string) *member {
	m := s.members[canonical]
	for m != nil && m.name != name {
		m = m.next
	}
	return m
}

// noTurn says whether no call of the handler runs: one may have events of members that have left.
func (s *Set) noTurn() bool {
	select {
	case s.turn <- struct{}{}:
		<-s.turn
		return true
	default:
		return false
	}
}

// clear ends all subscriptions, at the end of the set.
func (s *Set) clear() {
	s.mu.Lock()
	members := s.listed()
	s.members = nil
	s.mu.Unlock()
	for _, m := range members {
		m.leave()
	}
}

// all lists the members.
func (s *Set) all() []*member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed()
}

// listed is all, under the lock.
func (s *Set) listed() []*member {
	all := make([]*member, 0, len(s.members))
	for _, m := range s.members {
		for ; m != nil; m = m.next {
			all = append(all, m)
		}
	}
	return all
}

// Stop ends the set, as [Watch.Stop] does.
func (s *Set) Stop() { s.quit() }

// Done is closed when the set has ended; see [Watch.Done].
func (s *Set) Done() <-chan struct{} { return s.core.Done() }

// Err is nil while the set lives, then says why it ended: see [Watch.Err].
func (s *Set) Err() error { return s.core.Err() }

// setBatch collects the events of a lane; owned by its dispatcher.
type setBatch struct {
	batcher
	set *Set
}

// deliver hands a batch over, without what is of members that left meanwhile: one of the
// same name may have come since. There is news for each event.
func (l *setBatch) deliver(b Batch[any], of []news) {
	s := l.set
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.handle(func() {
		stay := b.Events[:0]
		for i, ev := range b.Events {
			if !of[i].answer.over() {
				stay = append(stay, ev)
			}
		}
		clear(b.Events[len(stay):])
		b.Events = stay
		if len(b.Events) > 0 || b.Last {
			s.handler(b)
		}
	})
}

// member is one subscription of a set.
type member struct {
	subscription
	set   *Set
	name  string    // as it was added
	batch *setBatch // of its lane
	next  *member   // of the same canonical name, in another spelling; guarded by the set's mu
}

// leave ends the member's part in the set.
func (m *member) leave() {
	m.answer.settle(m.set.client)
	m.set.client.engine.Stop(&m.watch)
	if tree := m.tree.Load(); tree != nil {
		tree.End()
	}
}

// Tell implements engine.Sink.
func (m *member) Tell(n *machine.Notice) bool {
	if !m.alive() {
		return false
	}
	if taken, wantsFlush := m.tell(n, m.set.client, m.set.view, m); taken {
		return wantsFlush
	}
	return m.hear(m.set.client.event(n))
}

func (m *member) alive() bool { return !m.answer.over() && m.set.alive() }

// Alive implements [follow.Sink].
func (m *member) Alive() bool { return m.alive() }

// Hear implements [follow.Sink].
func (m *member) Hear(t *follow.Told) bool { return m.hear(m.set.client.followed(t)) }

func (m *member) hear(ev Event[any]) bool {
	m.batch.note(&m.answer, &ev)
	ev.Asked = m.name
	return m.batch.add(ev, m.batch.deliver)
}

// Flush implements engine.Sink.
func (m *member) Flush(last bool) {
	m.batch.pending = m.batch.pending && !last
	m.batch.flush(last, m.batch.deliver)
}
