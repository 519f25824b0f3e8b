package main

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
)

// model knows what the server says, and judges what watches are told. Safe for concurrent
// use.
type model struct {
	kinds []kind
	delta bool
	// strict says that the server keeps to the protocol to the letter; otherwise the
	// program leaves out what go-control-plane does not do.
	strict bool
	large  int // bytes of padding of some resources
	log    *journal

	mu       sync.Mutex
	revision int // of the last state
	moment   int // counts states that the server confirmed
	settled  int // the moment at which every watch was last found to be right
	facts    map[key]*fact
	subs     map[*sub]struct{}
	faults   []string
	changed  chan struct{} // closed at the next event
}

// key names a resource.
type key struct {
	kind int
	name string
}

// fact is what the server says of a resource.
type fact struct {
	present bool
	since   int // the moment from which it was there; meaningful while present
	rev     int
	revs    map[int]bool // all that were ever said
	size    int
	bad     bool
}

// largeResource is more than grpc writes at once.
const largeResource = 40_000

// names is how many resources each type may have.
const names = 10

func newModel(delta bool, log *journal) *model {
	m := &model{
		kinds: kinds(), delta: delta, log: log, large: largeResource,
		facts: map[key]*fact{}, subs: map[*sub]struct{}{}, changed: make(chan struct{}),
	}
	for k := range m.kinds {
		for n := range names {
			m.facts[key{k, fmt.Sprintf("%s-%d", m.kinds[k].label, n)}] = &fact{revs: map[int]bool{}}
		}
	}
	return m
}

// keys are sorted, so that choices follow from the seed.
func (m *model) keys() []key {
	return slices.SortedFunc(maps.Keys(m.facts), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}

// change makes a new state: each resource is touched with a probability, and then comes,
// changes or goes. State-of-the-world servers cannot say of other types than listeners and
// clusters that a resource went, so there those stay (xDS protocol, "Deleting Resources").
// The state is to be confirmed once the server has it.
func (m *model) change(rng *rand.Rand, touch float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revision++
	for _, k := range m.keys() {
		if rng.Float64() < touch {
			m.touchLocked(rng, k, m.facts[k])
		}
	}
}

// refresh changes every resource that is there and leaves the others absent.
func (m *model) refresh() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revision++
	for _, f := range m.facts {
		if f.present {
			f.say(m.revision)
		}
	}
}

func (m *model) touchLocked(rng *rand.Rand, k key, f *fact) {
	mayGo := m.delta || m.kinds[k.kind].typ.FullState()
	if f.present && mayGo && rng.IntN(3) == 0 {
		f.present, f.bad = false, false
		return
	}
	if !f.present {
		f.present, f.since = true, unconfirmed
	}
	f.size = 0
	if rng.IntN(20) == 0 {
		f.size = m.large
	}
	f.say(m.revision)
}

// unconfirmed is the moment of what the server may not know yet.
const unconfirmed = int(^uint(0) >> 1)

func (f *fact) say(rev int) {
	f.rev = rev
	f.revs[rev] = true
}

// confirm notes that the server serves the last state.
func (m *model) confirm() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moment++
	for _, f := range m.facts {
		if f.present && f.since == unconfirmed {
			f.since = m.moment
		}
	}
}

// state is what the server is to serve.
func (m *model) state() *state {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &state{Version: fmt.Sprint(m.revision)}
	for _, k := range m.keys() {
		if f := m.facts[k]; f.present {
			s.Items = append(s.Items, item{Kind: k.kind, Name: k.name, Rev: f.rev, Size: f.size, Bad: f.bad})
		}
	}
	return s
}

// spoil makes a cluster that is there bad, or good again.
func (m *model) spoil(rng *rand.Rand, bad bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revision++
	for _, k := range m.keys() {
		f := m.facts[k]
		if m.kinds[k.kind].label != "cds" || !f.present || f.bad == bad || bad && rng.IntN(2) == 0 {
			continue
		}
		f.bad = bad
		f.say(m.revision)
	}
}

// alwaysThere says that a resource is there and was, without a break, since all watches
// were last right. Whoever is told now that it does not exist is told a lie.
func (m *model) alwaysThereLocked(k key) bool {
	f := m.facts[k]
	return f != nil && f.present && f.since <= m.settled
}

// faultLocked notes that something is wrong.
func (m *model) faultLocked(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	m.log.add("FAULT: %s", text)
	m.faults = append(m.faults, text)
}

// complain notes what a server found wrong.
func (m *model) complain(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faultLocked("the server complains: %s", text)
}

// check gives what was wrong so far, what still differs between watches and server, and a
// channel that is closed when a watch was told more.
func (m *model) check(calm bool) (faults, differences []string, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range m.subs {
		differences = append(differences, s.differencesLocked(calm)...)
	}
	slices.Sort(differences)
	return m.faults, differences, m.changed
}

// settle notes that everything is right.
func (m *model) settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settled = m.moment
}

func (m *model) wakeLocked() {
	close(m.changed)
	m.changed = make(chan struct{})
}
