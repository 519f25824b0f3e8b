package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
)

// session is a client, its subscriptions, and where their events go.
type session struct {
	*target
	client *client.Client
	output *output
	kinds  subscription.Kinds // owned by the goroutine that takes commands
	once   bool
	hints  *hints

	mu     sync.Mutex
	subs   map[subscription.Subscription]*subscribed
	inHand map[uint64]bool // streams whose last response the client still works on, and so may not have answered
	owed   map[uint64]bool // with --once: those of inHand when everything was answered, which the end waits for
	ending *time.Timer     // with --once: everything was answered; nil before that
}

// subscribed is a subscription that stands.
type subscribed struct {
	subscription.Given
	name  string        // in events
	watch *client.Watch // nil if err is not
	err   error         // why it could not begin

	// Guarded by session.mu.
	answered, bad bool
	state         report.State // by its events: the client's own dump does not know names with directives
}

// newSession makes the client; with once the session ends when every subscription is answered.
func newSession(t *target, p report.Printer, once bool) (*session, error) {
	s := &session{
		target: t, output: newOutput(p), once: once, hints: newHints(t.boot, t.variant.value, t.notes),
		subs: map[subscription.Subscription]*subscribed{}, inHand: map[uint64]bool{},
	}
	var err error
	s.client, err = t.client(s.trace())
	return s, err
}

// begin begins the subscriptions that were given.
func (s *session) begin(subs []subscription.Given) {
	for _, sub := range s.watch(subs...) {
		fmt.Fprintf(s.notes, "xdsctl: %s %.100q is given twice\n", subscription.Short(sub.TypeURL), sub.Name)
	}
}

// watch begins subscriptions and says which stand already. All count for --once before the
// first is answered.
func (s *session) watch(subs ...subscription.Given) (twice []subscription.Given) {
	var wildcards, others []*subscribed
	s.mu.Lock()
	if s.output.ended() {
		subs = nil // nobody would be told
	}
	for _, sub := range subs {
		if s.subs[sub.Subscription] != nil {
			twice = append(twice, sub)
			continue
		}
		begun := s.newSubscribed(sub)
		s.subs[sub.Subscription] = begun
		if sub.Name == subscription.Wildcard {
			wildcards = append(wildcards, begun)
		} else {
			others = append(others, begun)
		}
	}
	s.mu.Unlock()
	for _, sub := range append(wildcards, others...) { // WILD-3: a legacy wildcard after names would take a new stream
		sub.watch, sub.err = s.start(sub)
		if sub.err != nil {
			s.tell(sub, client.Event[any]{Kind: client.EventFailed, Type: sub.TypeURL, Name: sub.name, Err: sub.err})
		}
	}
	return twice
}

func (s *session) newSubscribed(sub subscription.Given) *subscribed {
	return &subscribed{Given: sub, name: s.plan.nameOf(sub.Subscription), state: report.State{
		Type: sub.TypeURL, Name: sub.Name, Authority: report.AuthorityOf(sub.Name), Status: report.StatusRequested,
	}}
}

func (s *session) start(sub *subscribed) (*client.Watch, error) {
	ctx, kind, opts := context.Background(), s.kinds.Of(sub.TypeURL), s.plan.options(sub.Subscription)
	asked := sub.Asked() // C-6: the server is asked in this spelling
	if !sub.Collection {
		return s.client.Watch(ctx, kind, asked, func(ev client.Event[any]) { s.tell(sub, ev) }, opts...)
	}
	return s.client.WatchAll(ctx, kind, asked, func(b client.Batch[any]) {
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
	r := record(ev, sub.about(ev))
	s.mu.Lock()
	stands := s.subs[sub.Subscription] == sub
	if stands && !member {
		sub.state.Note(r) // a dump knows what is printed before it
	}
	s.mu.Unlock()
	if !stands {
		return
	}
	if !s.output.print(r) {
		return // it comes too late to be an answer
	}
	s.hint(sub, ev)
	if member {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := sub.answered
	if sub.note(ev.Kind); !before {
		s.finishIfAnswered()
	}
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

// received notes that a response of a stream came.
func (s *session) received(stream uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inHand[stream] = true
}

// handled notes that the response of a stream was handled to its end and answered, or that the stream ended.
func (s *session) handled(stream uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inHand, stream)
	if s.owed[stream] {
		delete(s.owed, stream)
		s.finishUnlessOwed()
	}
}

// courtesy is how long a session stays after its last first answer and the end of the responses that were in hand
// then, so that the server gets the ACK or NACK that it is owed.
const courtesy = 100 * time.Millisecond

// mostCourtesy is how long it stays for the next of those responses to end: whoever reads the output may have stopped.
const mostCourtesy = 5 * time.Second

// finishIfAnswered ends a session that is to end with the last first answer, once the time of courtesy is over, unless
// a command brings one more subscription meanwhile. The caller holds mu.
func (s *session) finishIfAnswered() {
	if !s.once || len(s.subs) == 0 || s.unanswered() > 0 {
		return
	}
	s.owed = maps.Clone(s.inHand) // without those that come later: a server may send one after another
	s.finishUnlessOwed()
}

// inputEnded notes that no command brings one more subscription: with --once the session ends if there is none.
func (s *session) inputEnded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.once && len(s.subs) == 0 {
		s.output.end(nil)
	}
}

// finishUnlessOwed ends the session after the time of courtesy, unless responses are in hand. The caller holds mu.
func (s *session) finishUnlessOwed() {
	wait := courtesy
	if len(s.owed) > 0 {
		wait = mostCourtesy
	}
	if s.ending != nil {
		s.ending.Reset(wait)
		return
	}
	s.ending = time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.unanswered() == 0 {
			s.output.end(nil)
		}
	})
}

// close stops printing and closes the client.
func (s *session) close() {
	s.output.end(nil)
	s.closeClient(s.client)
}

// result is the outcome for --once and the output. The caller has ended the session.
func (s *session) result() error {
	if err := s.output.fault(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.subs {
		if s.once && (sub.bad || !sub.answered) {
			return &statusError{statusBad, nil}
		}
	}
	return nil
}

// waiting is how many subscriptions had no answer.
func (s *session) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unanswered()
}

// unanswered is waiting for who holds mu.
func (s *session) unanswered() (n int) {
	for _, sub := range s.subs {
		if !sub.answered {
			n++
		}
	}
	return n
}
