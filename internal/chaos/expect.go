package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/xdstp"
)

// What a client should hold at rest is said in one place, expectLocked, and compared with three
// things: the events that watches got, what the client dumps, and the requests that servers read.

// expectLocked is what whoever watches a resource should know of it: the revision of a value, an
// absence, or a failure, which is that no server can be reached.
func (m *model) expectLocked(k key) (want known, rev int) {
	if m.active == nobody {
		return failed, 0
	}
	if f := m.truths[m.active].facts[k]; f != nil && f.present {
		return value, f.rev
	}
	return absent, 0
}

// mixedLocked says that a value of another server may be held of what the active one lacks, since
// the client subscribed there anew (gRFC A71 accepts such mixtures): in state of the world a
// server cannot say of partial types that it has none.
func (m *model) mixedLocked(kind int, from *truth) bool {
	return !m.delta && from != m.truths[m.active] && !m.kinds[kind].typ.FullState()
}

// namesLocked are those that a subscription should know of.
func (s *sub) namesLocked() map[string]bool {
	names := map[string]bool{}
	for n := range s.told {
		names[n] = true
	}
	for k := range s.model.truths[0].facts {
		if want, _ := s.model.expectLocked(k); want == value && s.concerns(k) {
			names[k.name] = true
		}
	}
	return names
}

