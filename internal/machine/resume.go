package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// Servers limit how large a request may be; gRPC's default is 4 MiB. Names and versions of
// everything that is held may pass it, and then no stream would ever come to stand. Such a
// server's first requests are kept under a budget. Delta names what does not fit in
// requests that follow, and leaves versions out.
const bigRequest = 1 << 20

// exhausted looks for a first request that was too large for the server, and lowers the
// budget. It says whether there was one, and what to say of the stream's end.
func (m *Machine) exhausted(s *stream, ev Down) (err error, ok bool) {
	size := 0
	for _, ts := range s.order {
		if !ts.answered {
			size = max(size, ts.largest)
		}
	}
	if ev.Code != codeResourceExhausted || size <= bigRequest {
		return ev.Err, false
	}
	before := *s.budget
	if !s.Delta {
		*s.budget = size // it cannot be kept
		const text = "a request may be too large for the server, and state of the world cannot split it"
		if before == 0 {
			m.fx.Log = append(m.fx.Log, Log{Warn: true, Server: s.server, TypeURL: s.url, Text: text, Attrs: []any{"bytes", size}})
		}
		return fmt.Errorf("%s: %w", text, ev.Err), true
	}
	if before == 0 {
		before = size
	}
	*s.budget = min(before, size) / 2
	m.fx.Log = append(m.fx.Log, Log{
		Warn: true, Server: s.server, TypeURL: s.url,
		Text:  "a request may be too large for the server; first requests are kept under a limit",
		Attrs: []any{"bytes", size, "limit", *s.budget},
	})
	return ev.Err, true
}

// fit chooses what a first delta message of so many bytes may list, under the budget:
// members of the wildcard, whose removal would not be heard of otherwise, before names.
// The other names are left for later messages, without their versions.
func (ts *typeState) fit(size int, wanted, members []*entry) (names, listed []*entry) {
	budget := *ts.stream.budget
	if budget == 0 {
		return wanted, members
	}
	globs, wanted := globsFirst(wanted)
	for _, e := range wanted[:globs] {
		size += ts.sizeOfName(e)
	}
	n := 0
	for n < len(members) && size+members[n].sizeOfVersion() <= budget {
		size += members[n].sizeOfVersion()
		n++
	}
	for _, e := range members[n:] {
		ts.withhold(e)
	}
	k := globs
	if ts.form == wildNone && k == 0 {
		k = 1 // no names at all would ask for everything
		size += ts.sizeOfName(wanted[0]) + wanted[0].sizeOfVersion()
	}
	for k < len(wanted) {
		size += ts.sizeOfName(wanted[k]) + wanted[k].sizeOfVersion()
		if size > budget {
			break
		}
		k++
	}
	for _, e := range wanted[k:] {
		e.withheld = e.listed()
	}
	ts.postpone(wanted[k:])
	return wanted[:k], members[:n]
}

// globsFirst puts globs before other names: versions of their members mean nothing without
// them.
func globsFirst(es []*entry) (globs int, ordered []*entry) {
	var rest []*entry
	for _, e := range es {
		if e.isGlob() {
			ordered = append(ordered, e)
		} else {
			rest = append(rest, e)
		}
	}
	return len(ordered), append(ordered, rest...)
}

// withhold notes a member that the server is not told of: it has to speak of it, or there
// is none.
func (ts *typeState) withhold(e *entry) {
	e.withheld = true
	ts.unlisted = append(ts.unlisted, e)
}

// withholdForeign withholds the members that another server spoke of.
func (ts *typeState) withholdForeign() {
	for e := range ts.entries.all() {
		if e.foreign() && !e.wanted() {
			ts.withhold(e)
		}
	}
}

// sizeOfVersion is what an initial version takes; 0 if nothing is held.
func (e *entry) sizeOfVersion() int {
	if !e.listed() {
		return 0
	}
	return wire.SizeInitialVersion(e.name, e.version)
}

