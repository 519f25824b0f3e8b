package lives

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// verb is what a step does.
type verb string

const (
	verbWatch   verb = "watch"   // a name, or "*"
	verbUnwatch verb = "unwatch" // the watch of an earlier step
	verbSet     verb = "set"     // changes at the server, in one go
	verbKill    verb = "kill"    // the server
	verbBegin   verb = "begin"   // another server in its place
	verbCheck   verb = "check"   // wait until all is quiet, and compare
)

// step is one step of a life. What cannot be done, such as killing a server that is dead, is
// passed over, so that a life stays one when steps are taken out of it.
type step struct {
	verb     verb
	id       int // of a watch
	typ      typ
	name     string
	explicit bool // the wildcard is asked for as "*"
	changes  content
	wait     time.Duration // after it
}

func (s step) String() string {
	var b strings.Builder
	b.WriteString(string(s.verb))
	switch s.verb {
	case verbWatch:
		fmt.Fprintf(&b, " %s %s as w%d", s.typ, s.name, s.id)
		if s.explicit {
			b.WriteString(", explicit")
		}
	case verbUnwatch:
		fmt.Fprintf(&b, " w%d", s.id)
	case verbSet:
		b.WriteString(" " + string(s.typ))
		for _, name := range slices.Sorted(maps.Keys(s.changes)) {
			fmt.Fprintf(&b, " %s=%q", name, s.changes[name])
		}
	}
	if s.wait > 0 {
		fmt.Fprintf(&b, ", wait %v", s.wait)
	}
	return b.String()
}

// life is what happens to a client.
type life struct {
	setup  setup
	temper temper
	steps  []step
}

func (l life) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v, %v\n", l.setup, l.temper)
	for _, s := range l.steps {
		fmt.Fprintf(&b, "\t%v\n", s)
	}
	return b.String()
}

// names of resources; nobody ever makes the last one.
var names = []string{"a", "b", "c", "d", "never"}

// A life has three checks, each after so many steps.
const checkEvery = 12

// newLife is the life of a seed.
func newLife(s setup, seed uint64) life {
	r := rand.New(rand.NewPCG(seed, 17))
	l := life{setup: s, temper: temper{
		linger:  pick[time.Duration](r, 0, -1),
		timeout: pick[time.Duration](r, 0, time.Second, 2*time.Second),
	}}
	g := &generator{Rand: r, setup: s}
	for _, k := range g.types() {
		l.steps = append(l.steps, step{verb: verbSet, typ: k, changes: g.changes(3)})
	}
	l.steps = append(l.steps, step{verb: verbBegin})
	for i := range 3 * checkEvery {
		l.steps = append(l.steps, g.step())
		if i%checkEvery == checkEvery-1 {
			l.steps = append(l.steps, step{verb: verbCheck})
		}
	}
	return l
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

type generator struct {
	*rand.Rand
	setup   setup
	watches int
	live    []step // watches that have not been ended
	texts   int
	dead    bool // the server
}

func (g *generator) types() []typ {
	if g.setup.single {
		return []typ{clusters}
	}
	return []typ{clusters, endpoints}
}

func (g *generator) typ() typ {
	if g.IntN(4) == 0 {
		return g.types()[len(g.types())-1]
	}
	return clusters
}

// changes are of so many names at most.
func (g *generator) changes(most int) content {
	c := content{}
	for range 1 + g.IntN(most) {
		name := names[g.IntN(len(names)-1)]
		if c[name] = ""; g.IntN(3) > 0 {
			g.texts++
			c[name] = fmt.Sprint("t", g.texts)
		}
	}
	return c
}

func (g *generator) step() step {
	s := g.act()
	s.wait = pick(g.Rand, 0, 0, 0, time.Millisecond, 50*time.Millisecond, 700*time.Millisecond, 3*time.Second, 20*time.Second)
	return s
}

func (g *generator) act() step {
	switch n := g.IntN(100); {
	case g.dead && n < 40:
		g.dead = false
		return step{verb: verbBegin}
	case n < 5:
		g.dead = true
		return step{verb: verbKill}
	case n < 30:
		return step{verb: verbSet, typ: g.typ(), changes: g.changes(2)}
	case n < 55 && len(g.live) > 0:
		i := g.IntN(len(g.live))
		s := step{verb: verbUnwatch, id: g.live[i].id, typ: g.live[i].typ}
		g.live = slices.Delete(g.live, i, i+1)
		return s
	}
	g.watches++
	s := step{verb: verbWatch, id: g.watches, typ: g.typ(), name: "*"}
	if g.IntN(5) > 1 {
		s.name = pick(g.Rand, names...)
	} else {
		s.explicit = g.setup.star && g.IntN(2) == 0
	}
	g.live = append(g.live, s)
	return s
}
