package machine

import (
	"bytes"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
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

// plan is what a response of a guarded type would do, while it is decoded and judged.
type plan struct {
	entries  []planned
	times    map[string]int  // that the response holds a name
	refused  map[string]bool // names of which it says what is invalid
	lost     map[*entry]loss
	nameless bool
	invalid  int

	tasks   []*Task
	names   [][]string // of the tasks' items
	results [][]Result
	left    int // tasks that are not back

	done     bool              // and allowed
	prepared map[string]result // by name
}

// loss is how a response ends what is held of a name.
type loss uint8

const (
	deleted loss = iota + 1 // which may be ignored (gRFC A53)
	dropped                 // for an error (gRFC A88)
)

// planned is what a response says of a name.
type planned struct {
	index int
	name  string
	entry *entry // nil if there is none yet
}

// result is what was decoded in advance.
type result struct {
	raw, old      []byte
	oldAttributes *wire.Attributes
	Result
}

// inspect begins with a response of a guarded type: what is new in it is decoded, with no
// effect on what is held.
func (m *Machine) inspect(resp *response) {
	p := &plan{times: map[string]int{}, refused: map[string]bool{}, lost: map[*entry]loss{}, prepared: map[string]result{}}
	resp.plan = p
	for i := range resp.Resources {
		r := &resp.Resources[i]
		if name, _ := resp.ts.nameOf(r); name == nil {
			p.nameless = true
			p.invalid++
		} else {
			resp.planName(i, name, false)
		}
		if r.Attributes != nil {
			for _, name := range r.Attributes.Aliases {
				resp.planName(i, name, true)
			}
		}
	}
	resp.planLinked()
	resp.planRemoved()
	resp.planErrors()
	for _, pl := range p.entries {
		resp.planItem(pl)
	}
	p.results, p.left = make([][]Result, len(p.tasks)), len(p.tasks)
	m.fx.Decode = append(m.fx.Decode, p.tasks...)
	if p.left == 0 {
		m.propose(resp)
	}
}

// planName notes a name that is asked for, or that of a new member.
func (resp *response) planName(i int, name []byte, alias bool) {
	e, key := resp.ts.called(name)
	if e == nil && (alias || resp.ts.home(key) == nil) || !resp.ts.chose(e, key, resp.constraints(i)) {
		return
	}
	resp.plan.entries = append(resp.plan.entries, planned{i, key, e})
	resp.plan.times[key]++
}

// planLinked notes what was asked for by aliases that the response does not tell of.
func (resp *response) planLinked() {
	ts, p := resp.ts, resp.plan
	if len(ts.aliases.of) == 0 {
		return
	}
	for i := range resp.Resources {
		name, _ := ts.nameOf(&resp.Resources[i])
		for _, e := range ts.linked(name) {
			if p.times[e.name] == 0 {
				resp.planName(i, []byte(e.name), true)
			}
		}
	}
}

// called finds the entry of a name, nil if there is none, and what it is or would be called.
func (ts *typeState) called(name []byte) (*entry, string) {
	switch e, canonical := ts.lookup(name); {
	case e != nil:
		return e, e.name
	case canonical != "":
		return nil, canonical
	}
	return nil, string(name)
}

// planItem has a payload decoded that is not held.
func (resp *response) planItem(pl planned) {
	p, r, e := resp.plan, &resp.Resources[pl.index], pl.entry
	locator := resp.ts.redirects(r)
	switch {
	case p.times[pl.name] > 1, e != nil && e.isGlob(), resp.ts.faultOf(r) != nil,
		!r.HasBody && !resp.ts.stream.Delta && (e == nil || !resp.heartbeat(r, e)):
		p.invalid++
		p.refused[pl.name] = true
		return
	case !r.HasBody:
		if e != nil && !resp.heartbeat(r, e) {
			p.lose(e, deleted)
		}
		return
	case e != nil && !resp.renews(pl.index, e) && e.holds(r, locator):
		return
	}
	if n := len(p.tasks); n == 0 || len(p.tasks[n-1].Items) == chunk {
		p.tasks = append(p.tasks, &Task{Server: resp.ts.stream.server, Type: resp.ts.typ, response: resp, index: n})
		p.names = append(p.names, nil)
	}
	n := len(p.tasks) - 1
	p.tasks[n].Items = append(p.tasks[n].Items, resp.itemOf(pl.index, e, locator))
	p.names[n] = append(p.names[n], pl.name)
}

// planRemoved notes what the response lists as removed.
func (resp *response) planRemoved() {
	ts, p := resp.ts, resp.plan
	for _, name := range resp.Removed {
		e, key := ts.called(name)
		p.times[key]++
		p.lose(e, deleted)
		for _, e := range ts.linked(name) {
			p.lose(e, deleted)
		}
	}
}

// planErrors notes what the response has errors for that end it.
func (resp *response) planErrors() {
	p := resp.plan
	for i := range resp.Errors {
		re := &resp.Errors[i]
		p.nameless = p.nameless || len(re.Name) == 0
		own, _ := resp.ts.lookup(re.Name)
		for _, e := range append(resp.ts.linked(re.Name), own) {
			switch {
			case e == nil || p.times[e.name] > 0 || !resp.ts.chose(e, e.name, re.Constraints):
			case re.Code == codeNotFound:
				p.lose(e, deleted)
			case re.Code == codePermissionDenied:
				p.lose(e, dropped)
			default:
				p.times[e.name]++ // it is spoken of
			}
		}
	}
}

// lose notes that an entry goes, or all members of a glob.
func (p *plan) lose(e *entry, how loss) {
	switch {
	case e == nil:
	case e.isGlob():
		for _, member := range e.of.inOrder() {
			p.lost[member] = how
		}
	default:
		p.lost[e] = how
	}
}

// inspected takes back what was decoded in advance.
func (m *Machine) inspected(ev Decoded) {
	p := ev.Task.response.plan
	p.results[ev.Task.index] = ev.Results
	if p.left--; p.left == 0 {
		m.propose(ev.Task.response)
	}
}

// propose asks whether a response may be taken.
func (m *Machine) propose(resp *response) {
	ts, p := resp.ts, resp.plan
	var changed []Change
	for i, t := range p.tasks {
		for j, it := range t.Items {
			name, r := p.names[i][j], p.results[i][j]
			p.prepared[name] = result{it.Raw, it.Old, it.OldAttributes, r}
			switch {
			case r.Err != nil:
				p.invalid++
				p.refused[name] = true
			case !r.Same:
				changed = append(changed, Change{name, it.entry == nil || !it.entry.held(), r.Value, it.Raw})
			}
		}
	}
	p.tasks, p.names, p.results = nil, nil, nil
	m.propound(ts, Proposal{Version: resp.Version, Changed: changed, Invalid: p.invalid, resp: resp}, func(e *entry) bool {
		return m.removes(resp, e)
	})
}

// propound has a proposal judged that would remove some of what is held.
func (m *Machine) propound(ts *typeState, p Proposal, removes func(*entry) bool) {
	p.Server, p.TypeURL, p.ref = ts.stream.server, ts.typ.URL, ts.stream.ref()
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

// removes says whether a response would end a resource that is held.
func (m *Machine) removes(resp *response, e *entry) bool {
	ts, p := resp.ts, resp.plan
	keeps := m.keepsDeleted(ts.stream)
	switch times, how := p.times[e.name], p.lost[e]; {
	case times > 1 || p.refused[e.name] || how == dropped:
		return ts.stream.FailOnDataErrors
	case how == deleted:
		return !keeps
	case keeps || times == 1 || p.nameless || !resp.tellsAll():
		return false
	}
	return ts.lacksIn(e, ts.lateStar)
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
		m.end(now, resp)
	case ev.Err != nil:
		m.refuseAll(now, resp, ev)
	default:
		resp.plan.done = true
		m.work(now, resp)
	}
}

// refuseAll NACKs a response of which nothing is taken. What it would have changed is told
// to be refused, with what is held as it was; so is the first state of a collection.
func (m *Machine) refuseAll(now time.Time, resp *response, ev Guarded) {
	resp.lines = []string{ev.Err.Error()}
	resp.invalid = len(resp.Resources)
	ts := resp.ts
	f := &Fault{Kind: FaultRejected, Err: ev.Err, At: now, Version: resp.Version}
	for _, c := range ev.Proposal.Changed {
		if e := ts.entries.get(c.Name); e != nil {
			m.spoil(e, f, StatusNacked, false)
		}
	}
	for _, pl := range resp.plan.entries {
		e := ts.entries.get(pl.name)
		if e == nil {
			continue
		}
		if resp.plan.refused[pl.name] && !e.isGlob() {
			m.spoil(e, f, StatusNacked, false) // it is there
		}
		if resp.Renewed[pl.index] {
			ts.renewed[e] = true
		}
	}
	resp.hearPlanned()
	for _, c := range resp.completes() {
		m.lack(c, Notice{Kind: NoticeFailed, Fault: f})
	}
	if s := ts.stream; s.troubled() {
		m.recovered(s)
	}
	m.owe(now, resp)
	m.end(now, resp)
}

// hearPlanned notes what a response of which nothing is taken speaks of.
func (resp *response) hearPlanned() {
	ts := resp.ts
	for _, pl := range resp.plan.entries {
		if e := ts.entries.get(pl.name); e != nil { // maybe not as when it was planned
			e.see(resp)
		} else if c := ts.home(pl.name); c != nil {
			resp.hear(c)
		}
	}
	for _, name := range resp.Removed {
		if e, _ := ts.lookup(name); e != nil {
			e.see(resp)
		}
	}
	for i := range resp.Errors {
		re := &resp.Errors[i]
		if e, _ := ts.lookup(re.Name); e != nil && ts.chose(e, e.name, re.Constraints) {
			e.see(resp)
		}
	}
}

// anticipate takes the results of a task from what was decoded in advance; nil if
// something is not there, as when a resource was let go meanwhile.
func (resp *response) anticipate(t *Task) []Result {
	if resp.plan == nil {
		return nil
	}
	rs := make([]Result, len(t.Items))
	for i, it := range t.Items {
		r, ok := resp.plan.prepared[it.entry.name]
		if !ok || (r.old == nil) != (it.Old == nil) || !bytes.Equal(r.old, it.Old) || r.oldAttributes != it.OldAttributes {
			return nil
		}
		t.Items[i].Raw, rs[i] = r.raw, r.Result
	}
	return rs
}