// fitNames chooses the names of a later delta message, at least one.
func (ts *typeState) fitNames(added []*entry) []*entry {
	budget, size := *ts.stream.budget, 0
	if budget == 0 {
		return added
	}
	for i, e := range added {
		if size += ts.sizeOfName(e); size > budget && i > 0 {
			ts.postpone(added[i:])
			return added[:i]
		}
	}
	return added
}

// postpone leaves names for the next message.
func (ts *typeState) postpone(es []*entry) {
	for _, e := range es {
		e.noted = true
		ts.changed = append(ts.changed, e)
	}
}

// resumed: a delta response that answers the first request of a stream, and leaves out what that
// listed, has said that the version held is the server's own. What was refused since is taken back.
func (m *Machine) resumed(resp *response) {
	ts := resp.ts
	if !resp.first || !ts.stream.Delta {
		return
	}
	var es []*entry
	for e := range ts.entries.all() {
		if e.status == StatusNacked && e.listed() && !e.withheld && e.seen != resp.serial {
			es = append(es, e)
		}
	}
	sortEntries(es)
	for _, e := range es {
		m.absolve(e)
	}
}

// silence: the server did not answer for a held resource whose version was withheld, so
// there is none.
func (m *Machine) silence(now time.Time, e *entry) {
	e.withheld = false
	if e.of.ts.stream.TransientTimeout > 0 {
		m.spoil(e, &Fault{Kind: FaultTimeout, Err: ErrNoAnswer, At: now}, StatusTimeout, false)
		return
	}
	m.remove(now, e, ReasonTimeout)
}

// settling waits for the end of the first state of a stream that was not told of all
// members: until none of them has been spoken of for as long as a resource may take.
func (m *Machine) settling(now time.Time, resp *response) {
	ts := resp.ts
	if len(ts.unlisted) > 0 && (ts.sweepTimer == 0 || resp.resumes) {
		m.startTimer(now, ts.stream, timer{sweep: ts})
	}
}

// sweep removes the members that the server was not told of and did not speak of, if a guard
// does not mind.
func (m *Machine) sweep(now time.Time, ts *typeState) {
	unlisted := slices.DeleteFunc(ts.unlisted, ts.accountedFor)
	ts.unlisted, ts.sweepTimer = nil, 0
	sortEntries(unlisted)
	if !ts.typ.Guarded || len(unlisted) == 0 || ts.keepsDeleted() {
		m.removeUnlisted(now, unlisted)
		return
	}
	going := map[*entry]bool{}
	for _, e := range unlisted {
		going[e] = true
	}
	m.propound(ts, Proposal{ref: ts.stream.ref(), unlisted: unlisted}, func(e *entry) bool { return going[e] })
}

// sweepGuarded takes the judgement of a guard. What is kept is told of again with the next
// stream.
func (m *Machine) sweepGuarded(now time.Time, ev Guarded) {
	p := ev.Proposal
	ts := m.current(p.ref).types[p.TypeURL]
	unlisted := slices.DeleteFunc(p.unlisted, ts.accountedFor)
	switch {
	case len(unlisted) == 0: // the server has spoken of all of it meanwhile
	case ts.busy != nil: // another proposal is being judged, which knows nothing of this
		ts.unlisted = append(ts.unlisted, unlisted...)
		m.startTimer(now, ts.stream, timer{sweep: ts})
	case ev.Err != nil:
		m.fx.Log = append(m.fx.Log, Log{Warn: true, Server: p.Server, TypeURL: p.TypeURL, Text: "a guard keeps what the server does not speak of"})
	default:
		m.removeUnlisted(now, unlisted)
	}
}

// accountedFor says that the server has spoken of what it was not told of, or that this is of no
// interest here any more.
func (ts *typeState) accountedFor(e *entry) bool { return !e.withheld || e.wanted() || !ts.has(e) }

func (m *Machine) removeUnlisted(now time.Time, es []*entry) {
	for _, e := range es {
		e.withheld = false
		m.remove(now, e, ReasonAbsent)
	}
}
