package machine

import (
	"fmt"
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
	case !resp.ts.typ.Guarded:
		m.commit(now, resp)
	case resp.missing > 0:
	case resp.astray():
		m.takeAll(now, resp)
	default:
		m.propose(resp)
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
	for e := range it.entries() {
		m.commitEntry(now, resp, it, e, r, hash)
	}
	if resp.released && r.Err == nil {
		resp.Resources[it.index] = wire.Resource{Payload: it.Raw} // lest it keeps its part of the frame
	}
}

// entries yields those that an item is decoded for.
func (it *Item) entries() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		if !yield(it.entry) {
			return
		}
		for _, e := range it.also {
			if !yield(e) {
				return
			}
		}
	}
}

// sameFor says that what was decoded equals what an entry of the item holds.
func (r Result) sameFor(it *Item, e *entry) bool {
	return r.Same && (e == it.entry || e.held() && !e.turns() && identical(e.raw, it.Old))
}

// commitEntry is commitItem for one entry; hash is of what was refused.
func (m *Machine) commitEntry(now time.Time, resp *response, it *Item, e *entry, r Result, hash uint64) {
	ts := resp.ts
	same := r.sameFor(it, e)
	lapsed := same && !e.held() // since the stream ended: there is no value to tell, and the next one brings it
	if lapsed || ts.drops != resp.drops && !ts.has(e) {
		resp.missed = true
		if r.Err != nil {
			resp.invalid++
			resp.line(it.index, e.name, r.Err)
		} else {
			resp.taken(it.index, e, r.Flaws)
		}
		return
	}
	entry := &resp.Resources[it.index]
	if r.Err != nil {
		m.refuse(now, resp, it.index, e, r.Err, hash)
		return
	}
	version := resp.versionOf(entry)
	e.locator, e.selfNamed = it.Locator, len(entry.Name) == 0
	resp.describe(it.index, e)
	if same {
		e.hold(it.Raw, e != it.entry) // so that the same bytes are known at once next time
		m.confirm(e, version)
	} else {
		m.accept(now, e, it.Raw, r.Value, version, e != it.entry)
	}
	resp.giveAs(e)
	resp.taken(it.index, e, r.Flaws)
	ts.setFlaws(e, r.Flaws)
	ts.stream.ttls.received(now, e, entry)
}

// finish draws a response's conclusions: names that were invalid, removals, errors,
// absence; then the answer is owed.
func (m *Machine) finish(now time.Time, resp *response) {
	ts, s := resp.ts, resp.ts.stream
	live := m.current(resp.ref) == s && s.state == up && s.types[ts.typ.URL] == ts
	for _, e := range resp.twice {
		if ts.stands(e) {
			m.reject(e, &Fault{Kind: FaultRejected, Err: errTwice, At: now, Version: resp.Version})
		}
	}
	told := len(m.fx.Notify)
	for _, f := range resp.failed {
		if ts.stands(f.entry) && !resp.repeats[f.entry] {
			m.takeError(now, resp, f)
		}
	}
	m.removeListed(now, resp)
	m.removeAbsent(now, resp)
	resp.changed = resp.changed || len(m.fx.Notify) > told
	m.heal(resp)
	if resp.unusable() {
		resp.invalid++
	} else if len(resp.lines) == 0 {
		ts.accepted = now
	}
	if len(resp.lines) == 0 && !s.Delta && (live || s.ResumeVersion && !resp.missed) {
		ts.version, ts.lapsed = resp.Version, ts.lapsed && !resp.tellsAll()
	}
	m.settle(now, resp, live)
	m.end(now, resp)
}

