package keeper

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/wire"
)

// desk is a host whose sections are itself. It writes down what is saved.
type desk struct {
	saved []string
	fails atomic.Bool // nothing can be saved
}

func (d *desk) Section(int, string) (Section, string) { return d, "a" }
func (d *desk) Servers(int) []int                     { return nil }
func (d *desk) URI(server int) string                 { return fmt.Sprint("server-", server) }
func (d *desk) Loaded(machine.Loaded)                 {}
func (d *desk) Left(any)                              {}
func (d *desk) Load([]string, func(Resource)) error   { return nil }
func (d *desk) Names() ([]string, error)              { return []string{"a", "old"}, nil }
func (d *desk) Save(changes []Resource) error {
	if d.fails.Load() {
		return ErrNotSaved
	}
	var names []string
	for _, c := range changes {
		name := c.Name
		if c.Resource == nil {
			name = "no " + name
		}
		names = append(names, name)
	}
	d.saved = append(d.saved, strings.Join(names, " "))
	return nil
}

// What could not be saved is saved with what came since, each name once, and what is gone from a collection is
// forgotten behind it. An hour later the store is told that it is good.
//
// spec: LKG-1 LKG-5
func TestSavesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{}
		d.fails.Store(true)
		k := New(d, slog.New(slog.DiscardHandler), []string{"own"})
		begun := time.Now()
		keep := func(names ...string) {
			changes := machine.Keep{TypeURL: "own"}
			for _, name := range names {
				changes.Changes = append(changes.Changes, machine.Kept{Name: name, Complete: true})
			}
			k.Keep([]machine.Keep{changes})
		}
		keep("a", "b")
		time.Sleep(saveAfter + time.Second)
		keep("c", "a")
		k.Keep([]machine.Keep{{TypeURL: "own", Settled: "*", Covers: func(string) bool { return true }, Known: []string{"a"}}})
		time.Sleep(saveAgain)
		synctest.Wait()
		if len(d.saved) > 0 || !k.Unsaved().Equal(begun) {
			t.Errorf("saved are %q, and something waits since %v, want %v", d.saved, k.Unsaved(), begun)
		}
		d.fails.Store(false)
		time.Sleep(saveAgain)
		synctest.Wait()
		if want := []string{"b c a", "no old"}; !slices.Equal(d.saved, want) || !k.Unsaved().IsZero() {
			t.Errorf("saved are %q, want %q; something waits since %v", d.saved, want, k.Unsaved())
		}
		time.Sleep(affirmEvery)
		keep("d")
		k.Close()
		if want := []string{"b c a", "no old", "", "d"}; !slices.Equal(d.saved, want) {
			t.Errorf("saved are %q, want %q", d.saved, want)
		}
	})
}

// While nothing can be saved, names that come and go leave nothing behind, unless the store has them.
//
// spec: LKG-5
func TestRemovalsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{}
		d.fails.Store(true)
		k := New(d, slog.New(slog.DiscardHandler), []string{"own"})
		waiting := func() (n int) {
			k.mu.Lock()
			defer k.mu.Unlock()
			for _, kept := range k.waits.kept {
				n += len(kept.Changes)
			}
			return n
		}
		for round := range 5 {
			kept := change("a", "stays")[0]
			for i := range 2 * maxChanges {
				name := fmt.Sprint(round, " ", i)
				kept.Changes = append(kept.Changes, machine.Kept{Name: name, Raw: []byte{}}, machine.Kept{Name: name})
			}
			kept.Changes = append(kept.Changes, machine.Kept{Name: "a"})
			k.Keep([]machine.Keep{kept})
			time.Sleep(2 * saveAgain)
			synctest.Wait()
			if n := waiting(); n != 2 {
				t.Errorf("round %d: %d changes wait, want those of what the store has and of what there is", round, n)
			}
		}
		if gone := k.removed(key{0, "own"}); !gone("a") || gone("stays") {
			t.Errorf("gone are a: %t, stays: %t", gone("a"), gone("stays"))
		}
		d.fails.Store(false)
		k.Close()
		if want := []string{"stays no a"}; !slices.Equal(d.saved, want) {
			t.Errorf("saved are %.100q, want %q", d.saved, want)
		}
	})
}

