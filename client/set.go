package client

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/resource"
)

// Set is one handler for many resources of a type, which the program adds and removes. Its
// methods are safe for concurrent use and may be called inside its handler.
type Set struct {
	core
	kind resource.AnyType
	to   batcher // as it is made for each lane

	mu      sync.Mutex         // guards the fields below
	members map[string]*part   // by canonical name, those of other spellings behind the first
	batches map[int32]*batcher // by lane: dispatchers of several authorities may tell the set
}

// NewSet makes an empty set; see [Set.Add]. For ctx, Close and errors see [Client.Watch]; those of names
// are errors of Add.
func (c *Client) NewSet(ctx context.Context, kind resource.AnyType, h BatchHandler[any], opts ...WatchOption) (*Set, error) {
	if h == nil {
		return nil, ErrNilHandler
	}
	v, err := c.check(ctx, kind, opts)
	if err != nil {
		return nil, err
	}
	kind, form := c.kinds.serving(kind)
	if _, err := c.kinds.typeOf(kind); err != nil {
		return nil, c.configError(kind, "", err)
	}
	s := &Set{kind: kind, members: map[string]*part{}, batches: map[int32]*batcher{}}
	s.init(ctx, v, isSet)
	s.to = newBatcher(&s.core, h, form)
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
	var added []*subscription
	for _, name := range names {
		m := newMember(name)
		a, err := s.prepare(s.kind, name, false, &m.watch)
		if end := s.Err(); end != nil {
			return end
		}
		if err != nil {
			errs = append(errs, err)
		} else if s.enter(m, a) {
			added = append(added, m.subscription)
		}
	}
	return errors.Join(append(errs, s.run(added...))...)
}

// newMember makes a member and its subscription, in one piece of memory: there may be a million.
func newMember(name string) *part {
	m := &struct {
		part
		of subscription
	}{part: part{name: name}}
	m.subscription = &m.of
	return &m.part
}

// enter makes a member one of a name; it says no if there is one already or the set is over.
func (s *Set) enter(m *part, a asked) bool {
	m.tellTo(m, s.view, a)
	s.mu.Lock()
	defer s.mu.Unlock()
	// U-11: each spelling is told in its own.
	if s.answer.over() || s.spelled(a.Name, m.name) != nil {
		return false
	}
	s.put(a.Name, m)
	if m.to = s.batches[m.watch.Lane]; m.to == nil {
		b := s.to
		m.to, s.batches[m.watch.Lane] = &b, &b
	}
	return true
}

// Remove ends the subscriptions to resources; it ignores names that are not in the set. After it
// returns, no call of the handler begins that has events of them; see [Set.Stop]. A name in a
// spelling that was not added removes all spellings of it.
func (s *Set) Remove(names ...string) {
	for _, name := range names {
		if a, err := s.read(s.kind, name, false); err == nil { // what is wrong is not in the set
			s.remove(a.Name, name)
		}
	}
	if engine.InHandler() {
		return
	}
	var over atomic.Bool // a call that may have events of them
	s.client.engine.After(s.lanes(), s.calledAt, func() { over.Store(true) })
	s.client.engine.Await(s.lanes(), over.Load)
}

// remove removes the member of a name as it is spelled, else those of all spellings.
func (s *Set) remove(canonical, name string) {
	var gone []*part
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
		m.leave(s.client)
	}
}

// put adds a member, under the lock.
func (s *Set) put(canonical string, m *part) {
	m.next = s.members[canonical]
	s.members[canonical] = m
}

// spelled finds the member of a name in a spelling, under the lock; nil if there is none.
func (s *Set) spelled(canonical, name string) *part {
	m := s.members[canonical]
	for m != nil && m.name != name {
		m = m.next
	}
	return m
}

// all lists the members.
func (s *Set) all() []*part {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*part, 0, len(s.members))
	for _, m := range s.members {
		for ; m != nil; m = m.next {
			all = append(all, m)
		}
	}
	return all
}
