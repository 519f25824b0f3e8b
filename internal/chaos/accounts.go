package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/xdstp"
)

// accounts waits until each server is asked for what it should be: the active one, and
// those before it that read requests and are silent, for everything; the others for nothing.
func (w *world) accounts(ctx context.Context, active int) error {
	for deadline := time.Now().Add(patience); ; {
		wrong, err := w.account(active)
		switch {
		case err != nil || wrong == "":
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("while server %d is active: %s", active, wrong)
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// account says what is asked for that should not be, or is not and should be; "" if all is
// as it should be.
func (w *world) account(active int) (wrong string, err error) {
	wanted, kept := w.program.wanted()
	for _, s := range w.sites {
		using := s.index == active || s.index < active && s.silent
		up := w.program.streamsAt(s.truth.uri)
		if most := w.streamsOf(wanted, kept); using != (up > 0) || up > most {
			return fmt.Sprintf("the program has %d streams to server %d", up, s.index), nil
		}
		if !using && s.broken() {
			continue // it may be in no state to tell
		}
		a, err := s.child.do(order{Op: opAsked})
		if err != nil {
			return "", err
		}
		asked := w.program.model.subscribed(a.Asked)
		forget(asked, wanted, kept)
		want := wanted
		if !using {
			want = map[string][]string{}
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			return fmt.Sprintf("server %d has %d streams, and is asked (-want +got):\n%s", s.index, a.Streams, diff), nil
		}
	}
	return "", nil
}

// streamsOf is how many streams to a server there may be.
func (w *world) streamsOf(wanted map[string][]string, kept map[string]map[string]bool) int {
	types := maps.Clone(kept)
	for url := range wanted {
		types[url] = nil
	}
	if !w.variant.perType {
		return 1
	}
	return len(types)
}

// subscribed is what a server says that it is asked for, as [program.wanted] has it.
func (m *model) subscribed(types map[string][]string) map[string][]string {
	all := map[string][]string{}
	for url, names := range types {
		all[url] = m.besideWildcard(names)
	}
	return all
}

// besideWildcard leaves out what is not named beside a wildcard in state of the world, or may not be:
// old-style names.
func (m *model) besideWildcard(names []string) []string {
	if m.delta || !slices.Contains(names, "*") {
		return names
	}
	return slices.DeleteFunc(names, func(n string) bool { return n != "*" && !xdstp.IsXDSTP(n) })
}

// forget leaves out names that lookups keep for a while, unless they are wanted.
func forget(asked, wanted map[string][]string, kept map[string]map[string]bool) {
	for url, names := range asked {
		names = slices.DeleteFunc(names, func(n string) bool { return kept[url][n] && !slices.Contains(wanted[url], n) })
		if asked[url] = names; len(names) == 0 {
			delete(asked, url)
		}
	}
}

// wanted is what the subscriptions want by type URL, sorted, and what lookups may keep.
func (p *program) wanted() (names map[string][]string, kept map[string]map[string]bool) {
	m := p.model
	m.mu.Lock()
	defer m.mu.Unlock()
	sets := map[string]map[string]bool{}
	for s := range m.subs {
		url := m.kinds[s.kind].typ.TypeURL()
		if sets[url] == nil {
			sets[url] = map[string]bool{}
		}
		if s.all != "" {
			sets[url][s.all] = true
			continue
		}
		for n := range s.told {
			sets[url][n] = true
		}
	}
	names = map[string][]string{}
	for url, set := range sets {
		if len(set) > 0 {
			names[url] = m.besideWildcard(slices.Sorted(maps.Keys(set)))
		}
	}
	kept = map[string]map[string]bool{}
	for k := range p.lookedUp {
		url := m.kinds[k.kind].typ.TypeURL()
		if kept[url] == nil {
			kept[url] = map[string]bool{}
		}
		kept[url][k.name] = true
	}
	return names, kept
}

// streamsAt is how many streams of the program to a server stand.
func (p *program) streamsAt(uri string) int {
	p.model.mu.Lock()
	defer p.model.mu.Unlock()
	return p.standing[uri]
}

// probe watches something of each type that no server has and nobody watched before: so
// something is lacking, wherever the client is. What was watched so before is done with.
func (p *program) probe(n int) error {
	before := p.probes
	p.probes = nil
	for k, kind := range p.model.kinds {
		for _, name := range []string{kind.name(names + n), kind.member(names + n)} {
			if err := p.watch(k, name); err != nil {
				return err
			}
			last := len(p.subs) - 1
			p.probes = append(p.probes, p.subs[last])
			p.subs = p.subs[:last]
		}
	}
	for _, s := range before {
		p.end(s)
	}
	return nil
}
