package client

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// list is a watch of a list collection: of its directory, and of what that lists (xRFC TP1,
// "List collections"). All but what it has of core lives in its dispatcher.
type list struct {
	Watch
	handler   BatchHandler[any]
	batch     batcher
	kind      resource.AnyType // of the members
	name      string
	url       xdstp.Locator // without directives
	directory *follow

	members  map[string]*listMember
	round    uint32           // of the newest directory
	complete bool             // a directory is there
	version  string           // of it
	served   string           // the locator of it; "" if the name itself
	open     int              // members of which nothing was told yet
	synced   bool             // that was told, and no end of the directory since
	stale    bool             // the directory is from the store
	trouble  *Event[any]      // with the directory; nil if none is known
	starts   []*machine.Watch // of new members
}

// listOf reads the URL of a list collection of a type; ok says whether a text is one.
func (c *Client) listOf(kind resource.AnyType, collection string) (l xdstp.Locator, ok bool, err error) {
	if !xdstp.IsXDSTP(collection) && !xdstp.IsFile(collection) {
		return l, false, nil
	}
	if l, err = c.locator(kind, collection, true); err != nil {
		return l, false, err
	}
	if l.Scheme != xdstp.SchemeFile && !l.Name.IsListCollection(kind.TypeURL()) {
		return l, false, nil
	}
	if _, ok := l.Entry(); ok {
		return l, false, fmt.Errorf("%w: an inline entry is one resource", ErrCollection)
	}
	return l, true, nil
}

// watchList begins the watch of a list collection.
func (c *Client) watchList(ctx context.Context, kind resource.AnyType, collection string, l xdstp.Locator, h BatchHandler[any], v *view, o watchOptions) (*Watch, error) {
	name := l.String()
	if _, err := c.typeOf(kind, name); err != nil {
		return nil, err
	}
	dir := c.directoryOf(kind)
	s := &list{
		batch: batcher{client: c},
		kind:  kind, name: name, url: withoutDirectives(l), members: map[string]*listMember{},
	}
	s.init(ctx, c, v)
	a, err := c.prepareAt(dir, l, v, &s.watch)
	if err != nil {
		return nil, c.configError(kind, name, cause(err))
	}
	s.handler = spellingAll(h, collection, name)
	s.inner = newInner(c)
	s.directory = c.newFollow(dir, a, s.inner, s)
	s.watch.Owner = s.directory.root
	return s.start(o)
}

// Flush implements outlet.
func (l *list) Flush(last bool) {
	l.batch.pending = l.batch.pending && !last
	l.batch.flush(last, l.deliver)
}

func (l *list) deliver(b Batch[any]) { l.handle(func() { l.handler(b) }) }

// hear implements outlet, for the directory.
func (l *list) hear(ev *Event[any]) (wantsFlush bool) {
	switch ev.Kind {
	case EventUpdated:
		wantsFlush = l.update(ev)
		if l.trouble != nil {
			over := l.whole(ev)
			over.Kind = EventRecovered
			wantsFlush = l.blame(over) || wantsFlush
		}
	case EventDoesNotExist, EventFailed:
		l.complete, l.synced, l.trouble = false, false, nil // what comes next is a first state again
		wantsFlush = l.dismiss(ev, func(*listMember) bool { return true })
		wantsFlush = l.add(l.whole(ev)) || wantsFlush
	case EventAmbientError, EventRecovered:
		wantsFlush = l.blame(l.whole(ev))
	}
	return l.sync(ev) || wantsFlush
}

// blame tells of trouble with the directory, or of its end. It waits for synced, which would
// sound as if all were well.
func (l *list) blame(ev *Event[any]) bool {
	if l.trouble = ev; ev.Kind == EventRecovered {
		l.trouble = nil
	}
	return l.synced && l.add(ev)
}

// whole is an event of the collection.
func (l *list) whole(ev *Event[any]) *Event[any] {
	own := *ev
	own.Type, own.Value, own.Raw = l.kind.TypeURL(), nil, nil
	return &own
}

func (l *list) add(ev *Event[any]) bool {
	if ev.Name == l.name {
		l.batch.note(&l.answer, ev)
	}
	return l.batch.add(*ev, l.deliver)
}

// sync tells that the first state is complete, once it is: there is a directory, and of
// each member something is known.
func (l *list) sync(ev *Event[any]) bool {
	// COLL-5: something is known of each member.
	if l.synced || !l.complete || l.open > 0 {
		return false
	}
	l.synced = true
	wantsFlush := l.add(&Event[any]{
		Kind: EventSynced, Type: l.kind.TypeURL(), Name: l.name, Asked: l.name, Authority: l.url.Name.Authority,
		Version: l.version, Server: ev.Server, Locator: l.served, Stale: l.stale,
	})
	return l.trouble != nil && l.add(l.trouble) || wantsFlush
}

// update takes a new directory.
func (l *list) update(ev *Event[any]) (wantsFlush bool) {
	d := ev.Value.(listing.Directory)
	l.complete = false // until all of it is taken
	l.synced, l.stale = l.synced && l.stale == ev.Stale, ev.Stale
	l.round++
	listed := make([]*listMember, len(d.Entries))
	for i := range d.Entries {
		listed[i] = l.enlist(d.Entries[i].MemberName(l.url, i))
	}
	for i, m := range listed {
		if !m.taken {
			m.taken = true
			wantsFlush = m.take(d, i, ev) || wantsFlush
		}
	}
	if len(l.starts) > 0 {
		l.inner.start(l.starts...)
		l.starts = nil
	}
	wantsFlush = l.dismiss(ev, func(m *listMember) bool { return m.round != l.round }) || wantsFlush
	l.complete, l.version, l.served = true, ev.Version, ev.Locator
	return wantsFlush
}

// enlist finds or makes the member of a name that the directory lists.
func (l *list) enlist(name string) *listMember {
	m := l.members[name]
	if m == nil {
		m = &listMember{list: l, name: name}
		l.members[name] = m
		l.open++
	}
	m.twice = m.round == l.round
	m.round, m.taken = l.round, false
	return m
}

// dismiss lets go of members, by name. Those that the program knows are told to be removed.
func (l *list) dismiss(ev *Event[any], which func(*listMember) bool) (wantsFlush bool) {
	var gone []*listMember
	for _, m := range l.members {
		if which(m) {
			gone = append(gone, m)
		}
	}
	slices.SortFunc(gone, func(a, b *listMember) int { return strings.Compare(a.name, b.name) })
	for _, m := range gone {
		delete(l.members, m.name)
		if m.leave(); m.told == 0 {
			l.open--
		}
		if m.told == EventUpdated || m.told == EventFailed {
			wantsFlush = l.add(m.event(EventDoesNotExist, ev)) || wantsFlush
		}
	}
	return wantsFlush
}
