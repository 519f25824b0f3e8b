package machine

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// propose takes what is to be judged; alone says that nothing happened in the step but one
// event.
func (w *world) propose(fx *Effects, alone bool) {
	w.fresh = nil
	for _, p := range fx.Guard {
		if md := w.model(p.TypeURL); !md.typ.Guarded {
			w.fail("a proposal of a type that is not guarded: %+v", p)
		}
		if p.resp != nil && w.sentAs(p.resp.ref) == nil {
			w.fail("a proposal of %v, of which nothing is expected", p.resp.ref)
		}
		w.say("guard %s v%s held %d left %d changed %d removed %q invalid %d", p.TypeURL, p.Version, p.Held, p.Left, len(p.Changed), p.Removed, p.Invalid)
		if (alone || p.resp == nil) && len(fx.Guard) == 1 {
			w.fresh = p
		}
	}
	w.judging = append(w.judging, fx.Guard...)
}

// sentAs finds a response that is not consumed.
func (w *world) sentAs(ref Ref) *simResponse {
	for _, r := range w.sent {
		if r.ref == ref {
			return r
		}
	}
	return nil
}

// judge has a guard judge a proposal.
func (w *world) judge(i int) {
	if i >= len(w.judging) {
		return
	}
	p := w.judging[i]
	w.judging = slices.Delete(w.judging, i, i+1)
	var err error
	verdict := w.next(5)
	if w.stern && verdict != 3 && p.resp != nil && w.sentAs(p.resp.ref).ends(p) {
		verdict = 1 + verdict%2
	}
	switch verdict {
	case 1:
		err = errors.New("too few")
	case 2:
		err = errors.New("too many")
	}
	w.say("judged %s v%s: %v", p.TypeURL, p.Version, err)
	if p.resp != nil {
		r, s := w.sentAs(p.resp.ref), w.stream(p.resp.ref.Stream)
		r.refusal, r.void = err, s.ref != r.ref || s.state != up
		r.ending = p.Removed
	}
	w.push(Guarded{p, err})
	if len(w.queue) == 1 && w.lazy&lazyStep == 0 {
		w.flush()
	}
}

// ends says whether a response removes anything, or lists what is removed or has an error.
func (r *simResponse) ends(p *Proposal) bool {
	return len(p.Removed)+len(r.removed)+len(r.errors) > 0 ||
		slices.ContainsFunc(r.entries, func(en simEntry) bool { return en.kind == entryBodiless })
}

// curtail has a response say of what is known, or is waited for, that it is not there or has an error.
func (w *world) curtail(r *simResponse) {
	names := slices.Sorted(maps.Keys(r.md.words))
	if len(names) == 0 {
		return
	}
	if w.next(4) == 1 {
		r.entries = nil
	}
	for range w.next(4) {
		switch name, how := names[w.next(len(names))], w.next(5); {
		case name == "":
		case how < 2 && w.policy.delta:
			r.removed = append(r.removed, name)
		case how < 2: // it is absent
			r.entries = slices.DeleteFunc(r.entries, func(en simEntry) bool { return en.name(r.md.typ) == name })
		case how < 4:
			r.errors = append(r.errors, simError{name, []int32{codeNotFound, codePermissionDenied}[how-2]})
		default:
			r.entries = append(r.entries, simEntry{kind: entryBodiless, outer: name, inner: name, version: fmt.Sprint(w.next(3))})
		}
	}
}

// detail is what the answer to a response has to say of a guard.
func (r *simResponse) detail() *wire.Status {
	if r.refusal == nil {
		return nil
	}
	return &wire.Status{Message: r.refusal.Error()}
}

// judgement is all that happens in a step.
type judgement struct {
	Guarded
	ts     *typeState
	fresh  bool // nothing happened since the proposal
	taken  bool
	flawed int // names of the response whose resource is used but for its flaws
	before map[string]holding
}

// holding is what is held of a name.
type holding struct {
	raw, version string
	wanted       bool
}

func holdings(ts *typeState) map[string]holding {
	hs := map[string]holding{}
	for e := range ts.entries.all() {
		if e.held() {
			hs[e.name] = holding{string(e.raw), e.version, e.wanted() || ts.member(e)}
		}
	}
	return hs
}

// judgement is that of a step in which nothing else happens; nil if there is none.
func (w *world) judgement(events []Event, alone bool) *judgement {
	ev, ok := events[0].(Guarded)
	if !ok || !alone {
		return nil
	}
	p := ev.Proposal
	ts, taken := w.m.streams[p.ref.Stream].types[p.TypeURL], ev.Err == nil
	if p.resp != nil {
		ts, taken = p.resp.ts, taken && !w.sentAs(p.resp.ref).void
	}
	if ts == nil || p.resp != nil && p.resp.then != nil { // which is taken next
		return nil
	}
	j := &judgement{Guarded: ev, ts: ts, fresh: w.fresh == p, taken: taken, before: holdings(ts)}
	if p.resp != nil {
		j.flawed = p.resp.flawed()
	}
	return j
}

