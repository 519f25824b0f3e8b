package chaos

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/xdswatch/xdswatch/store"
)

// nextStore is the store of the program's next process: what there is now of the last one's files, as a process
// that is killed leaves them, and how they are damaged.
func (w *world) nextStore(d damage) *store.Directory {
	files, _ := filepath.Glob(filepath.Join(w.storeDir, "*")) // the pattern is good
	next := w.t.TempDir()
	for _, file := range files {
		b, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was renamed
		}
		must(w.t, err)
		must(w.t, os.WriteFile(filepath.Join(next, filepath.Base(file)), d.of(w.rng, b), 0o600))
	}
	w.storeDir = next
	return store.Dir(next, store.Options{})
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
	s.reached = true
	s.settle()
	time.Sleep(storeTime)
	s.change(0.5)
	if how == whole {
		s.settle()
		time.Sleep(resourceTimeout + storeTime)
	} else { // saves begin two seconds after a change
		time.Sleep(time.Duration(1900+s.rng.IntN(300)) * time.Millisecond)
	}
	s.log.Printf("the program's process ends, its store is damaged by %d", how)
	kept := s.nextStore(how)
	must(s.t, s.proxy.Refuse(true))
	cut(s)
	s.reached, s.recalled = false, how == whole
	s.program.restart(kept)
	s.await()
	s.recalled = false
}

// restart has another process go on in the program's place. It has the same subscriptions, and of what was
// known a store.
func (p *program) restart(kept *store.Directory) {
	subs := p.subs
	p.close()
	p.config.Store = kept
	p.open()
	for _, s := range subs {
		p.subscribe(s.form, s.kind, s.asked()...).probe = s.probe
	}
}
