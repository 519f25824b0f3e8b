package machine

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// decoded takes back a task.
func (m *Machine) decoded(now time.Time, ev Decoded) {
	if ev.Task.replay != nil {
		m.replayed(ev)
		return
	}
	resp := ev.Task.response
	resp.results[ev.Task.index] = ev.Results
	resp.missing--
	m.proceed(now, resp)
}

// proceed takes what is decoded, or with a guard has it judged once it all is.
func (m *Machine) proceed(now time.Time, resp *response) {
	switch {
	case !resp.link.typ.Guarded:
		m.commit(now, resp)
	case resp.missing > 0:
	case resp.astray():
		m.takeAll(now, resp)
	default:
		m.propose(now, resp)
	}
}

// commit takes what is decoded into the state, in the order of the wire, and ends the
// response with the last of it.
func (m *Machine) commit(now time.Time, resp *response) {
	for resp.next < len(resp.tasks) && resp.results[resp.next] != nil {
		task, results := resp.tasks[resp.next], resp.results[resp.next]
		resp.tasks[resp.next], resp.results[resp.next] = nil, nil
		resp.next++
		m.fx.Notify = slices.Grow(m.fx.Notify, len(task.Items))
		for i := range task.Items {
			m.commitItem(now, resp, &task.Items[i], results[i])
		}
	}
	if resp.next == len(resp.tasks) {
		m.finish(now, resp)
	}
}

func (m *Machine) commitItem(now time.Time, resp *response, it *Item, r Result) {
	var hash uint64
	if r.Err != nil {
		hash = hashOfEntry(it.Raw, it.Locator, it.Attributes)
	}
	for sub := range it.entries() {
		m.commitEntry(now, resp, it, sub, r, hash)
	}
	if resp.released && r.Err == nil {
		resp.Resources[it.index] = wire.Resource{Payload: it.Raw} // lest it keeps its part of the frame
	}
}

// entries yields those that an item is decoded for.
func (it *Item) entries() iter.Seq[*subscription] {
	return func(yield func(*subscription) bool) {
		if !yield(it.sub) {
			return
		}
		for _, sub := range it.also {
			if !yield(sub) {
				return
			}
		}
	}
}

// sameFor says that what was decoded equals what an entry of the item holds.
func (r Result) sameFor(it *Item, sub *subscription) bool {
	return r.Same && (sub == it.sub || sub.held() && !sub.turns() && identical(sub.raw, it.Old))
}

// commitEntry is commitItem for one entry; hash is of what was refused.
func (m *Machine) commitEntry(now time.Time, resp *response, it *Item, sub *subscription, r Result, hash uint64) {
	l := resp.link
	same := r.sameFor(it, sub)
	lapsed := same && !sub.held() // since the stream ended: there is no value to tell, and the next one brings it
	if lapsed || !l.has(sub) {
		resp.missed = true
		if r.Err != nil {
			resp.invalid++
			resp.line(it.index, sub.name, r.Err)
		} else {
			resp.taken(it.index, sub, r.Flaws)
		}
		return
	}
	entry := &resp.Resources[it.index]
	// ACK-6: only this entry is refused.
	if r.Err != nil {
		m.refuse(now, resp, it.index, sub, r.Err, hash)
		return
	}
	// DELTA-9: the version of what is accepted.
	version := resp.versionOf(entry)
	sub.locator, sub.selfNamed = it.Locator, len(entry.Name) == 0
	resp.describe(it.index, sub)
	if same {
		sub.hold(it.Raw, sub != it.sub) // so that the same bytes are known at once next time
		m.confirm(sub, version)
	} else {
		m.accept(now, sub, it.Raw, r.Value, version, sub != it.sub)
	}
	resp.giveAs(sub)
	resp.taken(it.index, sub, r.Flaws)
	l.setFlaws(sub, r.Flaws)
	m.receivedTTL(now, sub, entry)
}

// finish draws a response's conclusions; then the answer is owed.
func (m *Machine) finish(now time.Time, resp *response) {
	l, s := resp.link, resp.link.stream
	live := m.current(resp.ref) == s && s.state == up && s.types[l.typ.URL] == l
	told := len(m.fx.Notify)
	for _, c := range resp.conclusions(now) {
		m.draw(now, resp, c, live)
	}
	resp.changed = resp.changed || len(m.fx.Notify) > told
	m.heal(resp)
	if resp.unusable() {
		resp.invalid++
	} else if len(resp.lines) == 0 {
		l.accepted = now
	}
	// ACK-7: a refused version is not taken.
	if len(resp.lines) == 0 && !s.Delta && (live || s.ResumeVersion && !resp.missed) {
		l.version, l.lapsed = resp.Version, l.lapsed && !resp.tellsAll()
	}
	m.settle(now, resp, live)
	m.end(now, resp)
}