// differencesLocked compares events. When calm, nothing may be left of past trouble either. Of what
// the server does not have, a failure may have been the last word: the server says nothing of it
// after a reconnect.
func (s *sub) differencesLocked(calm bool) (out []string) {
	add := func(format string, args ...any) {
		out = append(out, fmt.Sprintf("%v: ", s)+fmt.Sprintf(format, args...))
	}
	reachable := s.model.active != nobody
	switch {
	case s.all == "":
	case !reachable && s.trouble == nil:
		add("nobody said that no server can be reached")
	case reachable && !s.synced:
		add("not synced")
	case reachable && calm && s.trouble != nil:
		add("still in trouble: %v", s.trouble)
	}
	for name := range s.namesLocked() {
		t := s.told[name]
		if t == nil {
			t = &told{}
		}
		switch want, rev := s.model.expectLocked(key{s.kind, name}); {
		case want == failed && s.all == "" && (t.known == nothing || t.known == value && t.trouble == nil):
			add("of %q nobody said that no server can be reached", name)
		case want == value && (t.known != value || t.rev != rev):
			add("%q is %v (revision %d), the server has revision %d", name, t.known, t.rev, rev)
		case want == absent && t.known == value && !s.model.mixedLocked(s.kind, t.from):
			add("%q has revision %d, the server has none", name, t.rev)
		case want == value && t.stale:
			add("%q is stale, and the server has it", name)
		case want == value && calm && t.trouble != nil:
			add("%q is still in trouble: %v", name, t.trouble)
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

// checkDump returns an error for what the client dumps wrong.
func (p *program) checkDump() error {
	m := p.model
	held := map[key]client.State{}
	for _, d := range p.client.Dump() {
		for k := range m.kinds {
			if m.kinds[k].typ.TypeURL() != d.Type {
				continue
			}
			if h, twice := held[key{k, d.Name}]; twice {
				return fmt.Errorf("the client dumps %q twice: as %s of %s, and as %s of %s", d.Name, h.Status, h.Server, d.Status, d.Server)
			}
			held[key{k, d.Name}] = d
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range m.subs {
		for name := range s.namesLocked() {
			k := key{s.kind, name}
			want, rev := m.expectLocked(k)
			d := held[k]
			accepted, from := d.Status == "ACKED", m.source(d.Server)
			if want == value && !(accepted && from == m.truths[m.active]) ||
				want == absent && accepted && !m.mixedLocked(s.kind, from) {
				return fmt.Errorf("%v should have %v of %q, which the client dumps as %q of %s", s, want, name, d.Status, d.Server)
			}
			if want != value {
				continue
			}
			v, err := d.Value()
			if err != nil || v == nil {
				return fmt.Errorf("%v: the client dumps %q as %v: %v", s, name, v, err)
			}
			if got := m.kinds[s.kind].revision(v); got != rev {
				return fmt.Errorf("%v: the client dumps revision %d of %q, the server has %d", s, got, name, rev)
			}
		}
	}
	return nil
}

// checkRequests returns an error for what a server is asked for that it should not be, or is not
// and should be. In use are the active server, and those before it that read requests and are
// silent: they are asked for everything, and the others for nothing.
func (w *world) checkRequests(active int) error {
	wanted, kept := w.program.wanted()
	most := 1 // streams to a server
	if w.variant.perType {
		types := maps.Clone(kept)
		for url := range wanted {
			types[url] = nil
		}
		most = len(types)
	}
	for _, s := range w.sites {
		using := s.index == active || s.index < active && s.silent
		if up := w.program.streamsAt(s.truth.uri); using != (up > 0) || up > most {
			return fmt.Errorf("the program has %d streams to server %d", up, s.index)
		}
		if !using && s.broken() {
			continue // it may be in no state to tell
		}
		a, err := s.server.do(order{Op: opAsked})
		if err != nil {
			return err
		}
		if diff := w.program.misasked(a.Asked, using); diff != "" {
			return fmt.Errorf("server %d has %d streams, and is asked (-want +got):\n%s", s.index, a.Streams, diff)
		}
		if s.index == active && !a.Settled {
			return fmt.Errorf("server %d has responses that were not answered", s.index)
		}
	}
	return nil
}

// misasked compares what a server is asked for, by type URL, with what it should be.
func (p *program) misasked(asked map[string][]string, using bool) string {
	wanted, kept := p.wanted()
	got := map[string][]string{}
	for url, names := range asked {
		names = slices.DeleteFunc(p.model.besideWildcard(names), func(n string) bool {
			return kept[url][n] && !slices.Contains(wanted[url], n)
		})
		if len(names) > 0 {
			got[url] = names
		}
	}
	if !using {
		clear(wanted)
	}
	return cmp.Diff(wanted, got)
}

// besideWildcard leaves out what is not named beside a wildcard in state of the world, or may not be:
// old-style names.
func (m *model) besideWildcard(names []string) []string {
	if m.delta || !slices.Contains(names, "*") {
		return names
	}
	return slices.DeleteFunc(names, func(n string) bool { return n != "*" && !xdstp.IsXDSTP(n) })
}

// wanted is what the subscriptions want by type URL, sorted, and what lookups may keep for a while.
func (p *program) wanted() (names map[string][]string, kept map[string]map[string]bool) {
	m := p.model
	m.mu.Lock()
	defer m.mu.Unlock()
	sets, kept := map[string]map[string]bool{}, map[string]map[string]bool{}
	add := func(to map[string]map[string]bool, kind int, name string) {
		url := m.kinds[kind].typ.TypeURL()
		if to[url] == nil {
			to[url] = map[string]bool{}
		}
		to[url][name] = true
	}
	for s := range m.subs {
		if s.all != "" {
			add(sets, s.kind, s.all)
			continue
		}
		for n := range s.told {
			add(sets, s.kind, n)
		}
	}
	for k := range p.lookedUp {
		add(kept, k.kind, k.name)
	}
	names = map[string][]string{}
	for url, set := range sets {
		names[url] = m.besideWildcard(slices.Sorted(maps.Keys(set)))
	}
	return names, kept
}

// patience is how long the program may take to know what the server says, once nothing
// stands in its way.
const patience = 40 * time.Second

// await waits until every watch is right.
func (w *world) await(ctx context.Context, calm bool) error {
	return eventually(ctx, patience, func() error { return w.model.checkEvents(calm) })
}

// settle waits until every watch is right by the word of this server, has it change everything,
// and waits again: so it is seen that every subscription stands. It then notes what is known.
func (s *site) settle(ctx context.Context) error {
	s.model.use(s.index)
	if err := s.await(ctx, false); err != nil {
		return err
	}
	s.truth.refresh()
	if err := s.publish(); err != nil {
		return err
	}
	if err := s.await(ctx, true); err != nil {
		return fmt.Errorf("after everything changed: %w", err)
	}
	if err := s.program.checkDump(); err != nil {
		return err
	}
	s.model.settle()
	s.log.add("settled")
	return nil
}

// eventually waits until a check finds nothing, and else returns what it found last.
func eventually(ctx context.Context, limit time.Duration, check func() error) error {
	for deadline := time.Now().Add(limit); ; {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %v: %w", limit, err)
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}
