package machine

import (
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// chunk is how many payloads make a task at most, and so how many are delivered together;
// chunkBytes is what they have together, but for the last of them.
const (
	chunk      = 512
	chunkBytes = 1 << 20
)

// releasable is how many bytes of a response have to be new for its frame to be released.
const releasable = 1 << 20

// decode has a payload decoded, once for all names of a resource.
func (r *reader) decode(e *entry, sub *subscription) {
	r.changed = true
	if e.item != nil { // ALIAS-2: one copy is held
		e.item.also = append(e.item.also, sub)
		return
	}
	if len(r.tasks) == 0 || len(r.lastTask().Items) == chunk || r.newBytes-r.before >= chunkBytes {
		r.before = r.newBytes
		left := min(chunk, len(r.Resources)-e.index)
		r.tasks = append(r.tasks, &Task{
			Server: r.link.stream.server, Type: r.link.cache.typ, owner: r.response, Items: make([]Item, 0, left),
		})
	}
	r.newBytes += len(e.Payload)
	r.heldBytes += int64(len(e.Payload)) - sub.counted()
	t := r.lastTask()
	t.Items = append(t.Items, r.itemOf(e, sub))
	e.item = &t.Items[len(t.Items)-1]
}

func (r *reader) lastTask() *Task { return r.tasks[len(r.tasks)-1] }

// itemOf is what is to be decoded of an entry of a response.
func (r *reader) itemOf(e *entry, sub *subscription) Item {
	it := Item{Raw: e.Payload, Locator: e.locator, Attributes: e.Attributes, sub: sub, gen: sub.gen, index: e.index}
	if sub.repeatable() && sub.locator == it.Locator && !r.renews(e.index, sub) {
		it.Old, it.OldAttributes = sub.raw, sub.attributes()
	}
	return it
}

func (resp *response) decoded(m *Machine, now time.Time) {
	m.agenda.touch(resp.link.stream)
	m.proceed(now, resp)
}

// proceed applies what is planned. Where the type is guarded, the guard judges it first, once all is decoded.
func (m *Machine) proceed(now time.Time, resp *response) {
	switch {
	case !resp.link.cache.typ.Guarded:
		m.apply(now, resp)
	case slices.ContainsFunc(resp.tasks, func(t *Task) bool { return t.results == nil }):
	case resp.nothingToJudge():
		m.apply(now, resp)
	default:
		m.propose(resp)
	}
}

// apply applies the entries that need no decoding, then those that are decoded so far, in the order of the wire. After the
// last of them it ends the response.
func (m *Machine) apply(now time.Time, resp *response) {
	for _, it := range resp.ready {
		m.applyPlanned(now, resp, it)
	}
	m.reusePlan(resp)
	for task := nextDecoded(&resp.tasks); task != nil; task = nextDecoded(&resp.tasks) {
		m.fx.Notify = slices.Grow(m.fx.Notify, len(task.Items))
		for i := range task.Items {
			m.commitItem(now, resp, &task.Items[i], task.results[i])
		}
	}
	// DELTA-8: removals come after resources.
	if len(resp.tasks) == 0 {
		m.finish(now, resp)
	}
}

// maxPlanned is for how many entries the room of a plan is kept for the next.
const maxPlanned = 1 << 17

func (m *Machine) reusePlan(resp *response) {
	if cap(resp.ready) > 0 && cap(resp.ready) <= maxPlanned {
		clear(resp.ready)
		m.ready = resp.ready[:0]
	}
	resp.ready = nil
}

// applyPlanned refuses a resource, or notes that the held value came again.
func (m *Machine) applyPlanned(now time.Time, resp *response, it planned) {
	l, sub, entry := resp.link, it.sub, &resp.Resources[it.index]
	switch {
	case it.fault != nil:
		resp.count(it.index, sub, it.fault.Err)
	case entry.HasBody:
		resp.count(it.index, sub, sub.flaws()...)
	default:
		resp.valid++
	}
	switch {
	case !l.has(sub):
	// ACK-6: only this entry is refused; commitItem takes the others.
	case it.fault != nil:
		l.refusals.add(it.fault, entry.Payload, l.redirects(entry))
		m.noteFault(sub, it.fault, StatusNacked, l.dropsRefused(sub))
	default:
		if entry.HasBody {
			sub.keepAttributes(entry.Attributes)
			sub.hold(sub.raw, resp.givenAs(it.index, sub, sub.given().shared))
		}
		m.confirm(sub, resp.entryVersion(entry))
		// TTL-3: a heartbeat sets the time anew.
		m.renewTTL(now, sub, entry)
	}
}

// commitItem accepts or refuses a resource that was decoded, for all names by which it is watched.
func (m *Machine) commitItem(now time.Time, resp *response, it *Item, r Result) {
	if r.Err != nil {
		hash := hashOfEntry(it.Raw, it.Locator, it.Attributes)
		for _, sub := range it.subs() {
			m.applyPlanned(now, resp, planned{sub, it.index, resp.refusal(now, it.index, r.Err, hash)})
		}
		return
	}
	said := resp.Resources[it.index].Attributes
	if len(it.also) > 0 && said != nil {
		said = said.Clone() // one copy for all
	}
	for _, sub := range it.subs() {
		resp.count(it.index, sub, r.Flaws...)
		lapsed := r.sameFor(it, sub) && !sub.held() // the value that it equals is gone by now, and the next stream brings it
		if lapsed || !resp.link.has(sub) {
			continue
		}
		if len(it.also) > 0 && said != nil {
			sub.alter(func(x *extra) { x.attributes = said })
		} else {
			sub.keepAttributes(said)
		}
		m.commitFor(now, resp, it, sub, r)
	}
	if resp.released {
		resp.Resources[it.index] = wire.Resource{Payload: it.Raw, HasBody: true} // so that it does not keep its part of the frame
	}
}

// commitFor accepts a resource for one name.
func (m *Machine) commitFor(now time.Time, resp *response, it *Item, sub *subscription, r Result) {
	entry := &resp.Resources[it.index]
	// DELTA-9: the version of what is accepted.
	version := resp.entryVersion(entry)
	as := resp.givenAs(it.index, sub, sub != it.sub)
	// ALIAS-2: an alias is in no collection, and nobody watches this one any more.
	if as.alias && !sub.lives() {
		m.noteAbsent(sub, ReasonRemoved)
		return
	}
	replaces := it.Locator && sub.held() && !sub.locator
	var last *Whole
	// ERR-3: nothing of it is kept with fail_on_data_errors.
	// H-1: nor if the two would be more than may be held.
	if len(r.Flaws) > 0 && !resp.link.dropsRefused(sub) && resp.link.stream.mayHold(len(it.Raw)) {
		last = sub.lastWhole()
	}
	sub.locator, sub.selfNamed = it.Locator, !as.alias && len(entry.Name) == 0
	if r.sameFor(it, sub) {
		sub.hold(it.Raw, as) // so that the same bytes are known at once next time
		m.confirm(sub, version)
	} else {
		resp.took = true
		n := m.accept(now, sub, it.Raw, version, as)
		n.Value, n.Replaces = r.Value, replaces
		m.remindOfTrouble(sub)
	}
	sub.setFlaws(r.Flaws, last)
	m.receivedTTL(now, sub, entry)
	switch {
	// LKG-1: what is accepted, and only that.
	case len(r.Flaws) == 0:
		m.store(sub, expiry(now, entry))
	case resp.link.dropsRefused(sub): // LKG-5
		m.unstore(sub)
	}
}

// subs are the subscriptions that an item is decoded for.
func (it *Item) subs() []*subscription { return append([]*subscription{it.sub}, it.also...) }

// sameFor says that what was decoded equals what a subscription of the item holds. Another server may have given that while
// the item was decoded.
func (r Result) sameFor(it *Item, sub *subscription) bool {
	switch {
	case sub != it.sub:
		return r.Same && sub.repeatable() && identical(sub.raw, it.Old)
	case sub.gen != it.gen && sub.held():
		return sub.repeatable() && string(sub.raw) == string(it.Raw)
	}
	return r.Same
}

// refusal is the fault of an entry that is invalid.
func (resp *response) refusal(now time.Time, i int, err error, hash uint64) *Fault {
	return &Fault{Kind: FaultRejected, Err: err, At: now, Version: resp.entryVersion(&resp.Resources[i]), refused: hash}
}