// shop is a desk whose store does what a test says. Its methods may be nil.
type shop struct {
	desk
	save   func([]Resource) error
	load   func(yield func(Resource))
	loaded []machine.Loaded
	left   []any
}

func (s *shop) Section(int, string) (Section, string) { return s, "a" }
func (s *shop) Servers(int) []int                     { return []int{0} }
func (s *shop) Loaded(l machine.Loaded)               { s.loaded = append(s.loaded, l) }
func (s *shop) Left(p any)                            { s.left = append(s.left, p) }

func (s *shop) Save(changes []Resource) error {
	if s.save == nil {
		return s.desk.Save(changes)
	}
	return s.save(changes)
}

func (s *shop) Load(_ []string, yield func(Resource)) error {
	s.load(yield)
	return nil
}

func (s *shop) resource(name string) Resource {
	raw := wire.AppendResource(nil, &wire.Resource{Payload: []byte{}, HasBody: true})
	return Resource{Name: name, Resource: raw, Server: s.URI(0)}
}

// inBubble runs a keeper of a shop, until the test has ended.
func inBubble(t *testing.T, test func(*shop, *Keeper, *strings.Builder)) {
	synctest.Test(t, func(t *testing.T) {
		s, log := &shop{}, &strings.Builder{}
		k := New(s, slog.New(slog.NewTextHandler(log, nil)), []string{"own"})
		defer k.Close()
		test(s, k, log)
	})
}

func change(names ...string) []machine.Keep {
	k := machine.Keep{TypeURL: "own"}
	for _, name := range names {
		k.Changes = append(k.Changes, machine.Kept{Name: name, Raw: []byte{}})
	}
	return []machine.Keep{k}
}

// What changes all the time is saved as soon as what changes once, and waits since its first change while it is saved.
//
// spec: LKG-1
func TestSavesWhileThereAreChanges(t *testing.T) {
	inBubble(t, func(s *shop, k *Keeper, _ *strings.Builder) {
		begun := time.Now()
		s.save = func(changes []Resource) error {
			if after := time.Since(begun); len(s.saved) == 0 && (after != saveAfter || !k.Unsaved().Equal(begun)) {
				t.Errorf("saved after %v, and waiting since %v, want %v", after, k.Unsaved(), begun)
			}
			return s.desk.Save(changes)
		}
		for range 10 {
			k.Keep(change("a"))
			time.Sleep(saveAfter / 2)
		}
		synctest.Wait()
		if n := len(s.saved); n < 3 || n > 5 {
			t.Errorf("saved %d times", n)
		}
	})
}