// flawed counts the entries that are used but for their flaws, once for each name that is watched.
func (resp *response) flawed() (n int) {
	for it, r := range resp.outcomes() {
		if r.Err == nil && len(r.Flaws) > 0 {
			n += 1 + len(it.also)
		}
	}
	for _, it := range resp.later {
		if it.kind == isHeld && resp.ts.has(it.entry) && len(resp.ts.flaws[it.entry]) > 0 {
			n++
		}
	}
	return n
}

// check compares what came of a judgement with what was proposed.
func (j *judgement) check(w *world, fx *Effects) {
	switch {
	case j == nil:
	case !j.taken:
		j.checkRefused(w, fx)
	case j.fresh && (j.Proposal.resp != nil || j.ts.busy == nil):
		j.checkTaken(w, fx)
	}
}

// notices are those of the type.
func (j *judgement) notices(fx *Effects) []Notice {
	return slices.DeleteFunc(slices.Clone(fx.Notify), func(n Notice) bool { return n.TypeURL != j.Proposal.TypeURL })
}

// checkRefused: nothing of what is held changes. What nobody wants may go with the answer.
func (j *judgement) checkRefused(w *world, fx *Effects) {
	after := holdings(j.ts)
	for name, h := range j.before {
		if now, ok := after[name]; ok && (now.raw != h.raw || now.version != h.version) || !ok && h.wanted {
			w.fail("%s changed with a response that was refused: %v, was %v", name, now, h)
		}
		delete(after, name)
	}
	if len(after) > 0 {
		w.fail("taken from a response that was refused: %v", after)
	}
	for _, n := range j.notices(fx) {
		if n.Kind == NoticeUpdated || n.Kind == NoticeDoesNotExist || n.Kind == NoticeSynced {
			w.fail("a refused response is the reason of %+v", n)
		}
	}
}

// checkTaken: what was proposed is done, and nothing else.
func (j *judgement) checkTaken(w *world, fx *Effects) {
	p, after := j.Proposal, holdings(j.ts)
	fresh := 0
	changes := map[string]Change{}
	for _, c := range p.Changed {
		h, ok := after[c.Name]
		was, held := j.before[c.Name]
		switch e := j.ts.entries.get(c.Name); {
		case c.New == held:
			w.fail("%s is new: %v, held is %v", c.Name, c.New, was)
		case ok && h.raw != string(c.Raw), !ok && e != nil && e.wanted():
			w.fail("%s changed to %q, proposed was %q", c.Name, h.raw, c.Raw)
		}
		if c.New {
			fresh++
		}
		changes[c.Name] = c
	}
	for _, name := range p.Removed {
		if h, ok := after[name]; ok {
			w.fail("%s was to be removed and is held: %v", name, h)
		}
		if _, ok := j.before[name]; !ok {
			w.fail("%s was to be removed and was not held", name)
		}
	}
	if p.resp != nil && p.Held != len(j.before) || p.Left != p.Held+fresh-len(p.Removed) || len(changes) != len(p.Changed) {
		w.fail("proposed are %d of %d with %d changes, %d of them new, and %q removed; held are %v", p.Left, p.Held, len(p.Changed), fresh, p.Removed, j.before)
	}
	for name, now := range after {
		was, held := j.before[name]
		if _, ok := changes[name]; !ok && (!held || decodeValue([]byte(was.raw)) != decodeValue([]byte(now.raw))) {
			w.fail("%s changed in spite of the proposal: %v, was %v", name, now, was)
		}
	}
	for name, was := range j.before {
		if _, ok := after[name]; !ok && was.wanted && !slices.Contains(p.Removed, name) {
			w.fail("%s is removed in spite of the proposal: %v", name, was)
		}
	}
	j.checkNotices(w, fx, changes)
}

// checkNotices: what is told is what was proposed.
func (j *judgement) checkNotices(w *world, fx *Effects, changes map[string]Change) {
	p, told := j.Proposal, map[string]bool{}
	for _, n := range j.notices(fx) {
		switch n.Kind {
		case NoticeUpdated:
			if c, ok := changes[n.Name]; !ok || c.Value != n.Value {
				w.fail("told is %+v, proposed was %+v", n, c)
			}
			told[n.Name] = true
		case NoticeDoesNotExist:
			if e := j.ts.entries.get(n.Name); e != nil && changes[n.Name].Name != "" && len(n.To) == 0 && e.byAlias() {
				continue // a member that is known by an alias alone from now on
			}
			if _, held := j.before[n.Name]; held && !slices.Contains(p.Removed, n.Name) {
				w.fail("told is %+v, to be removed was %q", n, p.Removed)
			}
			told[n.Name] = true
		case NoticeEnd:
			if n.Stream == p.resp.ref && n.Invalid != p.Invalid+j.flawed {
				w.fail("%d entries are invalid, proposed were %d, with flaws are %d", n.Invalid, p.Invalid, j.flawed)
			}
		}
	}
	for name := range changes {
		if e := j.ts.entries.get(name); e != nil && (len(e.watches) > 0 || len(e.of.watches) > 0 && !e.byAlias()) && !told[name] {
			w.fail("a change of %s was proposed, and is not told", name)
		}
	}
	for _, t := range fx.Decode {
		if p.resp != nil && t.response == p.resp {
			w.fail("%d payloads are decoded that were for the proposal", len(t.Items))
		}
	}
}
