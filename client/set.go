package client

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
)

// Set is one handler for many resources of a type that come and go. Its methods are safe
// for concurrent use and may be called inside its handler.
type Set struct {
	batcher
	kind    resource.Kind
	members map[string]*member // by canonical name; guarded by core.mu
}

// NewSet makes an empty set; see [Set.Add]. For ctx, Close and errors it is as
// [Client.Watch].
func (c *Client) NewSet(ctx context.Context, kind resource.Kind, h BatchHandler) (*Set, error) {
	if h == nil {
		return nil, ErrNilHandler
	}
	if _, err := c.prepare(ctx, kind, "any old-style name"); err != nil {
		return nil, err
	}
	s := &Set{kind: kind, members: map[string]*member{}}
	s.handler = h
	s.core.init(c, ctx, watchOptions{})
	if err := s.begin(); err != nil {
		return nil, err
	}
	return s, nil
}

// Add subscribes to resources; a name that is in the set already is left alone. Good names
// are added though others are not; the errors of those are joined. After the end of the
// set it returns the set's error.
func (s *Set) Add(names ...string) error {
	var errs []error
	for _, name := range names {
		if err := s.addName(name); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *Set) addName(name string) error {
	if err := s.Err(); err != nil {
		return err
	}
	w, err := s.client.prepare(s.ctx, s.kind, name)
	if err != nil {
		return err
	}
	m := &member{set: s, watch: w}
	w.Owner = m
	s.mu.Lock()
	if s.members[w.Name] != nil {
		s.mu.Unlock()
		return nil
	}
	s.members[w.Name] = m
	s.mu.Unlock()
	m.answer.expect(s.client)
	return s.run(w, s.kind)
}

// Remove ends the subscriptions to resources; names that are not in the set are ignored.
// What the server said of them before is not handed over any more.
func (s *Set) Remove(names ...string) {
	for _, name := range names {
		if r, err := s.client.table.Resolve(s.kind.TypeURL(), name); err == nil {
			s.removeName(r.Name)
		}
	}
}

func (s *Set) removeName(name string) {
	s.mu.Lock()
	m := s.members[name]
	delete(s.members, name)
	s.mu.Unlock()
	if m != nil {
		m.leave()
		s.client.engine.Stop(m.watch)
	}
}

// Stop ends the set, as [Watch.Stop] does.
func (s *Set) Stop() { s.end(ErrStopped) }

// member is one subscription of a set.
type member struct {
	set    *Set
	watch  *machine.Watch
	answer answer
	gone   atomic.Bool
}

// leave ends the member's part in the set.
func (m *member) leave() {
	m.gone.Store(true)
	m.answer.settle(m.set.client)
}

// Tell implements engine.Sink.
func (m *member) Tell(n *machine.Notice) {
	if m.gone.Load() || !m.set.alive() {
		return
	}
	ev := m.set.client.event(n)
	m.set.add(ev)
	if answers(ev) {
		m.answer.settle(m.set.client)
	}
}

// Flush implements engine.Sink.
func (m *member) Flush(last bool) { m.set.Flush(last) }
