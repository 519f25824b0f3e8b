package client_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// maze is redirects at random between a few names, and what should be heard of each.
type maze struct {
	*world
	random *rand.Rand
	names  []string
	keeper map[string]*keeper
	to     map[string]string // of names that are redirected
	held   map[string]string // version of values
	list   map[string]bool
	down   map[*keeper]bool
	steps  int

	mu     sync.Mutex        // of what handlers of three authorities write
	told   map[string]string // by watches of one name
	listed map[string]string // by the watch of the list
}

// Whatever happens, what was heard last of a name is what there is, seen through all
// redirects; and nothing is left when nobody watches.
// spec: REDIR-2 REDIR-3 COLL-3
func TestRedirectsAtRandom(t *testing.T) {
	if testing.Short() {
		t.Skip("long: random redirects")
	}
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { newMaze(w, seed).run(t) })
		})
	}
}

func newMaze(w *world, seed uint64) *maze {
	m := &maze{
		world: w, random: rand.New(rand.NewPCG(seed, seed)), keeper: map[string]*keeper{}, to: map[string]string{},
		held: map[string]string{}, told: map[string]string{}, listed: map[string]string{}, list: map[string]bool{}, down: map[*keeper]bool{},
	}
	for authority, k := range map[string]*keeper{"a": w.a, "b": w.b, "c": w.c2} {
		for i := range 3 {
			m.keeper[at(authority, fmt.Sprint(i))] = k
		}
	}
	for _, authority := range []string{"a", "b", "c"} {
		for i := range 3 {
			m.names = append(m.names, at(authority, fmt.Sprint(i)))
		}
	}
	return m
}

func (m *maze) run(t *testing.T) {
	var stops []func()
	for _, name := range m.names {
		w, err := m.c.Watch(t.Context(), cds.Type, name, func(ev client.Event[any]) { m.note(m.told, ev) })
		must(t, err)
		stops = append(stops, w.Stop)
	}
	w, err := m.c.WatchAll(t.Context(), cds.Type, dir("a", "list"), func(b client.Batch[any]) {
		for _, ev := range b.Events {
			m.note(m.listed, ev)
		}
	})
	must(t, err)
	stops = append(stops, w.Stop)
	for m.steps = range 200 {
		for range 1 + m.random.IntN(3) {
			m.step()
		}
		m.check(t)
		if t.Failed() {
			return
		}
	}
	for _, stop := range stops {
		stop()
	}
	m.unwanted()
}

// note keeps what there is of a name.
func (m *maze) note(told map[string]string, ev client.Event[any]) {
	state := ev.Kind.String()
	switch ev.Kind {
	case client.EventAmbientError, client.EventRecovered, client.EventSynced:
		return
	case client.EventUpdated:
		state += " " + ev.Version
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	told[ev.Name] = state + " via " + ev.Locator
}

func (m *maze) any() string { return m.names[m.random.IntN(len(m.names))] }

// step changes something.
func (m *maze) step() {
	name := m.any()
	k := m.keeper[name]
	switch m.random.IntN(10) {
	case 0, 1:
		delete(m.to, name)
		delete(m.held, name)
		k.remove(name)
	case 2, 3, 4:
		delete(m.to, name)
		m.held[name] = fmt.Sprint("v", m.steps)
		k.put(name, cluster("c", m.held[name]), m.held[name])
	case 5, 6, 7:
		delete(m.held, name)
		m.to[name] = m.any()
		k.put(name, redirect(m.to[name]), fmt.Sprint("r", m.steps))
	case 8:
		m.relist()
	case 9:
		if m.down[k] = !m.down[k]; m.down[k] {
			k.down()
		} else {
			k.srv.SetRefuse(false)
		}
	}
}

// relist lists other names.
func (m *maze) relist() {
	m.list = map[string]bool{}
	var entries []*xdscorev3.CollectionEntry
	for _, name := range m.names {
		if m.random.IntN(2) == 0 {
			m.list[name] = true
			entries = append(entries, member(name))
		}
	}
	m.a.put(dir("a", "list"), listing(entries...), "")
}

// check compares what was heard, with all servers well.
func (m *maze) check(t *testing.T) {
	for k := range m.down {
		k.srv.SetRefuse(false)
		delete(m.down, k)
	}
	m.c.ResetBackoff()
	time.Sleep(time.Minute)
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range m.names {
		want := m.expected(name)
		if got := m.told[name]; got != want {
			t.Errorf("step %d: of %s was heard %q, want %q", m.steps, shortNames.Replace(name), got, want)
		}
		got := m.listed[name]
		switch {
		case m.list[name] && got != want:
			t.Errorf("step %d: of the member %s was heard %q, want %q", m.steps, shortNames.Replace(name), got, want)
		case !m.list[name] && got != "" && got[0] != 'd': // does not exist
			t.Errorf("step %d: of %s, which is not listed, was heard %q", m.steps, shortNames.Replace(name), got)
		}
	}
}

// expected sees through the redirects.
func (m *maze) expected(name string) string {
	seen := map[string]bool{}
	via := ""
	for ; ; name = m.to[name] {
		if len(seen) > 0 {
			via = name
		}
		switch version, ok := m.held[name]; {
		case seen[name]:
			return "failed via " + via
		case ok:
			return "updated " + version + " via " + via
		case m.to[name] == "":
			return "does not exist via " + via
		}
		seen[name] = true
	}
}
