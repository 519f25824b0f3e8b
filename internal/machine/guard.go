package machine

import (
	"iter"
	"slices"
	"time"
)

// Proposal is what a response of a guarded type would do as a whole, or the silence of a
// server on what it was not told of. Whoever runs the machine judges it, and says so by
// [Guarded]; until then nothing of it is taken.
type Proposal struct {
	Server  int
	TypeURL string
	Version string // of the response; "" for silence
	Held    int    // resources of the type on the stream, before
	Left    int    // after
	Changed []Change
	Removed []string // of those held, in order
	Invalid int      // entries that will be refused in any case

	ref      Ref
	resp     *response // nil for silence
	unlisted []*entry  // that would go because of it
}

// Change is a resource that is not held yet, or with another value, or is new though its bytes
// are not.
type Change struct {
	Name  string
	New   bool
	Value any
	Raw   []byte
}

// propose asks whether a response may be taken, all of which is decoded.
func (m *Machine) propose(resp *response) {
	ts := resp.ts
	p := Proposal{Version: resp.Version, Invalid: resp.invalid, ref: resp.ref, resp: resp}
	for it, r := range resp.outcomes() {
		for e := range it.entries() {
			switch {
			case r.Err != nil:
				p.Invalid++
			case !r.sameFor(it, e) && ts.has(e):
				p.Changed = append(p.Changed, Change{e.name, !e.held(), r.Value, it.Raw})
			}
		}
	}
	for _, it := range resp.later {
		if it.kind == isInvalid {
			p.Invalid++
		}
	}
	ends := m.ends(resp)
	lacks := !ts.keepsDeleted() && resp.tellsAll() && !resp.nameless
	m.propound(ts, p, func(e *entry) bool { return ends[e] || lacks && resp.lacks(e, ts.lateStar) })
}

// outcomes yields what was decoded of a response of which nothing is committed.
func (resp *response) outcomes() iter.Seq2[*Item, Result] {
	return func(yield func(*Item, Result) bool) {
		for i, t := range resp.tasks {
			for j := range t.Items {
				if !yield(&t.Items[j], resp.results[i][j]) {
					return
				}
			}
		}
	}
}

// ends are the entries that a response ends by what it says of them. A deletion may be
// ignored (gRFC A53), and what is invalid or has an error ends nothing but where the bootstrap
// says so (gRFC A88).
func (m *Machine) ends(resp *response) map[*entry]bool {
	ends := map[*entry]bool{}
	deletes, fails := !resp.ts.keepsDeleted(), resp.ts.stream.FailOnDataErrors
	end := func(e *entry, ended bool) {
		if ended {
			ends[e] = true
		}
	}
	empty := func(c *collection, ended bool) { // but of what the response speaks of
		for _, e := range c.inOrder() {
			end(e, ended && e.seen != resp.serial)
		}
	}
	for it, r := range resp.outcomes() {
		for e := range it.entries() {
			end(e, fails && r.Err != nil)
		}
	}
	for _, it := range resp.later {
		end(it.entry, fails && it.kind == isInvalid || deletes && it.kind == isBare)
	}
	for _, e := range resp.twice {
		end(e, fails)
	}
	for _, e := range resp.removed {
		switch {
		case resp.repeats[e]:
		case e.isGlob():
			empty(e.of, deletes)
		default:
			end(e, deletes)
		}
	}
	for _, it := range resp.failed {
		deleted := deletes && it.Code == codeNotFound
		dropped := fails && it.Code == codePermissionDenied
		switch {
		case resp.repeats[it.entry]:
		case it.isGlob():
			empty(it.of, deleted || deletes && dropped)
		default:
			end(it.entry, deleted || dropped)
		}
	}
	return ends
}

// propound has a proposal judged that would remove some of what is held.
func (m *Machine) propound(ts *typeState, p Proposal, removes func(*entry) bool) {
	p.Server, p.TypeURL = ts.stream.server, ts.typ.URL
	for e := range ts.entries.all() {
		if e.held() {
			p.Held++
			if removes(e) {
				p.Removed = append(p.Removed, e.name)
			}
		}
	}
	slices.Sort(p.Removed)
	p.Left = p.Held - len(p.Removed)
	for i := range p.Changed {
		if p.Changed[i].New {
			p.Left++
		}
	}
	m.fx.Guard = append(m.fx.Guard, &p)
}

