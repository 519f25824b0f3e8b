package main

import "math/rand/v2"

// truth is what one server says. Its revisions are no other server's, so that a value tells
// who said it. Guarded by the model's mutex.
type truth struct {
	model    *model
	uri      string // that events name; "" if there is but one server
	revision int    // of the last state
	facts    map[key]*fact
	order    []*fact // so that choices follow from the seed
}

// newTruth makes that of the nth server.
func newTruth(m *model, n int) *truth {
	h := &truth{model: m, revision: n, facts: map[key]*fact{}}
	for k, kind := range m.kinds {
		for i := range names {
			for _, name := range []string{kind.name(i), kind.member(i)} {
				f := &fact{item: item{Kind: k, Name: name}, revs: map[int]bool{}}
				h.order, h.facts[key{k, name}] = append(h.order, f), f
			}
		}
	}
	return h
}

// fact is what the server says of a resource.
type fact struct {
	item
	present bool
	stayed  bool         // it is there, and was since all watches were last right
	revs    map[int]bool // all that were ever said
}

// change makes a new state: each resource is touched with a probability, and then comes,
// changes or goes. State-of-the-world servers cannot say of other types than listeners and
// clusters that a resource went, so there those stay (xDS protocol, "Deleting Resources").
func (h *truth) change(rng *rand.Rand, touch float64) {
	h.model.mu.Lock()
	defer h.model.mu.Unlock()
	h.revision += len(h.model.truths)
	for _, f := range h.order {
		if rng.Float64() < touch {
			h.touchLocked(rng, f)
		}
	}
}

// refresh changes every resource that is there and leaves the others absent.
func (h *truth) refresh() {
	h.model.mu.Lock()
	defer h.model.mu.Unlock()
	h.revision += len(h.model.truths)
	for _, f := range h.facts {
		if f.present {
			f.say(h.revision)
		}
	}
}

// slim takes the padding off; the next refresh tells.
func (h *truth) slim() {
	h.model.mu.Lock()
	defer h.model.mu.Unlock()
	for _, f := range h.facts {
		f.Size = 0
	}
}

func (h *truth) touchLocked(rng *rand.Rand, f *fact) {
	mayGo := h.model.delta || h.model.kinds[f.Kind].typ.FullState()
	if f.present && mayGo && rng.IntN(3) == 0 {
		f.present, f.stayed, f.Bad = false, false, false
		return
	}
	f.present, f.Size = true, 0
	if rng.IntN(20) == 0 {
		f.Size = h.model.large
	}
	f.say(h.revision)
}

func (f *fact) say(rev int) {
	f.Rev = rev
	f.revs[rev] = true
}

// state is what the server is to serve.
func (h *truth) state() *state {
	h.model.mu.Lock()
	defer h.model.mu.Unlock()
	s := &state{}
	for _, f := range h.order {
		if f.present {
			s.Items = append(s.Items, f.item)
		}
	}
	return s
}

// spoil makes a cluster that is there bad, or good again.
func (h *truth) spoil(rng *rand.Rand, bad bool) {
	h.model.mu.Lock()
	defer h.model.mu.Unlock()
	h.revision += len(h.model.truths)
	for _, f := range h.order {
		if h.model.kinds[f.Kind].label != "cds" || !f.present || f.Bad == bad || bad && rng.IntN(2) == 0 {
			continue
		}
		f.Bad = bad
		f.say(h.revision)
	}
}
