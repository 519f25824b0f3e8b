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
