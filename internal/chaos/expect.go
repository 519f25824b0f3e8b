package chaos

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/xdswatch/xdswatch/xdstp"
)

// What a client should hold at rest is said in one place, expectLocked, and compared with three
// things: the events that watches got, what the client dumps, and the requests that servers read.

// reachableLocked says whether any server can be reached.
func (m *model) reachableLocked() bool { return m.active != nobody }

// expectLocked is what a subscription should know under a name: a value, an absence, or a failure,
// which is that no server can be reached and no store has it.
func (s *sub) expectLocked(name string) holding {
	m := s.model
	f := m.truths[max(0, m.active)].facts[name] // the store is of the first
	switch {
	case !m.reachableLocked() && (!m.recalled || f == nil):
		return holding{known: failed}
	case name == s.all:
		return holding{known: value}
	case f != nil && f.Present:
		return holding{known: value, rev: f.Rev, stale: m.recalled}
	}
	return holding{known: absent}
}

// wrongLocked says what is wrong with what is known under a name; "" if nothing is. A value of another
// server may be held of what the active one lacks, since the client subscribed there anew (gRFC A71
// accepts such mixtures): in state of the world a server cannot say of partial types that it has none. Of
// what the server does not have, a failure may be known: the server says nothing of it after a reconnect.
func (s *sub) wrongLocked(name string, h holding) string {
	m, want := s.model, s.expectLocked(name)
	mixed := !m.delta && !kinds[s.kind].typ.FullState() && m.reachableLocked() &&
		h.known == value && m.said[h.rev].by.index != m.active
	h.trouble = nil
	if want.known == value && h != want || want.known == absent && h.known == value && !mixed {
		return fmt.Sprintf("%v: %q is %v, and should be %v", s, name, h, want)
	}
	return ""
}

// namesLocked are those that a subscription should know of.
func (s *sub) namesLocked() map[string]bool {
	names := map[string]bool{}
	for n := range s.told {
		names[n] = true
	}
	for _, f := range s.model.truths[0].order {
		if s.has(f) && s.expectLocked(f.Name).known == value {
			names[f.Name] = true
		}
	}
	return names
}

// differencesLocked compares what was told. When calm, nothing may be left of past trouble either.
func (s *sub) differencesLocked(calm bool) (out []string) {
	for name := range s.namesLocked() {
		var h holding
		if t := s.told[name]; t != nil {
			h = t.holding
		}
		if wrong := s.wrongLocked(name, h); wrong != "" {
			out = append(out, wrong)
		}
		reachable, asked := s.model.reachableLocked(), s.all == "" || s.all == name
		switch {
		case !reachable && asked && h.known != absent && h.trouble == nil:
			out = append(out, fmt.Sprintf("%v: of %q nobody said that no server can be reached", s, name))
		case reachable && calm && h.known == value && h.trouble != nil:
			out = append(out, fmt.Sprintf("%v: %q is still in trouble: %v", s, name, h.trouble))
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
			if t.holding == (holding{}) {
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
	held := map[string]holding{} // each name with its kind
	for _, d := range p.client.Dump() {
		kind := slices.IndexFunc(kinds[:], func(k kind) bool { return k.typ.TypeURL() == d.Type })
		if kind < 0 {
			return fmt.Errorf("the client dumps %q of type %s", d.Name, d.Type)
		}
		id := asked(kind, d.Name)
		if _, twice := held[id]; twice {
			return fmt.Errorf("the client dumps %q twice", id)
		}
		held[id] = holding{}
		if v, err := d.Value(); err != nil {
			return fmt.Errorf("the client dumps %q: %w", d.Name, err)
		} else if v != nil && d.Status == "ACKED" {
			rev := kinds[kind].revision(v)
			if !m.truthful(d.Server, d.Name, rev) {
				return fmt.Errorf("the client dumps revision %d of %q, which the server %s never said", rev, d.Name, d.Server)
			}
			held[id] = holding{known: value, rev: rev, stale: d.Stale}
		}
	}
	for s := range m.subs {
		for name := range s.namesLocked() {
			if wrong := s.wrongLocked(name, held[asked(s.kind, name)]); wrong != "" && name != s.all && m.reachableLocked() {
				return fmt.Errorf("the client dumps: %s", wrong)
			}
		}
	}
	return nil
}

// checkRequests returns an error for what a server is asked for that it should not be, or is not
// and should be. In use are the active server, and those before it that read requests and are
// silent: they are asked for everything, and the others for nothing.
func (w *world) checkRequests(active int) error {
	want := w.program.wanted()
	for _, s := range w.sites {
		var expected []string
		using := s.index == active || s.index < active && s.silent
		if using {
			expected = want
		}
		if up := w.program.streamsAt(s.truth.uri); using != (up > 0) || up > w.mostStreams(want) {
			return fmt.Errorf("the program has %d streams to server %d", up, s.index)
		}
		if !using && s.turn != nil {
			continue // it may be in no state to tell
		}
		a := s.asked()
		got := slices.DeleteFunc(w.model.besideWildcard(a.Names), func(n string) bool {
			return w.program.lookedUp[n] && !slices.Contains(want, n) // it may be kept for a while
		})
		if diff := cmp.Diff(expected, got, cmpopts.EquateEmpty()); diff != "" {
			return fmt.Errorf("server %d is asked (-want +got):\n%s", s.index, diff)
		}
		if s.index == active && !a.Settled {
			return fmt.Errorf("server %d has responses that were not answered", s.index)
		}
	}
	return nil
}

// mostStreams is how many the program may have to a server.
func (w *world) mostStreams(want []string) int {
	if !w.variant.perType {
		return 1
	}
	types := map[string]bool{}
	for _, n := range slices.AppendSeq(slices.Clone(want), maps.Keys(w.program.lookedUp)) {
		label, _, _ := strings.Cut(n, " ")
		types[label] = true
	}
	return len(types)
}

// asked is how requests of a kind for a name are told of.
func asked(kind int, name string) string { return kinds[kind].label + " " + name }

// wanted is what the subscriptions want, as host.Asked has it.
func (p *program) wanted() (want []string) {
	m := p.model
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range m.subs {
		for name := range s.told {
			if s.all == "" || s.all == name {
				want = append(want, asked(s.kind, name))
			}
		}
	}
	slices.Sort(want)
	return m.besideWildcard(slices.Compact(want))
}

// besideWildcard leaves out what is not named beside a wildcard in state of the world, or may not be:
// old-style names.
func (m *model) besideWildcard(names []string) []string {
	all := slices.Clone(names)
	return slices.DeleteFunc(names, func(n string) bool {
		label, name, _ := strings.Cut(n, " ")
		return !m.delta && name != "*" && !xdstp.IsXDSTP(name) && slices.Contains(all, label+" *")
	})
}
