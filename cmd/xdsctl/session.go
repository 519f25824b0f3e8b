package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
)

// session is one run of `xdsctl watch`: a client, its subscriptions, and where their
// events go.
type session struct {
	client *client.Client
	kinds  subscription.Kinds // owned by the goroutine that takes commands
	plan   *plan
	node   string // id
	once   bool
	hints  *hints

	out     sync.Mutex // held while something is printed, which may block
	printer report.Printer

	mu     sync.Mutex
	subs   map[subscription.Subscription]*subscribed
	done   chan struct{} // closed when there is nothing more to print
	ending bool          // with --once: everything is answered
	err    error         // of the output
}

// subscribed is a subscription that stands.
type subscribed struct {
	subscription.Given
	name  string        // in events
	watch *client.Watch // nil if err is not
	err   error         // why it could not begin

	// Guarded by session.mu.
	answered, bad bool
	progress      progress
}

func newSession(p report.Printer, plan *plan, node string, once bool, h *hints) *session {
	return &session{
		plan: plan, node: node, once: once, hints: h, printer: p,
		subs: map[subscription.Subscription]*subscribed{}, done: make(chan struct{}),
	}
}

// watch begins subscriptions and says which stand already. All count for --once before the
// first is answered.
func (s *session) watch(subs ...subscription.Given) (twice []subscription.Given) {
	var fresh []*subscribed
	s.mu.Lock()
	for _, sub := range subs {
		if s.subs[sub.Subscription] != nil {
			twice = append(twice, sub)
			continue
		}
		s.subs[sub.Subscription] = &subscribed{Given: sub, name: s.plan.nameOf(sub.Subscription)}
		fresh = append(fresh, s.subs[sub.Subscription])
	}
	s.mu.Unlock()
	for _, sub := range fresh {
		sub.watch, sub.err = s.start(sub)
		if sub.err != nil {
			s.tell(sub, client.Event[any]{Kind: client.EventFailed, Type: sub.TypeURL, Name: sub.name, Err: sub.err})
		}
	}
	return twice
}

func (s *session) start(sub *subscribed) (*client.Watch, error) {
	ctx, kind, opts := context.Background(), s.kinds.Of(sub.TypeURL), s.plan.options(sub.Subscription)
	if !sub.Collection {
		return s.client.Watch(ctx, kind, sub.Name, func(ev client.Event[any]) { s.tell(sub, ev) }, opts...)
	}
	return s.client.WatchAll(ctx, kind, sub.Name, func(b client.Batch[any]) {
		for _, ev := range b.Events {
			s.tell(sub, ev)
		}
	}, opts...)
}

// unwatch ends a subscription and says whether there was one.
func (s *session) unwatch(sub subscription.Subscription) bool {
	s.mu.Lock()
	stood := s.subs[sub]
	delete(s.subs, sub)
	s.finishIfAnswered()
	s.mu.Unlock()
	if stood != nil && stood.watch != nil {
		stood.watch.Stop()
	}
	return stood != nil
}

// tell prints an event of a subscription, unless that has ended.
func (s *session) tell(sub *subscribed, ev client.Event[any]) {
	member := sub.Collection && ev.Name != sub.name
	s.mu.Lock()
	stands := s.subs[sub.Subscription] == sub
	if stands && !member {
		sub.progress.note(ev) // a dump knows what is printed before it
	}
	s.mu.Unlock()
	if !stands {
		return
	}
	s.print(record(ev, sub.about(ev)))
	s.hint(sub, ev)
	if member {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sub.note(ev.Kind)
	s.finishIfAnswered()
}

// note keeps what the newest answer was; trouble beside a value, and its end, are none.
func (sub *subscribed) note(k client.EventKind) {
	switch k {
	case client.EventUpdated, client.EventSynced:
		sub.answered, sub.bad = true, false
	case client.EventDoesNotExist, client.EventFailed:
		sub.answered, sub.bad = true, true
	case client.EventAmbientError, client.EventRecovered:
	}
}

// courtesy is how long a session stays after its last first answer, so that the server
// gets the ACK or NACK that it is owed.
const courtesy = 100 * time.Millisecond

// finishIfAnswered ends a session that is to end with the last first answer. The caller
// holds mu.
func (s *session) finishIfAnswered() {
	if !s.once || s.ending || len(s.subs) == 0 {
		return
	}
	for _, sub := range s.subs {
		if !sub.answered {
			return
		}
	}
	s.ending = true
	time.AfterFunc(courtesy, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.finish(nil)
	})
}

// finish ends the session; the caller holds mu.
func (s *session) finish(err error) {
	if !s.finished() {
		s.err = err
		close(s.done)
	}
}

func (s *session) finished() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// print prints a record, unless the session is finished.
func (s *session) print(r report.Record) {
	s.out.Lock()
	defer s.out.Unlock()
	if s.finished() {
		return
	}
	if err := s.printer.Print(r); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.finish(fmt.Errorf("standard output: %w", err))
	}
}

// end stops printing and closes the client. A handler whose write blocks is waited for no
// longer than a moment.
func (s *session) end() {
	const patience = 200 * time.Millisecond
	s.mu.Lock()
	s.finish(nil)
	s.mu.Unlock()
	_ = s.client.Close() // it has no other result
	select {
	case <-s.client.Done():
	case <-time.After(patience):
	}
}

// result is the outcome for --once and the output. The caller has ended the session.
func (s *session) result() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return &statusError{statusFailed, s.err}
	}
	for _, sub := range s.subs {
		if s.once && (sub.bad || !sub.answered) {
			return &statusError{statusBad, nil}
		}
	}
	return nil
}

// waiting is how many subscriptions had no answer.
func (s *session) waiting() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.subs {
		if !sub.answered {
			n++
		}
	}
	return n
}
