package chaos

import (
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// world is servers and the ways to them, with a program that lives among them. It is driven
// by one goroutine, that of its test, which it fails when something is wrong.
type world struct {
	variant
	t        testing.TB
	rng      *rand.Rand
	log      *log.Logger
	files    *pki     // nil in memory
	sites    []*site  // in order of priority
	sequence []string // of faults, with their servers
	program  *program
	storeDir string // of the store of the program's process; empty before the first

	said     []*fact      // by revision: whose it is
	recalled bool         // a store has all that the first server had said, for when none can be reached
	calls    [sources]int // of handlers so far, by source: each has one at a time
	faults   []string     // of the client

	mu    sync.Mutex
	heard []func() // judges what the program was told since; guarded by mu
}

// reported is how much of a journal's end a report has.
const reported = 256 << 10 // bytes

// newWorld makes a world for the length of a test, whose servers do not run yet. What happens goes to a
// journal; a test that fails reports its end, and how it came to it.
func newWorld(t testing.TB, seed uint64, v variant) *world {
	journal, err := os.Create(filepath.Join(t.TempDir(), "journal"))
	must(t, err)
	w := &world{variant: v, t: t, rng: rand.New(rand.NewPCG(seed, 0)), storeDir: t.TempDir(), log: log.New(journal, "", log.Lmicroseconds)}
	t.Cleanup(func() {
		journal.Close()
		if t.Failed() {
			b, _ := os.ReadFile(journal.Name()) // a report has what can be had
			t.Logf("seed %d, %v, faults %s\nlast events:\n%s", seed, v, strings.Join(w.sequence, " "), b[max(0, len(b)-reported):])
		}
	})
	for i := range 1 + v.spares {
		s := &site{world: w, index: i, facts: map[string]*fact{}, reached: true, away: true}
		for k, kind := range kinds {
			for n := range names {
				for _, name := range []string{kind.name(n), kind.member(n)} {
					s.facts[name] = &fact{Kind: k, Name: name, by: s, number: n}
				}
			}
		}
		w.sites = append(w.sites, s)
	}
	return w
}

// build starts the servers, and makes a program for them.
func (w *world) build() {
	if w.via != viaMemory {
		w.files = newPKI(w.t)
	}
	for _, s := range w.sites {
		s.build()
	}
	w.program = newProgram(w)
	w.t.Cleanup(w.program.close)
}

// later has something that the program was told judged, in its turn. Safe for concurrent use.
func (w *world) later(judge func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, judge)
}

// listen judges what the program was told so far, and says how much that was.
func (w *world) listen() int {
	w.mu.Lock()
	heard := w.heard
	w.heard = nil
	w.mu.Unlock()
	for _, judge := range heard {
		judge()
	}
	return len(heard)
}

// step changes a subscription of the program or some resources of a server.
func (w *world) step() {
	if w.rng.IntN(4) == 0 {
		w.sites[w.rng.IntN(len(w.sites))].change(0.1)
	} else {
		w.program.step()
	}
}

// round has faults at all servers, which overlap where there are several; it sees now and then
// that all is well with the servers that are left, and in the end with the first. Who is next is left
// to chance, so servers go and come back in any order.
func (w *world) round(from []fault) {
	from = slices.DeleteFunc(slices.Clone(from), func(f fault) bool { return !f.possible(w.variant) })
	outs := slices.DeleteFunc(slices.Clone(from), func(f fault) bool { return !f.out })
	quota := 2*len(w.sites) - 1
	if len(from) == 0 {
		quota = 0
	}
	for quota > 0 || len(w.broken()) > 0 {
		site := w.sites[w.rng.IntN(len(w.sites))]
		if quota > 0 && site.turn == nil && w.rng.IntN(4) == 0 {
			f := from[w.rng.IntN(len(from))]
			if len(outs) > 0 && w.rng.IntN(len(w.sites)) > 0 { // the others step in for it
				f = outs[w.rng.IntN(len(outs))]
			}
			quota--
			site.begin(f)
		}
		if broken := w.broken(); len(broken) > 0 {
			broken[w.rng.IntN(len(broken))].resume()
		}
		w.step()
		time.Sleep(time.Duration(w.rng.IntN(15)) * time.Millisecond)
		if w.allOut() && w.rng.IntN(10) == 0 {
			w.rest()
		}
	}
	w.rest()
}

// broken are the servers at which a fault lasts.
func (w *world) broken() []*site {
	return slices.DeleteFunc(slices.Clone(w.sites), func(s *site) bool { return s.turn == nil })
}

// allOut says that some servers have faults, and all of those are out of reach for sure.
func (w *world) allOut() bool {
	broken := w.broken()
	return len(broken) > 0 && !slices.ContainsFunc(broken, func(s *site) bool { return !s.turn.out })
}

// rest sees that the program knows what the first server of each source says that can be reached, and that
// all servers are asked for what they should be.
func (w *world) rest() {
	w.program.probe()
	for _, s := range w.sites {
		s.reached = s.turn == nil
	}
	broken := w.broken()
	w.log.Printf("rest: %d servers are broken", len(broken))
	w.settle()
	if len(broken) == len(w.sites) {
		return
	}
	for _, s := range w.sites {
		if s.deaf {
			s.deaf = s.turn != nil // what is silenced later lasts too
			s.proxy.Cut()
		}
	}
	if err := eventually(patience, func() error { return w.checkRequests() }); err != nil {
		w.t.Fatalf("while %d servers are broken: %v", len(broken), err)
	}
	w.refresh()
	w.program.endAmid()
	w.settle()
}

// settle waits until every watch is right by the word of the active servers, has them change everything,
// and waits again: so it is seen that every subscription stands. It then notes what is known.
func (w *world) settle() {
	w.t.Helper()
	w.await()
	w.refresh()
	w.await()
	w.allIsRight()
	w.log.Printf("settled")
}

// refresh has the active servers change everything. Others do not: with nothing new to say when it is their turn, they
// show whether trouble ends by itself, and whether the client asks anew for what it let go.
func (w *world) refresh() {
	w.log.Printf("everything changes")
	for _, s := range w.sites {
		if s.isActive() {
			s.edit(refreshed)
		}
	}
}

// patience is how long the program may take to know what the server says, once nothing
// stands in its way.
const patience = 40 * time.Second

// await waits until every watch is right.
func (w *world) await() {
	w.t.Helper()
	must(w.t, eventually(patience, func() error { return w.program.check(false) }))
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