// end is the end of a response, whatever became of it.
func (m *Machine) end(now time.Time, resp *response) {
	l, s := resp.link, resp.link.stream
	l.busy = nil
	resp.noteRefusal()
	m.fx.Notify = append(m.fx.Notify, Notice{
		Kind: NoticeEnd, Server: s.server, TypeURL: l.typ.URL, Version: resp.Version, Stream: resp.ref,
		Exchange: &Exchange{Valid: resp.valid, Invalid: resp.invalid},
	})
	m.fx.Consumed = append(m.fx.Consumed, resp.ref)
	if then := resp.then; then != nil {
		if m.current(then.Ref) == s && s.state == up {
			m.take(now, s, then.Response)
		} else {
			s.dropUndelivered(then.Ref)
		}
	}
}

// heal ends the errors of collections that the response speaks of, but not by an error. Of
// the wildcard each response speaks.
func (m *Machine) heal(resp *response) {
	if c := resp.link.star; c.self.fault != nil && c.self.seen != resp.serial {
		resp.healed = append(resp.healed, healed{c, c.self.fault})
	}
	for _, h := range resp.healed {
		switch sub := h.self; {
		case sub.fault != h.fault:
		case sub.complete:
			m.absolve(sub)
		case sub.fault.Kind != FaultTimeout:
			sub.status, sub.fault = StatusRequested, nil
		}
	}
}

// settle does what a response means for collections, and if it is live, for the stream that it
// came on.
func (m *Machine) settle(now time.Time, resp *response, live bool) {
	s := resp.link.stream
	if live && s.troubled() {
		m.recovered(s)
	}
	for _, c := range resp.completes() {
		f := c.self.fault
		if f == nil || f.Kind == FaultTimeout || f.Kind == FaultRejected && c.self.seen != resp.serial {
			m.complete(c.self, resp.Version)
		}
	}
	if live {
		m.resumed(resp)
		resp.link.complete = resp.link.complete || resp.link.form == wildLegacy && resp.tellsAll() && !resp.nameless
		m.answerBeside(now, resp.link)
		m.settling(now, resp)
		// ACK-1: each response is answered once.
		m.owe(now, resp)
	}
}

// completes lists the collections of which a response holds the first state.
func (resp *response) completes() (cs []*collection) {
	// WILD-5: any response makes it ready.
	if c := resp.link.star; resp.awaited(c) && !c.self.complete {
		cs = append(cs, c)
	}
	for _, c := range resp.answered() {
		if resp.link.waiting[c] && resp.awaited(c) {
			cs = append(cs, c)
		}
	}
	return cs
}

// awaited says whether the request for a collection had left when the response came.
func (resp *response) awaited(c *collection) bool {
	if !c.ownedBy(resp.link.stream) {
		return false
	}
	if resp.collections != nil {
		return resp.collections[c] && c.wanted()
	}
	return resp.link.requestLeft(c)
}

// answered lists the globs of which a response holds the first state: it speaks of them or
// of a member, or else of everything, or of nothing at all.
func (resp *response) answered() []*collection {
	cs := resp.heard
	// DELTA-14: an empty response makes all complete.
	if resp.link.fullState() || len(resp.Resources)+resp.removes+len(resp.RemovedNames)+len(resp.Errors) == 0 {
		cs = nil
		for c := range resp.link.waiting {
			cs = append(cs, c)
		}
	}
	slices.SortFunc(cs, byName)
	return cs
}

// needsNoMore says that a server which is silent about a collection has nothing to add to what
// is held. Those that remember what they sent do not answer to a wildcard over names that
// are all there is, and in delta not to one whose members the first request listed.
func (c *collection) needsNoMore() bool {
	l := c.self.link()
	if f := c.self.fault; f != nil && f.Kind != FaultTimeout || !l.answered && !(l.stream.Delta && l.resumes) {
		return false
	}
	for sub := range l.of(c.source) {
		if (c == l.star || sub.of == c) && sub.listed() && !sub.withheld && !sub.byAlias() {
			return true
		}
	}
	return false
}

// maxMessage is how long the text of a NACK may be; headers of 8 KiB are a common limit,
// and some servers put it there.
const (
	maxMessage = 4096
	truncated  = "...(truncated)"
)

// message is the text of a NACK: everything that is wrong, cut where it gets too long.
func (resp *response) message() string {
	text := strings.ToValidUTF8(strings.Join(resp.lines, "; "), "\uFFFD")
	if len(text) <= maxMessage {
		return text
	}
	// ACK-5: the text is bounded.
	return strings.ToValidUTF8(text[:maxMessage-len(truncated)], "") + truncated
}
