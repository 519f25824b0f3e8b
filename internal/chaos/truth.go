package chaos

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
	stayed bool         // it is there, and was since all watches were last right
	revs   map[int]bool // all that were ever said
}

// edit makes a new state by an edit of each resource.
func (h *truth) edit(each func(f *fact)) {
	h.model.mu.Lock()
	defer h.model.mu.Unlock()
	h.revision += len(h.model.truths)
	for _, f := range h.order {
		each(f)
	}
}

// change touches each resource with a probability; it then comes, changes or goes.
func (h *truth) change(rng *rand.Rand, touch float64) {
	h.edit(func(f *fact) {
		if rng.Float64() < touch {
			h.touch(rng, f)
		}
	})
}

// touch changes a resource. State-of-the-world servers cannot say of other types than listeners and
// clusters that a resource went, so there those stay (xDS protocol, "Deleting Resources").
func (h *truth) touch(rng *rand.Rand, f *fact) {
	mayGo := h.model.delta || h.model.kinds[f.Kind].typ.FullState()
	if f.Present && mayGo && rng.IntN(3) == 0 {
		f.Present, f.stayed, f.Bad = false, false, false
		return
	}
	f.Present, f.Size = true, 0
	if rng.IntN(20) == 0 {
		f.Size = h.model.large
	}
	f.say(h.revision)
}

// refresh changes every resource that is there and leaves the others absent.
func (h *truth) refresh() {
	h.edit(func(f *fact) {
		if f.Present {
			f.say(h.revision)
		}
	})
}

// slim takes the padding off; the next refresh tells.
func (h *truth) slim() { h.edit(func(f *fact) { f.Size = 0 }) }

// spoil makes a cluster that is there bad, or good again.
func (h *truth) spoil(rng *rand.Rand, bad bool) {
	h.edit(func(f *fact) {
		if h.model.kinds[f.Kind].label == "cds" && f.Present && f.Bad != bad && (!bad || rng.IntN(2) != 0) {
			f.Bad = bad
			f.say(h.revision)
		}
	})
}

func (f *fact) say(rev int) {
	f.Rev = rev
	f.revs[rev] = true
}

// items is what the server is to serve.
func (h *truth) items() []item {
	h.model.mu.Lock()
	defer h.model.mu.Unlock()
	items := make([]item, len(h.order))
	for i, f := range h.order {
		items[i] = f.item
	}
	return items
}
