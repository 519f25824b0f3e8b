package chaos

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/internal/race"
)

var fallbackSteps = flag.Int("fallback-steps", 2, "how long the sequences of TestFallbackOrders are")

// trio is a program at three servers in memory, in fake time.
type trio struct {
	*world
	up [3]bool

	active  int  // which server the program uses by the rules
	lacking bool // something was watched that no server has answered
	added   int  // watches that came later
}

// moves are what can happen: a server goes or comes back, or something new is watched.
const moves = len(trio{}.up) + 1

// Whichever of three servers are there in the beginning, and in whatever order they go and
// come back while watches are added: the program uses the first that it may use (gRFC A71),
// is told what that one says, and asks for everything there and for nothing after it.
//
// spec: FALLBACK-1 FALLBACK-3 FALLBACK-4 FALLBACK-5 DNE-1
func TestFallbackOrders(t *testing.T) {
	if testing.Short() {
		t.Skip("long: every order of three servers")
	}
	t.Parallel()
	stride := 1
	if race.Enabled {
		stride = 3 // each third order: all of them take a minute with the race detector
	}
	for _, v := range []variant{{via: viaMemory, spares: 2}, {via: viaMemory, spares: 2, delta: true}} {
		for _, rushed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v rushed=%v", v, rushed), func(t *testing.T) {
				t.Parallel()
				for from := range 1 << len(trio{}.up) {
					for order := from % stride; order < power(moves, *fallbackSteps); order += stride {
						if !t.Failed() {
							synctest.Test(t, func(t *testing.T) { goThrough(t, v, from, order, rushed) })
						}
					}
				}
			})
		}
	}
}

func power(base, exponent int) int {
	n := 1
	for range exponent {
		n *= base
	}
	return n
}

// goThrough does one sequence; its steps are the digits of order. When rushed, steps follow
// each other before their consequences do.
func goThrough(t *testing.T, v variant, from, order int, rushed bool) {
	tr := newTrio(t, v, from)
	tr.log.Printf("from %03b rushed=%v", from, rushed)
	tr.rest()
	for range *fallbackSteps {
		tr.step(order % moves)
		if order /= moves; rushed {
			time.Sleep(7 * time.Millisecond)
			continue
		}
		tr.rest()
	}
	if rushed {
		tr.watch() // so that it is known where the program has to be
		tr.active = len(tr.up) - 1
		tr.rest()
	}
}

func newTrio(t *testing.T, v variant, from int) *trio {
	tr := &trio{world: newWorld(t, 0, v), lacking: true}
	tr.build()
	for i, s := range tr.sites {
		s.edit(func(f *fact) bool { // everything but each type's resource of the server's number
			f.Present = f.Name != kinds[f.Kind].name(i)
			return f.Present
		})
		tr.set(i, from&(1<<i) != 0)
	}
	tr.program.config.ResourceTimeout = time.Second
	tr.program.open()
	for k, kind := range kinds {
		for n := range 4 {
			tr.program.subscribe(watch, k, kind.name(n))
		}
		if kind.typ.FullState() {
			tr.program.subscribe(collection, k, "*")
		}
	}
	return tr
}

func (tr *trio) set(i int, up bool) {
	tr.log.Printf("server %d up: %v", i, up)
	tr.up[i] = up
	server := tr.sites[i].memory.server
	server.SetRefuse(!up)
	if !up {
		server.DropConnections()
	}
}

// step does what a digit stands for.
func (tr *trio) step(n int) {
	if n == len(tr.up) {
		tr.watch()
	} else {
		tr.set(n, !tr.up[n])
	}
}

// watch watches something new, of a type that is not watched as a whole.
func (tr *trio) watch() {
	tr.added++
	tr.lacking = true
	k := 1 + 2*(tr.added%2) // eds or rds
	tr.program.subscribe(watch, k, kinds[k].name(3+tr.added))
}

// follow is the rule of who is active (gRFC A71): the first that can be reached, if it is
// before the active one, or the active one cannot be and something is lacking.
func (tr *trio) follow() {
	first := slices.Index(tr.up[:], true)
	switch {
	case first < 0 && tr.lacking:
		tr.active = len(tr.up) - 1
	case first >= 0 && (first < tr.active || tr.lacking && !tr.up[tr.active]):
		tr.active = first
	}
	tr.lacking = tr.lacking && !tr.up[tr.active]
}

// rest gives the program the time for its longest wait, and for asking a silent server once
// more, and looks at everything.
func (tr *trio) rest() {
	tr.t.Helper()
	time.Sleep(4 * time.Second)
	synctest.Wait()
	tr.follow()
	tr.log.Printf("rest: server %d is active", tr.active)
	tr.look()
	if !tr.up[tr.active] {
		return
	}
	for _, s := range tr.sites {
		s.edit(refreshed)
	}
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
	tr.look()
	tr.allIsRight()
}

// look compares what the program knows, and what servers are asked, with what should be.
func (tr *trio) look() {
	tr.t.Helper()
	for i, s := range tr.sites {
		s.reached = tr.up[tr.active] && i >= tr.active
	}
	if err := tr.program.check(true); err != nil {
		tr.t.Error(err)
	}
	if err := tr.checkRequests(); err != nil {
		tr.t.Errorf("while server %d is active: %v", tr.active, err)
	}
}