// A store hears that all is good only of what this process has saved, and not while it cannot save.
//
// spec: LKG-5
func TestAffirms(t *testing.T) {
	inBubble(t, func(s *shop, k *Keeper, _ *strings.Builder) {
		s.load = func(func(Resource)) {}
		s.save = func(changes []Resource) error {
			if len(changes) == 0 {
				s.saved = append(s.saved, "")
				return nil
			}
			return s.desk.Save(changes)
		}
		k.Load([]*machine.Load{{TypeURL: "loaded"}})
		k.Keep(change("a"))
		time.Sleep(affirmEvery - time.Second)
		s.fails.Store(true)
		k.Keep(change("b"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"a"}; !slices.Equal(s.saved, want) {
			t.Errorf("saved are %q, want %q", s.saved, want)
		}
		s.fails.Store(false)
		time.Sleep(affirmEvery)
		synctest.Wait()
		if want := []string{"a", "b", ""}; !slices.Equal(s.saved, want) {
			t.Errorf("saved are %q, want %q", s.saved, want)
		}
	})
}

// A fault of a store is logged once while it lasts, and again when it is back; that a store does not return is one.
//
// spec: LKG-1
func TestFaultsAreLogged(t *testing.T) {
	inBubble(t, func(s *shop, k *Keeper, log *strings.Builder) {
		fault := error(nil)
		s.save = func([]Resource) error { return fault }
		for i, text := range []string{"one", "one", "other", "", "other", "panic"} {
			if fault = errors.New(text); text == "" {
				fault = nil
			}
			if text == "panic" {
				s.save = func([]Resource) error { panic(text) }
			}
			k.Keep(change("a"))
			time.Sleep(saveAfter)
			synctest.Wait()
			if n, want := strings.Count(log.String(), "level=WARN"), []int{1, 1, 2, 2, 3, 4}[i]; n != want {
				t.Errorf("after the %d. there are %d lines, want %d:\n%s", i, n, want, log)
			}
		}
		if !slices.Equal(s.left, []any{"panic"}) {
			t.Errorf("left are %v", s.left)
		}
	})
}

// What was accepted a moment ago is saved before the store is read, which the machine is given in parts.
//
// spec: LKG-5
func TestLoadsInParts(t *testing.T) {
	inBubble(t, func(s *shop, k *Keeper, log *strings.Builder) {
		const n = 2*partOfLoad + 1
		s.load = func(yield func(Resource)) {
			if len(s.saved) != 1 {
				t.Errorf("saved are %q", s.saved)
			}
			for i := range n {
				yield(s.resource(fmt.Sprint(i)))
			}
			yield(Resource{Name: "other", Server: "other"})
			yield(Resource{Name: "bad", Server: s.URI(0), Resource: []byte("bad")})
		}
		k.Keep(change("a"))
		l := &machine.Load{TypeURL: "own", All: true}
		k.Load([]*machine.Load{l})
		synctest.Wait()
		var names []string
		for i, part := range s.loaded {
			if part.Load != l || part.Last != (i == len(s.loaded)-1) || len(part.Entries) > partOfLoad {
				t.Errorf("part %d of %d: %d entries, the last: %t", i, len(s.loaded), len(part.Entries), part.Last)
			}
			for _, e := range part.Entries {
				names = append(names, e.Name)
			}
		}
		if len(s.loaded) != 3 || len(names) != n || names[n-1] != fmt.Sprint(n-1) {
			t.Errorf("loaded are %d entries in %d parts", len(names), len(s.loaded))
		}
		if want := "other: " + errOtherServer.Error(); !strings.Contains(log.String(), "count=2") || !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q, of 2:\n%s", want, log)
		}
	})
}

// scales is a desk that weighs each Save.
type scales struct {
	desk
	fail  int // the call of Save that fails
	calls int
	count map[string]int
}

func (s *scales) Section(int, string) (Section, string) { return s, "" }

func (s *scales) Save(changes []Resource) error {
	if s.calls++; s.calls == s.fail {
		return ErrNotSaved
	}
	size := 0
	for _, c := range changes {
		s.count[c.Name]++
		size += len(c.Resource)
	}
	if len(changes) > maxChanges || size > 2*maxSave {
		return fmt.Errorf("at once: %d changes of %d bytes", len(changes), size)
	}
	return nil
}

// A Save has only so many changes, of only so many bytes. If one of several fails, what it and those behind it had is
// saved later, and what came before is not saved again.
//
// spec: LKG-1
func TestSavesInParts(t *testing.T) {
	for what, each := range map[string]struct{ changes, size, calls int }{
		"many":  {3*maxChanges + 1, 1, 4},
		"large": {15, maxSave / 4, 4},
	} {
		for fail := range each.calls + 1 {
			synctest.Test(t, func(t *testing.T) {
				s := &scales{fail: fail, count: map[string]int{}}
				var log strings.Builder
				k := New(s, slog.New(slog.NewTextHandler(&log, nil)), []string{"own"})
				changes := machine.Keep{TypeURL: "own"}
				for i := range each.changes {
					changes.Changes = append(changes.Changes, machine.Kept{Name: fmt.Sprint(i), Raw: make([]byte, each.size)})
				}
				k.Keep([]machine.Keep{changes})
				time.Sleep(saveAfter + saveAgain)
				k.Close()
				calls := each.calls
				if fail > 0 {
					calls++
				} else if log.Len() > 0 {
					t.Error(log.String())
				}
				if s.calls != calls || len(s.count) != each.changes {
					t.Errorf("%s, %d fails: %d names were saved in %d calls, want %d in %d", what, fail, len(s.count), s.calls, each.changes, calls)
				}
				for name, n := range s.count {
					if n != 1 {
						t.Errorf("%s, %d fails: %s was saved %d times", what, fail, name, n)
					}
				}
			})
		}
	}
}