// guarded takes the judgement. What came on a stream that is over is not taken: the next
// one brings it again.
func (m *Machine) guarded(now time.Time, ev Guarded) {
	resp, s := ev.Proposal.resp, m.touch(ev.Proposal.ref)
	live := s != nil && s.state == up
	switch {
	case resp == nil && live:
		m.sweepGuarded(now, ev)
	case resp == nil:
	case !live || s.types[resp.ts.typ.URL] != resp.ts:
		resp.disown()
		m.end(now, resp)
	case ev.Err != nil:
		m.refuseAll(now, resp, ev.Proposal.Removed, ev.Err)
	default:
		m.takeAll(now, resp)
	}
}

// takeAll takes a response that a guard does not mind.
func (m *Machine) takeAll(now time.Time, resp *response) {
	for _, it := range resp.later {
		switch {
		case resp.ts.has(it.entry):
			m.conclude(now, resp, it)
		case it.kind == isInvalid: // though nobody is interested any more
			resp.invalid++
			resp.line(it.index, it.entry.name, it.err)
		}
	}
	m.commit(now, resp)
}

// astray says that nothing that a response speaks of is here any more, and that it ends nothing
// else: there is nothing to judge.
func (resp *response) astray() bool {
	if resp.spoken == 0 || slices.ContainsFunc(resp.completes(), func(c *collection) bool { return len(c.watches) > 0 }) {
		return false
	}
	for e := range resp.ts.entries.all() {
		if e.seen == resp.serial || e.held() && resp.tellsAll() {
			return false
		}
	}
	return true
}

// ended are the entries that a response says do not exist, or have an error.
func (resp *response) ended() (es []*entry) {
	for _, it := range resp.later {
		if it.kind == isBare {
			es = append(es, it.entry)
		}
	}
	es = append(es, resp.removed...)
	for _, it := range resp.failed {
		es = append(es, it.entry)
	}
	return es
}

// disown forgets the members that a response of which nothing is taken would have been the
// first to tell of.
func (resp *response) disown() {
	for e := range resp.ts.entries.all() {
		if e.seen == resp.serial && !e.wanted() && !e.known() && !e.noted {
			resp.ts.drop(e)
		}
	}
}

// refuseAll NACKs a response of which nothing is taken. What it would have changed or removed
// is told to be refused, with what is held as it was; so is the first state of a collection.
func (m *Machine) refuseAll(now time.Time, resp *response, removed []string, err error) {
	ts := resp.ts
	resp.lines = []string{err.Error()}
	resp.invalid = len(resp.Resources)
	resp.disown()
	f := &Fault{Kind: FaultRejected, Err: err, At: now, Version: resp.Version}
	spoil := func(e *entry) {
		if ts.has(e) && !e.isGlob() {
			m.spoil(e, f, StatusNacked, false)
		}
	}
	for it, r := range resp.outcomes() {
		for e := range it.entries() {
			if r.Err != nil || !r.sameFor(it, e) {
				spoil(e)
			}
			if resp.Renewed[it.index] && ts.has(e) {
				ts.renewed[e] = true
			}
		}
	}
	for _, it := range resp.later {
		if it.kind == isInvalid {
			spoil(it.entry) // it is there
		}
	}
	for _, e := range resp.twice {
		spoil(e)
	}
	for _, name := range removed { // U-2: it is held against the server's word
		if e := ts.entries.get(name); e != nil && e.held() {
			spoil(e)
		}
	}
	for _, e := range resp.ended() {
		if e.wanted() && e.status == StatusRequested {
			spoil(e) // it has its answer
		}
	}
	for _, c := range resp.completes() {
		m.lack(c, Notice{Kind: NoticeFailed, Fault: f})
	}
	if s := ts.stream; s.troubled() {
		m.recovered(s)
	}
	m.owe(now, resp)
	m.end(now, resp)
}
