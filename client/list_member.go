package client

import (
	"bytes"
	"fmt"

	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/xdstp"
)

// listMember is a member of a list collection: what a locator leads to, or an inline entry.
type listMember struct {
	list *list
	name string

	follow  *follow // of a locator, or of an inline entry that is a redirect
	located bool    // it is a locator's
	raw     []byte  // of the inline entry; nil if it has none that is good

	told    EventKind // the newest value, absence or failure; 0 if nothing was told
	trouble string    // with the entry, told beside a value that stays good

	round        uint32 // of the directory that lists it
	twice, taken bool   // in that
	stale        bool   // what it is told of inline is from the store
}

// take makes the member what an entry of a directory says.
func (m *listMember) take(d listing.Directory, i int, ev *Event[any]) bool {
	e := &d.Entries[i]
	m.located = e.Locator != nil
	switch {
	case m.twice:
		return m.spoil(listing.ErrTwice, ev)
	case e.Err != nil:
		return m.spoil(e.Err, ev)
	case e.Locator != nil:
		return m.locate(*e.Locator, ev)
	}
	return m.inline(d, i, ev)
}

// event begins an event of the member itself, in a directory.
func (m *listMember) event(kind EventKind, ev *Event[any]) *Event[any] {
	own := &Event[any]{
		Kind: kind, Type: m.list.kind.TypeURL(), Name: m.name, Asked: m.name, Authority: m.list.url.Name.Authority,
		Version: ev.Version, Server: ev.Server, Stale: ev.Stale,
	}
	if m.located {
		own.Authority, _ = xdstp.AuthorityOf(m.name)
	}
	if kind == EventDoesNotExist {
		own.Reason, own.Version = ReasonRemoved, ""
	}
	return own
}

// spoil notes that the entry cannot be used. As with other resources a value that is held
// stays good, unless the server asks for the contrary (gRFC A88, fail_on_data_errors).
func (m *listMember) spoil(err error, ev *Event[any]) bool {
	if m.trouble == err.Error() {
		return false
	}
	m.trouble = err.Error()
	own := m.event(EventAmbientError, ev)
	own.Err = m.list.client.rejected(own, err)
	server := m.list.directory.by.server
	if m.told != EventUpdated || m.list.client.server(server).Features.FailOnDataErrors {
		m.leave()
		own.Kind = EventFailed
	}
	return m.hear(own)
}

// well takes back that the entry could not be used.
func (m *listMember) well(ev *Event[any]) bool {
	if m.trouble == "" || m.told != EventUpdated {
		return false
	}
	m.trouble = ""
	return m.hear(m.event(EventRecovered, ev))
}

// locate subscribes to what a locator leads to, unless that was done before.
func (m *listMember) locate(l xdstp.Locator, ev *Event[any]) bool {
	if m.follow != nil {
		return m.well(ev)
	}
	c := m.list.client
	kind := ErrorConfig
	a, err := c.aim(m.list.kind, l, m.list.view, new(machine.Watch))
	if err == nil {
		kind, err = ErrorData, m.list.inner.borrow(m.list.view, m.list.directory.by.at, l, a.watch)
	}
	if err != nil {
		if m.trouble == err.Error() {
			return false
		}
		own := m.event(EventFailed, ev)
		own.Err = &ResourceError{
			Kind: kind, Type: own.Type, Name: m.name, Server: ev.Server, NodeID: c.node,
			Err: fmt.Errorf("the member cannot be followed: %w", cause(err)),
		}
		m.trouble = err.Error()
		return m.hear(own)
	}
	m.trouble = ""
	c.invite(a.watch, m.list.directory.lane)
	m.follow = c.newFollow(m.list.kind, a, m.list.inner, m)
	m.follow.root.watch, a.watch.Owner = a.watch, m.follow.root
	// COLL-3: a located member is subscribed to by itself.
	m.list.starts = append(m.list.starts, a.watch)
	return false
}

// inline takes what an entry holds. Bytes that are as before are no news.
func (m *listMember) inline(d listing.Directory, i int, ev *Event[any]) bool {
	e := &d.Entries[i]
	if m.raw != nil && m.stale == ev.Stale && e.Redirects == (m.follow != nil) && bytes.Equal(m.raw, e.Raw) {
		m.raw = e.Raw // so that the old directory is not kept
		return m.well(ev)
	}
	own := m.event(EventUpdated, ev)
	m.stale = ev.Stale
	// COLL-4: an inline member is all here.
	if err := fillAt(d, own, i); err != nil {
		return m.spoil(err, ev)
	}
	if !e.Redirects {
		m.leave()
		m.raw = e.Raw
		return m.hear(own)
	}
	if m.follow == nil {
		a := asked{name: m.name, at: &m.list.url, view: m.list.view, watch: &m.list.watch}
		m.follow = m.list.client.newFollow(m.list.kind, a, m.list.inner, m)
		m.follow.root.text = m.name
	}
	m.raw = e.Raw
	wantsFlush := m.well(ev)
	return m.follow.tell(m.follow.root, own) || wantsFlush
}

// leave ends what serves the member.
func (m *listMember) leave() {
	if m.follow != nil {
		m.follow.end()
	}
	m.follow, m.raw = nil, nil
}

func (m *listMember) alive() bool { return m.list.alive() }

// hear implements outlet.
func (m *listMember) hear(ev *Event[any]) bool {
	wantsFlush := m.list.add(ev)
	if beside(ev) {
		return wantsFlush
	}
	if m.told == 0 {
		m.list.open--
	}
	if m.told = ev.Kind; m.told == EventUpdated {
		m.trouble = ""
	}
	return m.list.sync(ev) || wantsFlush
}

// Flush implements outlet.
func (m *listMember) Flush(last bool) { m.list.Flush(last) }
