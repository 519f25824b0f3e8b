package keeper

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/internal/machine"
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
