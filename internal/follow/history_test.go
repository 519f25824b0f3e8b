package follow

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/xdstp"
)

// past is a random history of two servers, a and b, whose resources, lists, redirects and
// alternatives lead to each other, and of watches that begin and end meanwhile. Everything
// that the client does later waits: what was started, and what is to be told.
type past struct {
	*desk
	r      *rand.Rand
	world  map[string]*thing // what the servers have
	held   map[string]*thing // what the client has from them
	down   map[string]bool   // by authority
	whole  bool              // the wildcard's first state is complete
	starts [][]*machine.Watch
	asks   []*ask
	log    []string
}

// thing is what is so of a name.
type thing struct {
	notice machine.Notice
	flaw   string // why a newer one was refused
	text   string
}

// ask is a watch of the program.
type ask struct {
	p       *past
	name    string
	list    bool
	tree    *Tree
	watch   *machine.Watch
	said    map[string]string // by name: the newest but ambient errors
	trouble map[string]string
}

// TestHistories runs random histories. Once all servers have answered, each watch must have told
// what a new watch of the same name tells, and subscribe to the same. A name without a value must
// tell that at any time.
//
// spec: REDIR-2, REDIR-3, ALT-1, COLL-3, COLL-4, COLL-5
func TestHistories(t *testing.T) {
	n := uint64(200)
	if testing.Short() {
		n = 60
	}
	for seed := range n {
		p := newPast(t, seed)
		for range 150 {
			if p.move(); t.Failed() {
				t.Fatalf("seed %d:\n%s", seed, strings.Join(p.log[max(0, len(p.log)-80):], "\n"))
			}
		}
		p.over()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func newPast(t testing.TB, seed uint64) *past {
	p := &past{desk: newDesk(t), r: rand.New(rand.NewPCG(seed, 3)), world: map[string]*thing{}, held: map[string]*thing{}, down: map[string]bool{}}
	p.most, p.strict = 1<<20, seed%2 == 0
	if seed%5 == 4 {
		p.most = 2 // who comes first gets it, so that nothing is compared
	}
	for _, name := range p.names() {
		p.world[name] = p.thing(name)
	}
	return p
}

var (
	singles = []string{"a/0", "a/1", "b/0", "b/1", "b/2"}
	stars   = singles[:2] // of the wildcard
	lists   = []string{"a//l", "a//m", "b//n"}
)

func (p *past) names() []string { return slices.Concat(singles, lists) }

func (p *past) note(format string, args ...any) {
	p.log = append(p.log, short.Replace(fmt.Sprintf(format, args...)))
}

func pick[T any](p *past, of ...T) T { return of[p.r.IntN(len(of))] }

// single is a locator of a resource or an entry, sometimes with an alternative.
func (p *past) single() xdstp.Locator {
	l := xdstpOf(pick(p, singles...))
	if p.r.IntN(4) == 0 {
		l = p.entry(xdstpOf(pick(p, lists...)))
	}
	if p.r.IntN(3) == 0 {
		alt := xdstpOf(pick(p, singles...))
		if p.r.IntN(4) == 0 {
			alt = p.entry(xdstpOf(pick(p, lists...)))
		}
		l.Directives = append(l.Directives, directive(alt))
	}
	return l
}

func (p *past) entry(l xdstp.Locator) xdstp.Locator {
	l.Directives = append(l.Directives, xdstp.Directive{Entry: pick(p, "e", "f")})
	return l
}

// all is a locator of a list, sometimes with an alternative.
func (p *past) all() xdstp.Locator {
	l := xdstpOf(pick(p, lists...))
	if p.r.IntN(3) == 0 {
		l.Directives = append(l.Directives, directive(xdstpOf(pick(p, lists...))))
	}
	return l
}

// askAll has the program watch the wildcard.
func (p *past) askAll() *ask {
	a := &ask{p: p, name: "*", list: true, said: map[string]string{}, trouble: map[string]string{}}
	a.watch = &machine.Watch{Name: "*", Wildcard: true}
	a.tree = New(p, Asked{TypeURL: typeURL, Name: "*"}, a.watch, a)
	a.watch.Owner = members{a}
	p.Start(a.watch)
	p.asks = append(p.asks, a)
	return a
}

// members is who hears the notices of a wildcard's watch.
type members struct{ *ask }

func (m members) Tell(n *machine.Notice) bool {
	n.TypeURL = typeURL
	if name, err := xdstp.ParseLocator(n.Name); err == nil {
		n.Authority = name.Name.Authority
	}
	if taken, wantsFlush := m.tree.Take(n); taken {
		return wantsFlush
	}
	return m.Hear(&Told{Notice: *n, Type: typeURL})
}

// ask has the program watch.
func (p *past) ask(l xdstp.Locator, list bool) *ask {
	a := &ask{p: p, name: l.String(), list: list, said: map[string]string{}, trouble: map[string]string{}}
	a.watch = &machine.Watch{Name: l.Name.String()}
	a.tree = New(p, Asked{TypeURL: typeURL, Name: a.name, At: &l, List: list}, a.watch, a)
	a.watch.Owner = taker{a.tree}
	p.Start(a.watch)
	p.asks = append(p.asks, a)
	return a
}

// stop ends a watch of the program.
func (p *past) stop(i int) {
	a := p.asks[i]
	p.note("stop %s", a.name)
	a.tree.End()
	p.Stop(a.watch)
	p.asks = slices.Delete(p.asks, i, i+1)
}

func (p *past) move() {
	switch n := p.r.IntN(40); {
	case n < 12:
		name := pick(p, p.names()...)
		p.change(name, p.thing(name))
	case n < 17 && len(p.starts) > 0:
		p.start()
	case n < 31:
		if len(p.queue) > 0 {
			next := p.queue[0]
			p.queue = p.queue[1:]
			next()
		}
	case n < 33:
		p.turn(pick(p, "a", "b"))
	case n < 36 && len(p.asks) < 6:
		a := p.random()
		p.note("watch %s", a.name)
	case n == 36 && len(p.asks) > 0:
		p.stop(p.r.IntN(len(p.asks)))
	case n == 37:
		p.check(false)
	case n == 38:
		p.settle()
		p.check(true)
	}
}

func (p *past) random() *ask {
	if p.r.IntN(5) == 0 {
		return p.askAll()
	}
	if p.r.IntN(2) == 0 {
		return p.ask(p.all(), true)
	}
	return p.ask(p.single(), false)
}

// settle has all servers answer, with nothing in lists that is bad, which may be kept out.
func (p *past) settle() {
	p.note("-- settle")
	for a, is := range p.down {
		if is {
			p.turn(a)
		}
	}
	for _, name := range p.names() {
		if th := p.world[name]; th.notice.Fault != nil && th.notice.Fault.Kind == machine.FaultTimeout {
			p.change(name, &thing{notice: absent(), text: "absent"})
		}
	}
}

func (p *past) drain() {
	for len(p.starts)+len(p.queue) > 0 {
		for len(p.starts) > 0 {
			p.start()
		}
		p.desk.drain()
	}
}

// check compares each watch with a new one.
func (p *past) check(settled bool) {
	p.drain()
	p.note("-- check, settled %v", settled)
	if p.most == 2 {
		return
	}
	for _, a := range p.asks {
		q := &past{desk: newDesk(p.t), r: p.r, world: p.world, held: maps.Clone(p.held), down: p.down, whole: p.whole}
		q.most, q.strict = p.most, p.strict
		fresh := q.again(a)
		q.drain()
		old, want := a.result(), fresh.result()
		if !settled && (a.list || strings.HasPrefix(a.said[a.name], "updated") || strings.Contains(want[short.Replace(a.name)], " timeout: ")) {
			continue // a value and an alternative stay until something else has answered
		}
		if diff := cmp.Diff(want, old); diff != "" {
			p.t.Errorf("%s, settled %v: a new watch has other things (-new +old):\n%s", short.Replace(a.name), settled, diff)
		}
		if !settled {
			continue
		}
		if diff := cmp.Diff(fresh.subscribed(), a.subscribed()); diff != "" {
			p.t.Errorf("%s: a new watch subscribes to other things (-new +old):\n%s", short.Replace(a.name), diff)
		}
	}
}

// again asks for the same.
func (p *past) again(a *ask) *ask {
	if a.name == "*" {
		return p.askAll()
	}
	return p.ask(locator(p.t, a.name), a.list)
}

// over ends all watches, after which nothing may be left.
func (p *past) over() {
	for len(p.asks) > 0 {
		p.stop(0)
	}
	p.starts = nil
	p.drain()
	p.watched()
	for pair, n := range p.lent {
		if n != 0 {
			p.t.Errorf("%s: left are %d", pair, n)
		}
	}
}

// result is what holds for the program.
func (a *ask) result() map[string]string {
	r := map[string]string{}
	for name, said := range a.said {
		if a.list && name != a.name && strings.HasPrefix(said, "does-not-exist") {
			continue // whether it is listed is not told
		}
		said = strings.Replace(said, " not-found", " removed", 1) // an absence is told once
		if strings.HasPrefix(said, "synced") {
			said, _, _ = strings.Cut(said, " via ") // it is told once, wherever the list is later
		}
		r[short.Replace(name)] = said + " | " + a.trouble[name]
	}
	return r
}

func (a *ask) subscribed() (names []string) {
	a.tree.mu.Lock()
	defer a.tree.mu.Unlock()
	for w := range a.tree.live {
		names = append(names, short.Replace(w.Name))
	}
	slices.Sort(names)
	return names
}

// Alive, Hear and Flush implement Sink.
func (a *ask) Alive() bool { return a.p.live[a.watch] }
func (a *ask) Flush(bool)  {}
func (a *ask) Hear(t *Told) bool {
	text := line(t)
	a.p.note("    %s: %s", a.name, text)
	whole := a.list && t.Name == a.name
	holds := strings.HasPrefix(a.said[t.Name], "updated") || whole && a.said[t.Name] != ""
	switch {
	case t.Kind != machine.NoticeAmbient:
		a.said[t.Name] = text
		delete(a.trouble, t.Name)
	case t.Fault != nil:
		if !holds {
			a.p.t.Errorf("%s: an ambient error without a value: %s", short.Replace(a.name), text)
		}
		a.trouble[t.Name] = text
	default:
		if a.trouble[t.Name] == "" {
			a.p.t.Errorf("%s: the end of a trouble that was not told: %s", short.Replace(a.name), text)
		}
		delete(a.trouble, t.Name)
	}
	a.p.inspect(t)
	return true
}
