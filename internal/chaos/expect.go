package chaos

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/xdswatch/xdswatch/xdstp"
)

// What a client should hold at rest is said in one place, expectLocked, and compared with three
// things: the events that watches got, what the client dumps, and the requests that servers read.

// expectLocked is what whoever watches a resource should know of it: a value, an absence, or a failure,
// which is that no server can be reached and no store has it.
func (m *model) expectLocked(k key) holding {
	from := m.activeLocked()
	switch {
	case m.recalled:
		from = m.truths[0]
	case from == nil:
		return holding{known: failed}
	}
	if f := from.facts[k]; f != nil && f.Present {
		return holding{known: value, rev: f.Rev, stale: m.recalled}
	}
	return holding{known: absent}
}

// wrongLocked says what is wrong with what is known of a resource; "" if nothing is. A value of another
// server may be held of what the active one lacks, since the client subscribed there anew (gRFC A71
// accepts such mixtures): in state of the world a server cannot say of partial types that it has none. Of
// what the server does not have, a failure may be known: the server says nothing of it after a reconnect.
func (m *model) wrongLocked(k key, h holding) string {
	want := m.expectLocked(k)
	mixed := !m.delta && !m.kinds[k.kind].typ.FullState() && m.active != nobody && m.sayer(h.rev) != m.active
	h.trouble = nil
	if want.known == value && h != want || want.known == absent && h.known == value && !mixed {
		return fmt.Sprintf("%q is %v, and should be %v", k.name, h, want)
	}
	return ""
}

// namesLocked are those that a subscription should know of.
func (s *sub) namesLocked() map[string]bool {
	names := map[string]bool{}
	for n := range s.told {
		names[n] = true
	}
	for k := range s.model.truths[0].facts {
		if s.concerns(k) && s.model.expectLocked(k).known == value {
			names[k.name] = true
		}
	}
	return names
}

// differencesLocked compares what was told. When calm, nothing may be left of past trouble either.
func (s *sub) differencesLocked(calm bool) (out []string) {
	add := func(format string, args ...any) {
		out = append(out, fmt.Sprintf("%v: ", s)+fmt.Sprintf(format, args...))
	}
	reachable := s.model.activeLocked() != nil
	switch {
	case s.form != collection:
	case !reachable && s.trouble == nil:
		add("nobody said that no server can be reached")
	case reachable && !s.synced:
		add("not synced")
	case reachable && calm && s.trouble != nil:
		add("still in trouble: %v", s.trouble)
	}
	for name := range s.namesLocked() {
		var h holding
		if t := s.told[name]; t != nil {
			h = t.holding
		}
		wrong := s.model.wrongLocked(key{s.kind, name}, h)
		switch {
		case wrong != "":
			add("%s", wrong)
		case !reachable && s.form != collection && (h.known == nothing || h.known == value && h.trouble == nil):
			add("of %q nobody said that no server can be reached", name)
		case reachable && calm && h.known == value && h.trouble != nil:
			add("%q is still in trouble: %v", name, h.trouble)
		}
	}
	return out
}

// checkEvents returns an error for what watches were told wrong so far, or lack now.
func (m *model) checkEvents(calm bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.faults) > 0 {
		return errors.New(m.faults[0])
	}
	var differences []string
	for s := range m.subs {
		differences = append(differences, s.differencesLocked(calm)...)
	}
	if len(differences) == 0 {
		return nil
	}
	return fmt.Errorf("there are %d differences, among them: %s", len(differences), slices.Min(differences))
}

// checkTimers returns an error for a watch that was told nothing, though all timers are over.
func (m *model) checkTimers() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range m.subs {
		for name, t := range s.told {
			if t.known == nothing {
				return fmt.Errorf("%v was told nothing of %q", s, name)
			}
		}
	}
	return nil
}

