package client

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/internal/follow"
	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// collection is a watch of a wildcard, a glob or a list collection.
type collection struct {
	Watch
	handler  BatchHandler[any]
	batch    batcher
	name     string             // of the collection
	caughtUp bool               // it was told of what was held when it began
	members  *follow.Collection // nil of a wildcard and a glob until a member is redirected
}

func (c *Client) newCollection(ctx context.Context, v *view) *collection {
	s := &collection{batch: batcher{client: c}}
	s.init(ctx, c, v, isCollection)
	return s
}

// listOf reads the name of a list collection of a type, nil if that is no URL; ok says whether a text is one.
func (c *Client) listOf(kind resource.AnyType, collection string, o watchOptions) (l *xdstp.Locator, ok bool, err error) {
	if !xdstp.IsXDSTP(collection) && !xdstp.IsFile(collection) {
		// LEDS-1: with "/*" at its end it would be a glob.
		return nil, o.list && collection != "" && collection != wildcard && !strings.HasSuffix(collection, "/*"), nil
	}
	at, err := c.locator(kind, collection, true, o.received)
	if err != nil {
		return nil, false, err
	}
	if at.Scheme != xdstp.SchemeFile && !at.Name.IsListCollection(kind.TypeURL()) {
		return nil, false, nil
	}
	if _, ok := at.Entry(); ok {
		return nil, false, fmt.Errorf("%w: an inline entry is one resource", ErrCollection)
	}
	return &at, true, nil
}

// prepareList prepares the watch of a list collection; at is nil if its name is no URL.
func (s *collection) prepareList(kind resource.AnyType, name string, at *xdstp.Locator) error {
	c := s.client
	if at != nil {
		name = at.String()
	}
	if _, err := c.typeOf(kind, name); err != nil {
		return err
	}
	if err := s.placeList(c.directoryOf(kind), name, at); err != nil {
		return c.configError(kind, name, cause(err))
	}
	s.name, s.caughtUp = name, true
	s.members = follow.List(host{c, kind, s.view, s.watch.Lane}, kind.TypeURL(), name, at, &s.watch, s)
	s.tree.Store(s.members.Tree)
	s.watch.Owner = s.members.Sink()
	return nil
}

// placeList finds the servers of a list collection.
func (s *collection) placeList(directory listing.Kind, name string, at *xdstp.Locator) error {
	if at != nil {
		_, err := s.client.prepareAt(directory, *at, s.view, &s.watch)
		return err
	}
	r, err := s.view.table.Resolve(directory.TypeURL(), name)
	if err != nil {
		return err
	}
	return s.client.place(directory, r, s.view, &s.watch)
}

// prepareAll prepares the watch of a wildcard or a glob.
func (s *collection) prepareAll(kind resource.AnyType, collection string) error {
	c := s.client
	r, err := s.view.table.ResolveCollection(kind.TypeURL(), collection)
	if err == nil {
		err = c.inContext(kind, &r, true)
	}
	if err != nil {
		return c.configError(kind, collection, err)
	}
	s.watch.Owner, s.watch.Wildcard, s.name = s, true, r.Name
	return c.place(kind, r, s.view, &s.watch)
}

// Tell implements engine.Sink, of a wildcard or a glob.
func (s *collection) Tell(n *machine.Notice) bool {
	if n.Kind == machine.NoticeCaughtUp {
		s.caughtUp = true
		return s.batch.wantFlush()
	}
	if !s.alive() {
		return false
	}
	if s.members == nil && follow.Redirects(n) {
		kind := s.client.kindOf(n.TypeURL)
		s.members = follow.Members(host{s.client, kind, s.view, s.watch.Lane}, kind.TypeURL(), s.name, &s.watch, s)
		s.tree.Store(s.members.Tree)
	}
	if s.members != nil {
		if taken, wantsFlush := s.members.Take(n); taken {
			return wantsFlush
		}
	}
	return s.add(s.client.event(n))
}

// Alive implements [follow.Sink].
func (s *collection) Alive() bool { return s.alive() }

// Hear implements [follow.Sink].
func (s *collection) Hear(t *follow.Told) bool { return s.add(s.client.followed(t)) }

func (s *collection) add(ev Event[any]) bool {
	if ev.Name == s.name {
		s.batch.note(&s.answer, &ev)
	}
	return s.batch.add(ev, s.deliver)
}

// Flush implements engine.Sink.
func (s *collection) Flush(last bool) {
	s.batch.pending = s.batch.pending && !last
	s.batch.flush(last && s.caughtUp, s.deliver)
}

func (s *collection) deliver(b Batch[any], _ []news) { s.handle(func() { s.handler(b) }) }

// maxBatch is how many events a batch holds at most.
const maxBatch = 512

// batcher collects the events of a lane; owned by its dispatcher.
type batcher struct {
	client  *Client
	events  []Event[any]
	pending bool   // a flush will come
	open    bool   // a batch that was not the last was handed over
	news    []news // that are among the events, in their order
}

// add says whether a flush is to be asked for.
func (b *batcher) add(ev Event[any], deliver func(Batch[any], []news)) bool {
	if n := len(b.events); n == cap(b.events) { // few copies: most events are in batches that are full
		b.events = slices.Grow(b.events, min(max(1, 7*n), maxBatch-n))
	}
	b.events = append(b.events, ev)
	if len(b.events) == maxBatch {
		b.handOver(false, deliver)
	}
	return b.wantFlush()
}

func (b *batcher) wantFlush() bool {
	fresh := !b.pending
	b.pending = true
	return fresh
}

func (b *batcher) flush(last bool, deliver func(Batch[any], []news)) {
	if len(b.events) > 0 || last && b.open {
		b.handOver(last, deliver)
	}
}

func (b *batcher) handOver(last bool, deliver func(Batch[any], []news)) {
	batch := Batch[any]{Events: b.events, Last: last}
	news := b.news
	b.events, b.news, b.open = nil, nil, !last
	deliver(batch, news)
	for _, n := range news {
		n.answer.become(b.client, n.state)
	}
}

// note notes the answer that an event brings; handOver takes it once the handler has had the event.
func (b *batcher) note(a *answer, ev *Event[any]) {
	b.news = append(b.news, news{a, told(ev)})
}
