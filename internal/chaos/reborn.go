package chaos

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/store"
)

// shelves are the directories of the program's store: one for each of its processes.
type shelves struct {
	t     testing.TB
	under string
	path  string // of the process that runs
	kept  *store.Directory
}

func newShelves(t testing.TB, dir string) *shelves {
	s := &shelves{t: t, under: filepath.Join(dir, "store")}
	must(t, os.Mkdir(s.under, 0o700))
	s.open()
	return s
}

func (s *shelves) open() {
	path, err := os.MkdirTemp(s.under, "")
	must(s.t, err)
	s.path, s.kept = path, store.Dir(path, store.Options{})
}

// next makes the directory of the next process: what there is now of the files, as a process that is killed
// leaves them, and how they are damaged.
func (s *shelves) next(rng *rand.Rand, d damage) {
	from := s.path
	s.open()
	entries, err := os.ReadDir(from)
	must(s.t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // it was renamed
		}
		must(s.t, err)
		must(s.t, os.WriteFile(filepath.Join(s.path, e.Name()), d.of(rng, b), 0o600))
	}
}

// damage is what happens to a file.
type damage uint8

const (
	whole    damage = iota
	cutShort        // as when a process is killed in the middle of a write
	flipped         // one bit is another
	damages
)

func (d damage) of(rng *rand.Rand, b []byte) []byte {
	switch {
	case len(b) == 0:
	case d == cutShort:
		return b[:rng.IntN(len(b))]
	case d == flipped:
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
	}
	return b
}

// storeTime is when everything that the program was told is in its store. What a collection that is
// watched anew lacks, the store forgets a resourceTimeout later (LKG-5).
const storeTime = 4 * time.Second

// reborn ends the program's process and starts another while its server cannot be reached. What it then has
// was accepted once; if the store was whole and in time, it is all that the server had said last.
func reborn(s *site) {
	how := damage(s.turn.n)
	must(s.t, s.proxy.Refuse(false))
	s.settle()
	time.Sleep(storeTime)
	s.change(0.5)
	if how == whole {
		s.settle()
		time.Sleep(resourceTimeout + storeTime)
	} else { // saves begin two seconds after a change
		time.Sleep(time.Duration(1900+s.rng.IntN(300)) * time.Millisecond)
	}
	s.log.add("the program's process ends, its store is damaged by %d", how)
	s.shelves.next(s.rng, how)
	must(s.t, s.proxy.Refuse(true))
	cut(s)
	s.model.use(nobody, how == whole)
	s.program.restart(s.shelves.kept)
	s.await(false)
}

// restart has another process go on in the program's place. It has the same subscriptions, and of what was
// known a store.
func (p *program) restart(kept *store.Directory) {
	subs := p.subs
	p.subs, p.probes = nil, nil
	p.close()
	p.model.mu.Lock()
	clear(p.standing)
	p.model.mu.Unlock()
	for _, names := range p.lookedUp {
		clear(names)
	}
	p.config.Store = kept
	p.open()
	for _, s := range subs {
		names := slices.Sorted(maps.Keys(s.told))
		if s.form == collection {
			names = []string{s.all}
		}
		p.subscribe(s.form, s.kind, names...)
	}
}