// end is the end of a response, whatever became of it.
func (m *Machine) end(now time.Time, resp *response) {
	ts, s := resp.ts, resp.ts.stream
	ts.busy = nil
	resp.noteRefusal()
	m.fx.Notify = append(m.fx.Notify, Notice{
		Kind: NoticeEnd, Server: s.server, TypeURL: ts.typ.URL, Version: resp.Version, Stream: resp.ref,
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
	if c := resp.ts.star; c.self.fault != nil && c.self.seen != resp.serial {
		resp.healed = append(resp.healed, healed{c, c.self.fault})
	}
	for _, h := range resp.healed {
		if h.self.fault != h.fault {
			continue
		}
		if h.self.fault = nil; h.synced {
			m.tellCollection(h.collection, Notice{Kind: NoticeAmbient})
		}
	}
}

// settle does what a response means for collections, and if it is live, for the stream that it
// came on.
func (m *Machine) settle(now time.Time, resp *response, live bool) {
	s := resp.ts.stream
	if live && s.troubled() {
		m.recovered(s)
	}
	for _, c := range resp.completes() {
		if c.self.fault != nil {
			continue
		}
		m.synced(c, resp.Version)
	}
	if live {
		m.resumed(resp)
		resp.ts.complete = resp.ts.complete || resp.ts.form == wildLegacy && resp.tellsAll() && !resp.nameless
		m.answerBeside(now, resp.ts)
		m.settling(now, resp)
		m.owe(now, resp)
	}
}

// completes lists the collections of which a response holds the first state.
func (resp *response) completes() (cs []*collection) {
	if c := resp.ts.star; resp.awaited(c) && !c.synced {
		cs = append(cs, c)
	}
	for _, c := range resp.answered() {
		if resp.ts.waiting[c] && resp.awaited(c) {
			cs = append(cs, c)
		}
	}
	return cs
}

// awaited says whether the request for a collection had left when the response came.
func (resp *response) awaited(c *collection) bool {
	if resp.asked != nil {
		return resp.asked[c] && len(c.watches) > 0
	}
	return c.known
}

// answered lists the globs of which a response holds the first state: it speaks of them or
// of a member, or else of everything, or of nothing at all.
func (resp *response) answered() []*collection {
	cs := resp.heard
	if resp.ts.fullState() || len(resp.Resources)+resp.removes+len(resp.RemovedNames)+len(resp.Errors) == 0 {
		cs = nil
		for c := range resp.ts.waiting {
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
	ts := c.ts
	if c.self.fault != nil || !ts.answered && !(ts.stream.Delta && ts.resumes) {
		return false
	}
	for e := range ts.entriesOf(c.chain) {
		if (c == ts.star || e.of == c) && e.listed() && !e.withheld && !e.byAlias() {
			return true
		}
	}
	return false
}

// synced: the first state of a collection is complete.
func (m *Machine) synced(c *collection, version string) {
	c.synced, c.absence, c.orphan, c.ambient, c.timer = true, nil, false, false, 0
	delete(c.ts.waiting, c)
	m.tellCollection(c, Notice{Kind: NoticeSynced, Version: version})
	if f := c.ts.stream.knownTrouble(); f != nil {
		c.ambient = true
		m.tellCollection(c, c.faultNotice(f))
	}
}

// removeListed takes the server's word for what does not exist: entries without a body,
// and delta's list.
func (m *Machine) removeListed(now time.Time, resp *response) {
	for _, e := range resp.bare {
		if resp.ts.has(e) && !resp.repeats[e] {
			m.remove(now, e, ReasonNotFound)
		}
	}
	for _, e := range resp.removed {
		if resp.ts.has(e) && !resp.repeats[e] && !e.standsBy() {
			m.remove(now, e, ReasonRemoved)
		}
	}
}

// fullState says that a response of the type holds everything.
func (ts *typeState) fullState() bool {
	return !ts.stream.Delta && (ts.typ.FullState || ts.stream.FullState)
}

// tellsAll says that what a response does not hold is not there. One of heartbeats alone says
// nothing of what needs none.
func (resp *response) tellsAll() bool {
	return resp.ts.fullState() && !resp.unusable() && (resp.bodies || len(resp.Resources) == 0)
}

// unusable says that a response is that of a file which cannot be used: errors alone, which
// say nothing of the rest.
func (resp *response) unusable() bool {
	return resp.ts.stream.FullState && len(resp.Resources) == 0 && len(resp.Errors) > 0
}

// removeAbsent: where a response holds everything, what was held and is not there is
// deleted. What was never received may have been asked for too late to be there, except at
// a server that is a file; so may what another server gave, if a response was out when it
// was asked for, and then the one after that settles it.
func (m *Machine) removeAbsent(now time.Time, resp *response) {
	ts := resp.ts
	if !resp.tellsAll() || resp.nameless {
		return
	}
	lateStar := ts.lateStar
	if ts.lateStar = false; resp.whole {
		return
	}
	var gone []*entry
	for e := range ts.entries.all() {
		switch {
		case resp.lacks(e, lateStar):
			gone = append(gone, e)
		case e.seen == resp.serial, e.standsBy():
		case ts.stream.FullState && (e.status == StatusRequested || e.orphan) && !e.isGlob() && ts.answersFor(e):
			gone = append(gone, e)
		case e.status == StatusDoesNotExist && ts.answersFor(e):
			e.from = 0 // this server has it neither
		}
	}
	clear(ts.late)
	sortEntries(gone)
	for _, e := range gone {
		// Of a member the server had spoken, which the wildcard was told, and a file speaks of all.
		if e.held() || !e.wanted() || len(ts.star.watches) > 0 || ts.stream.FullState {
			m.remove(now, e, ReasonAbsent)
		}
	}
}

// lacks says whether what is known of an entry ends with a response that holds everything
// else.
func (resp *response) lacks(e *entry, lateStar bool) bool {
	ts := resp.ts
	switch {
	case e.seen == resp.serial || e.standsBy() || !e.known():
		return false
	case !resp.asks(e) && resp.form == wildNone && ts.star.wanted() && !ts.stream.FullState: // its wildcard waits for a stream
		return false
	case !e.foreign():
		return true
	case e.wanted():
		return ts.answersFor(e)
	}
	return !lateStar || !ts.member(e)
}

// asks says that an entry was asked for by name when the response came, or before its stream ended.
func (resp *response) asks(e *entry) bool {
	if resp.asked != nil {
		return resp.named[e]
	}
	return e.asked
}

// answersFor says that the response being worked on was sent with a name in mind.
func (ts *typeState) answersFor(e *entry) bool { return e.asked && !ts.late[e] && !ts.leaving(e) }

// takeError takes a server's error for a resource (xRFC TP3, gRFC A88).
func (m *Machine) takeError(now time.Time, resp *response, it failed) {
	e, code := it.entry, it.Code
	if code == codeNotFound {
		m.remove(now, e, ReasonNotFound)
		return
	}
	f := &Fault{Kind: FaultData, Err: &StatusError{code, it.Message}, At: now, Version: resp.Version}
	drop := code == codePermissionDenied && resp.ts.stream.FailOnDataErrors
	if e.isGlob() {
		m.failGlob(now, e.of, f, drop)
		return
	}
	m.spoil(e, f, StatusReceivedError, drop)
}

// failGlob takes an error of a glob as a whole (xRFC TP3).
func (m *Machine) failGlob(now time.Time, c *collection, f *Fault, drop bool) {
	if drop {
		m.empty(now, c, ReasonNotFound)
		c.synced, c.ts.waiting[c] = false, true
	}
	before := c.self.fault
	if c.self.fault, c.timer = f, 0; !f.same(before) {
		m.tellCollection(c, c.faultNotice(f))
	}
}

// StatusError is an error that a server sent for a resource.
type StatusError struct {
	Code    int32 // of google.rpc.Status
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the server sent an error for the resource: code %d: %s", e.Code, e.Message)
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
	return strings.ToValidUTF8(text[:maxMessage-len(truncated)], "") + truncated
}
