package chaos

import (
	"fmt"
	"log"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/xdswatch/xdswatch/xdstp"
)

// model knows what the servers say, and judges by it what the client tells. One goroutine uses it, that of its
// test: what handlers are told waits for that one.
type model struct {
	variant
	t        testing.TB
	rng      *rand.Rand
	log      *log.Logger
	truths   []*truth     // of the servers in order of priority
	said     []*fact      // by revision: whose it is
	recalled bool         // a store has all that the first server had said, for when none can be reached
	calls    [sources]int // of handlers so far, by source: each has one at a time
	faults   []string

	mu    sync.Mutex
	heard []func() // judges what the program was told since; guarded by mu
}

// later has something that the program was told judged, in its turn. Safe for concurrent use.
func (m *model) later(judge func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard = append(m.heard, judge)
}

// listen judges what the program was told so far, and says how much that was.
func (m *model) listen() int {
	m.mu.Lock()
	heard := m.heard
	m.heard = nil
	m.mu.Unlock()
	for _, judge := range heard {
		judge()
	}
	return len(heard)
}

// source is the servers that may say a name, in order of priority. Of names of the authority they are all servers
// but the first, if there are others.
type source int

const (
	ofPlain source = iota
	ofAuthority
	sources
)

func sourceOf(name string) source {
	if xdstp.IsXDSTP(name) {
		return ofAuthority
	}
	return ofPlain
}

// first is the first server of a source.
func (m *model) first(from source) int { return min(int(from), m.spares) }

// active is the server of a source whose word counts: the first that can be reached; nil if none can.
func (m *model) active(from source) *truth {
	for _, h := range m.truths[m.first(from):] {
		if h.reached {
			return h
		}
	}
	return nil
}

// passed says whether a server is one of a source, and another after it is the active one.
func (m *model) passed(h *truth, from source) bool {
	active := m.active(from)
	return active != nil && m.first(from) <= h.index && h.index < active.index
}

// largeResource is more than grpc writes at once.
const largeResource = 40_000

// names is how many resources each type may have, of each form of name.
const names = 10

// truth is what one server says.
type truth struct {
	index   int    // in order of priority
	uri     string // that events name
	facts   map[string]*fact
	reached bool // it could be when the world last rested
}

// fact is what a server says of a resource. Each state that it says has a revision of its own, so
// that a value tells who said it, and when. The server's process has no use for what is not exported.
type fact struct {
	Kind    int // index into kinds
	Name    string
	Present bool
	Rev     int
	Size    int  // of the padding, in bytes
	Bad     bool // a cluster that validation refuses

	by     *truth
	number int  // in its name
	stayed bool // it is there, and was since all watches were last right
}

// newModel makes a model of a world's servers, for the length of a test.
func newModel(t testing.TB, seed uint64, v variant) *model {
	m := &model{variant: v, t: t, rng: rand.New(rand.NewPCG(seed, 0)), log: newJournal(t)}
	for i := range 1 + v.spares {
		h := &truth{index: i, facts: map[string]*fact{}, reached: true}
		for k, kind := range kinds {
			for n := range names {
				for _, name := range []string{kind.name(n), kind.member(n)} {
					h.facts[name] = &fact{Kind: k, Name: name, by: h, number: n}
				}
			}
		}
		m.truths = append(m.truths, h)
	}
	return m
}

// edit is what becomes of a fact. If it says true, that is a new state.
type edit func(*fact) bool

// edit gives a server new states of its resources.
func (m *model) edit(h *truth, each edit) {
	m.listen()
	for _, name := range slices.Sorted(maps.Keys(h.facts)) { // so that choices follow from the seed
		if f := h.facts[name]; each(f) {
			f.Rev = len(m.said)
			m.said = append(m.said, f)
		}
	}
}

// changed touches each resource with a probability: it then comes, changes or goes. Servers in
// state of the world cannot say of other types than listeners and clusters that a resource went,
// so there those stay (xDS protocol, "Deleting Resources"). The first of each type is always there.
func (m *model) changed(touch float64) edit {
	return func(f *fact) bool {
		first := f.number == 0
		if m.rng.Float64() >= touch && (f.Present || !first) {
			return false
		}
		f.Size = 0
		if f.Present && !first && (m.delta || kinds[f.Kind].typ.FullState()) && m.rng.IntN(3) == 0 {
			f.Present, f.stayed = false, false
			return false
		}
		f.Present = true
		if m.rng.IntN(20) == 0 && m.via != viaMemory { // where nothing is written at once
			f.Size = largeResource
		}
		return true
	}
}

// refreshed changes every resource that is there, which then has no padding, and leaves the others absent.
func refreshed(f *fact) bool {
	f.Size = 0
	return f.Present
}

// spoiled makes the clusters bad whose number is even, or all good again, as they were. What they were stays the
// last good state of them.
func spoiled(on bool) edit {
	return func(f *fact) bool {
		f.Bad = on && kinds[f.Kind].label == "cds" && f.number%2 == 0
		return false
	}
}

// truthOf finds the server that an event names.
func (m *model) truthOf(uri string) *truth {
	for _, h := range m.truths {
		if h.uri == uri {
			return h
		}
	}
	return nil
}

// lies says whether a server, named by its URI, cannot have said this of a resource: a value that it never
// gave it, or that it does not exist while the server has it, and had it since all watches were last right.
func (m *model) lies(uri, name string, what holding) bool {
	h := m.truthOf(uri)
	if h == nil {
		return true
	}
	f := h.facts[name]
	if what.has() {
		return what.rev < 0 || what.rev >= len(m.said) || m.said[what.rev] != f
	}
	return f != nil && f.stayed
}

// settle notes that everything is right, by the word of the active servers.
func (m *model) settle() {
	for _, h := range m.truths {
		for _, f := range h.facts {
			if m.active(sourceOf(f.Name)) == h {
				f.stayed = f.Present
			}
		}
	}
}

// fault notes that something is wrong.
func (m *model) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	m.log.Printf("FAULT: %s", text)
	m.faults = append(m.faults, text)
}