// checkDump returns an error for what the client dumps wrong.
func (p *program) checkDump() error {
	m := p.model
	m.mu.Lock()
	defer m.mu.Unlock()
	held := map[key]holding{}
	for _, d := range p.client.Dump() {
		kind := slices.IndexFunc(m.kinds, func(k kind) bool { return k.typ.TypeURL() == d.Type })
		if kind < 0 {
			return fmt.Errorf("the client dumps %q of type %s", d.Name, d.Type)
		}
		k := key{kind, d.Name}
		if _, twice := held[k]; twice {
			return fmt.Errorf("the client dumps %q twice", d.Name)
		}
		held[k] = holding{}
		if v, err := d.Value(); err != nil {
			return fmt.Errorf("the client dumps %q: %w", d.Name, err)
		} else if v != nil && d.Status == "ACKED" {
			rev := m.kinds[kind].revision(v)
			if !m.truthful(d.Server, k, rev) {
				return fmt.Errorf("the client dumps revision %d of %q, which the server %s never said", rev, d.Name, d.Server)
			}
			held[k] = holding{known: value, rev: rev, stale: d.Stale}
		}
	}
	if m.activeLocked() == nil {
		return nil
	}
	for s := range m.subs {
		for name := range s.namesLocked() {
			k := key{s.kind, name}
			if wrong := m.wrongLocked(k, held[k]); wrong != "" {
				return fmt.Errorf("%v: in the client's dump %s", s, wrong)
			}
		}
	}
	return nil
}

// checkRequests returns an error for what a server is asked for that it should not be, or is not
// and should be. In use are the active server, and those before it that read requests and are
// silent: they are asked for everything, and the others for nothing.
func (w *world) checkRequests(active int) error {
	want, none := w.program.wanted(), make([][]string, len(w.model.kinds))
	most := 1 // streams to a server
	if w.variant.perType {
		most = 0
		for k := range want {
			if len(want[k])+len(w.program.lookedUp[k]) > 0 {
				most++
			}
		}
	}
	for _, s := range w.sites {
		using := s.index == active || s.index < active && s.silent
		if up := w.program.streamsAt(s.truth.uri); using != (up > 0) || up > most {
			return fmt.Errorf("the program has %d streams to server %d", up, s.index)
		}
		if !using && s.turn != nil {
			continue // it may be in no state to tell
		}
		a := s.asked()
		for k, names := range a.Names {
			a.Names[k] = slices.DeleteFunc(w.model.besideWildcard(names), func(n string) bool {
				return w.program.lookedUp[k][n] && !slices.Contains(want[k], n) // it may be kept for a while
			})
		}
		expected := none
		if using {
			expected = want
		}
		if diff := cmp.Diff(expected, a.Names, cmpopts.EquateEmpty()); diff != "" {
			return fmt.Errorf("server %d has %d streams, and is asked (-want +got):\n%s", s.index, a.Streams, diff)
		}
		if s.index == active && !a.Settled {
			return fmt.Errorf("server %d has responses that were not answered", s.index)
		}
	}
	return nil
}

// wanted is what the subscriptions want of each kind, sorted.
func (p *program) wanted() [][]string {
	m := p.model
	m.mu.Lock()
	defer m.mu.Unlock()
	want := make([][]string, len(m.kinds))
	for s := range m.subs {
		if s.form == collection {
			want[s.kind] = append(want[s.kind], s.all)
		} else {
			want[s.kind] = slices.AppendSeq(want[s.kind], maps.Keys(s.told))
		}
	}
	for k, names := range want {
		slices.Sort(names)
		want[k] = m.besideWildcard(slices.Compact(names))
	}
	return want
}

// besideWildcard leaves out what is not named beside a wildcard in state of the world, or may not be:
// old-style names.
func (m *model) besideWildcard(names []string) []string {
	if m.delta || !slices.Contains(names, "*") {
		return names
	}
	return slices.DeleteFunc(names, func(n string) bool { return n != "*" && !xdstp.IsXDSTP(n) })
}

// patience is how long the program may take to know what the server says, once nothing
// stands in its way.
const patience = 40 * time.Second

// await waits until every watch is right.
func (w *world) await(calm bool) {
	w.t.Helper()
	must(w.t, eventually(patience, func() error { return w.model.checkEvents(calm) }))
}

// settle waits until every watch is right by the word of this server, has it change everything,
// and waits again: so it is seen that every subscription stands. It then notes what is known.
func (s *site) settle() {
	s.t.Helper()
	s.model.use(s.index, false)
	s.await(false)
	s.log.add("everything changes")
	s.truth.refresh()
	s.publish()
	s.await(true)
	must(s.t, s.program.checkDump())
	s.model.settle()
	s.log.add("settled")
}

// eventually waits until a check finds nothing, and else returns what it found last.
func eventually(limit time.Duration, check func() error) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		if err := check(); err == nil {
			return nil
		} else if time.Now().After(deadline) {
			return fmt.Errorf("after %v: %w", limit, err)
		}
	}
}
