package chaos

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/xdstp"
)

// What a client should hold at rest is said in one place, expect, and compared with three
// things: the events that watches got, what the client dumps, and the requests that servers read.

// expect is what a subscription should know under a name: a value, an absence, or a failure,
// which is that no server can be reached and no store has it.
func (s *sub) expect(name string) holding {
	from, stale := s.active(sourceOf(name)), false
	if from == nil && s.recalled {
		from, stale = s.sites[0], true
	}
	var f *fact
	if from != nil {
		f = from.facts[name]
	}
	switch {
	case from == nil:
		return holding{kind: client.EventFailed}
	case name == s.all:
		return holding{kind: client.EventUpdated}
	case f != nil && f.Present:
		return holding{kind: client.EventUpdated, rev: f.Rev, stale: stale}
	}
	return holding{kind: client.EventDoesNotExist}
}

// compare returns an error for what is known under a name and should not be. A value of another
// server may be held of what the active one lacks, since the client subscribed there anew (gRFC A71
// accepts such mixtures): in state of the world a server cannot say of partial types that it has none. Of
// what the server does not have, a failure may be known: the server says nothing of it after a reconnect.
func (s *sub) compare(name string, h holding) error {
	want := s.expect(name)
	active := s.active(sourceOf(name))
	mixed := !s.delta && !kinds[s.kind].typ.FullState() && active != nil && h.has() && s.said[h.rev].by != active
	h.trouble = nil
	if want.has() && h != want || want.kind == client.EventDoesNotExist && h.has() && !mixed {
		return fmt.Errorf("%v: %q is %v, and should be %v", s, name, h, want)
	}
	return nil
}

// check returns an error for what the subscription was told wrong, or lacks. Nothing may be left of trouble that is
// over: a server that has nothing new to say is well again all the same. Once all timers are over, it was told something.
func (s *sub) check(timersOver bool) error {
	for name, t := range s.told {
		if err := s.compare(name, *t); err != nil {
			return err
		}
		reachable := s.active(sourceOf(name)) != nil
		switch {
		case !reachable && s.asks(name) && t.kind != client.EventDoesNotExist && t.trouble == nil:
			return fmt.Errorf("%v: of %q nobody said that no server can be reached", s, name)
		case reachable && t.has() && t.trouble != nil:
			return fmt.Errorf("%v: %q is still in trouble: %v", s, name, t.trouble)
		case timersOver && s.asks(name) && *t == (holding{}):
			return fmt.Errorf("%v was told nothing of %q", s, name)
		}
	}
	return nil
}

// check returns an error for what the program was told wrong so far, what a subscription lacks now, and what the
// client dumps wrong.
func (p *program) check(timersOver bool) error {
	p.listen()
	dumped := p.dump()
	if len(p.faults) > 0 {
		return errors.New(p.faults[0])
	}
	for _, s := range p.subs {
		if err := s.check(timersOver); err != nil {
			return err
		}
		for name := range s.told {
			if name == s.all || p.active(sourceOf(name)) == nil {
				continue
			}
			if err := s.compare(name, dumped[ask{s.kind, name}]); err != nil {
				return fmt.Errorf("in the dump: %w", err)
			}
		}
	}
	return nil
}

// dump is what the client dumps. Each value in it has to be true, and there once.
func (p *program) dump() map[ask]holding {
	held := map[ask]holding{}
	for _, d := range p.client.Dump() {
		kind := slices.IndexFunc(kinds[:], func(k kind) bool { return k.typ.TypeURL() == d.Type })
		id := ask{kind, d.Name}
		_, twice := held[id]
		what := holding{}
		v, err := d.Value()
		if v != nil && d.Status == "ACKED" {
			what = holding{kind: client.EventUpdated, rev: kinds[kind].revision(v), stale: d.Stale}
		}
		if twice || err != nil || what.has() && p.lies(d.Server, d.Name, what) {
			p.fault("the client dumps %v of %q, by %s; again: %v; error: %v", what, d.Name, d.Server, twice, err)
			what = holding{}
		}
		held[id] = what
	}
	return held
}

// checkRequests returns an error for what a server is asked for that it should not be, or is not
// and should be. A name is asked of the active server of its source, and of those before it that read requests and
// are silent. Where a source has none that can be reached, lookups of it may be kept, so only active servers are looked at.
func (w *world) checkRequests() error {
	want := w.program.wanted()
	for _, s := range w.sites {
		if !s.isActive() && w.active(ofAuthority) == nil { // then maybe of plain names too
			continue
		}
		expected, types := map[ask]bool{}, map[int]bool{}
		for a := range want {
			if from := sourceOf(a.Name); s == w.active(from) || s.silent && s.precedes(from) {
				expected[a], types[a.Kind] = true, true
			}
		}
		most := min(1, len(types))
		if w.perType {
			most = len(types)
		}
		if up := w.program.streamsAt(s.uri); up < min(1, most) || up > most {
			return fmt.Errorf("the program has %d streams to server %d", up, s.index)
		}
		if len(expected) == 0 && s.turn != nil {
			continue // it may be in no state to tell
		}
		a := s.asked()
		if diff := cmp.Diff(expected, w.besideWildcard(a.Names), cmpopts.EquateEmpty()); diff != "" {
			return fmt.Errorf("server %d is asked (-want +got):\n%s", s.index, diff)
		}
		if s.isActive() && !a.Settled {
			return fmt.Errorf("server %d has responses that were not answered", s.index)
		}
	}
	return nil
}

// wanted is what the subscriptions want.
func (p *program) wanted() map[ask]bool {
	want := map[ask]bool{}
	for _, s := range p.subs {
		for _, name := range s.asked() {
			want[ask{s.kind, name}] = true
		}
	}
	return p.besideWildcard(want)
}

// besideWildcard leaves out what is not named beside a wildcard in state of the world, or may not be:
// old-style names.
func (w *world) besideWildcard(asked map[ask]bool) map[ask]bool {
	maps.DeleteFunc(asked, func(a ask, _ bool) bool {
		return !w.delta && a.Name != "*" && !xdstp.IsXDSTP(a.Name) && asked[ask{a.Kind, "*"}]
	})
	return asked
}
