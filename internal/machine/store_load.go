package machine

import (
	"fmt"
	"slices"
	"time"
)

// A store keeps accepted values for the next start of the program. What it had is told as stale, until a
// server speaks of it. A stale value counts as another server's, so the rules for such values apply to it.

// loaded has those entries of the store decoded that are still waited for.
func (m *Machine) loaded(now time.Time, ev Loaded) {
	ld := ev.Load
	ld.last = ev.Last
	before := len(ld.tasks)
	for i := range ev.Entries {
		e := &ev.Entries[i]
		if e.Complete {
			ld.complete[e.Name] = e
		} else if sub, of := ld.place(e.Name); sub != nil || of != nil {
			ld.add(e, before, len(ev.Entries)-i)
		}
	}
	m.fx.Decode = append(m.fx.Decode, ld.tasks[before:]...)
	ld.decoded(m, now)
}

// place finds the subscription of a name that the store has, or the collection in which it is to become a member. It finds
// neither if the load was not for the name, or if a server has spoken of it.
func (ld *Load) place(name string) (sub *subscription, of *collection) {
	of = ld.collectionOf(name)
	switch sub = ld.cache.subs.get(name); {
	case sub == nil:
		// LKG-5: what a server said meanwhile counts, even if its stream has ended since.
		if ld.overtaken = ld.overtaken || ld.heardServer(); ld.overtaken || ld.gone[name] {
			return nil, nil
		}
		return nil, of
	case !sub.unanswered(), sub.usable(), sub.isCollection(), sub.of.source != ld.source, of == nil && !ld.isFor(sub):
		return nil, nil
	}
	return sub, nil
}

// isFor says whether a subscription waits for this load, and not for a later one.
func (ld *Load) isFor(sub *subscription) bool { return ld.loads[sub] == ld }

// collectionOf is the collection in which a name is to become a member; nil if the load is for none that covers it.
func (ld *Load) collectionOf(name string) *collection {
	of := ld.cache.globOf(name)
	if of == nil {
		of = ld.cache.star
	}
	if !of.wanted() || !ld.isFor(&of.subscription) || of.complete {
		return nil
	}
	return of
}

// add has an entry decoded. Each task has entries of one server, since the decoder is told the server. The entry does not
// join one of the oldest tasks, of which there are as many as before says; more is about how many entries follow.
func (ld *Load) add(e *Kept, before, more int) {
	n := len(ld.tasks) - 1
	if n < before || len(ld.tasks[n].Items) == chunk || ld.tasks[n].Server != e.Server {
		most := min(more, chunk)
		ld.tasks = append(ld.tasks, &Task{
			Server: e.Server, Type: ld.cache.typ, owner: ld, Items: make([]Item, 0, most), entries: make([]*Kept, 0, most),
		})
		n++
	}
	t := ld.tasks[n]
	// LKG-3: what was kept is decoded and validated as a response is.
	t.Items = append(t.Items, Item{Raw: e.Raw, Attributes: e.Attributes, Locator: e.Locator})
	t.entries = append(t.entries, e)
}

// decoded holds the values that are decoded, in order. With the last of them the load is over.
func (ld *Load) decoded(m *Machine, now time.Time) {
	for t := nextDecoded(&ld.tasks); t != nil; t = nextDecoded(&ld.tasks) {
		m.fx.Notify = slices.Grow(m.fx.Notify, len(t.Items))
		for i := range t.Items {
			m.takeStored(now, ld, t.entries[i], &t.Items[i], t.results[i])
		}
	}
	if len(ld.tasks) > 0 || !ld.last {
		return
	}
	for _, sub := range ld.subs {
		if !ld.isFor(sub) {
			continue // the wildcard ended, and began again with a load of its own
		}
		delete(ld.loads, sub)
		if sub.wanted() && sub.unanswered() && !sub.usable() {
			m.endLoad(ld, sub)
		}
	}
	if len(ld.loads) == 0 {
		clear(ld.gone)
	}
	if ld.refused > 0 {
		m.fx.Log = append(m.fx.Log, Log{
			Warn: true, Server: ld.source.stream().server, TypeURL: ld.TypeURL,
			Text:  "stored resources cannot be used; they are passed over",
			Attrs: []any{"count", ld.refused, "error", ld.why.Error()},
		})
	}
}

// takeStored holds a value that was loaded, if no server has spoken of it meanwhile.
func (m *Machine) takeStored(now time.Time, ld *Load, e *Kept, it *Item, r Result) {
	if e.Expires != 0 && e.Expires <= now.UnixNano() {
		return // its time to live ran out while it was decoded
	}
	sub, of := ld.place(e.Name)
	if sub == nil && of == nil {
		return
	}
	if err := ld.unusable(it, r); err != nil {
		if ld.refused++; ld.why == nil {
			ld.why = fmt.Errorf("%s: %w", e.Name, err)
		}
		return
	}
	if sub == nil {
		sub = of.newMember(e.Name)
	}
	sub.hold(it.Raw, given{})
	sub.version, sub.updated, sub.locator = e.Version, e.Updated, it.Locator
	// LKG-4: no server gave it on a stream, so no request has its version, and nothing is ACKed.
	sub.from = fromStore | uint16(e.Server+1)
	sub.gen++
	sub.keepAttributes(e.Attributes)
	// LKG-6: the time to live goes on.
	if e.Expires != 0 {
		m.lease(now, sub, leaseTTL, time.Unix(0, e.Expires).Sub(now))
	}
	ld.cache.stale = append(ld.cache.stale, sub)
	n := m.noticeTo(sub, NoticeUpdated, sub.watches(), sub.audience())
	n.Value, n.Raw, n.Attributes = r.Value, sub.raw, sub.attributes()
	m.tellTroubleOf(sub, sub.watches()) // watches were told of no trouble while the store was asked
}

// unusable says why a loaded value cannot be held; nil if it can.
func (ld *Load) unusable(it *Item, r Result) error {
	s, size := ld.source.stream(), len(it.Raw)
	switch {
	case r.Err != nil:
		return r.Err
	case s.config.MaxResource > 0 && size > s.config.MaxResource, !s.mayHold(size):
		return fmt.Errorf("the resource has %d bytes, over a limit (Config.MaxResourceSize, Config.MaxHeldSize)", size)
	}
	return nil
}

// endLoad ends the waiting of a subscription without a value: of a resource that the store does not have, or of a collection,
// which has its first state if the store says so.
func (m *Machine) endLoad(ld *Load, sub *subscription) {
	sub.from = fromStore
	// LKG-7: a store may call a name complete that is not a collection's.
	// LKG-8: a collection is not complete by the store if members of the store were passed over.
	if e := ld.complete[sub.name]; e != nil && sub.isCollection() && !ld.overtaken {
		sub.from |= uint16(e.Server + 1)
		m.noticeTo(sub, NoticeSynced, sub.watches(), nil)
	}
	m.tellTroubleOf(sub, sub.watches()) // watches were told of no trouble while the store was asked
}
