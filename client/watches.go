package client

import (
	"iter"
	"slices"
	"sync"
)

// WatchKind says what a [WatchState] is of.
type WatchKind string

// The kinds.
const (
	WatchOne        WatchKind = "resource"   // of [Client.Watch]
	WatchCollection WatchKind = "collection" // of [Client.WatchAll]
	WatchSet        WatchKind = "set"        // of [Client.NewSet]
	WatchGet        WatchKind = "get"        // a name that [Client.Get] keeps
)

// watchKind is a WatchKind in one byte.
type watchKind uint8

const (
	isOne watchKind = iota
	isCollection
	isSet
	isGet
)

var watchKinds = [...]WatchKind{WatchOne, WatchCollection, WatchSet, WatchGet}

// WatchState is what the client knows of one watch or set.
type WatchState struct {
	Kind  WatchKind
	Type  string // URL
	Name  string // canonical, of the resource or the collection; "" of a set
	Scope string // of [InScope]
	// Names is how many names a set has; 1 of others.
	Names int
	// Unanswered are those of them without a first answer, and Valueless those without a value; of a
	// collection, without its first state. [Client.Ready] and [Client.ReadyWithValues] wait for them. 0 of WatchGet.
	Unanswered, Valueless int
}

// Watches yields the watches and sets that have not ended, in no order. A watch that begins or ends
// meanwhile is yielded or not. It does not ask the client's loop. After Close it yields nothing.
func (c *Client) Watches() iter.Seq[WatchState] {
	return func(yield func(WatchState) bool) {
		for _, w := range c.books.living() {
			if !yield(w.watchState()) {
				return
			}
		}
	}
}

func (w *core) watchState() WatchState {
	s := WatchState{Kind: watchKinds[w.is], Scope: w.view.scope}
	for x := range w.subscriptions {
		s.Names++
		if state := x.answer.state.Load(); w.is != isGet {
			s.Unanswered += count(state, false)
			s.Valueless += count(state, true)
		}
	}
	if set := w.set(); set != nil {
		s.Type = set.kind.TypeURL()
		return s
	}
	s.Type, s.Name = w.asked()
	return s
}

// books are the watches and sets that have not ended. Safe for concurrent use.
type books struct {
	mu  sync.Mutex
	all []*core // in no order; a list, since there may be a million
}

func (b *books) enter(w *core) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, w)
	w.place = int32(len(b.all))
}

// remove takes a watch off the books, if it is there.
func (b *books) remove(w *core) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.place == 0 {
		return
	}
	n := len(b.all) - 1
	last := b.all[n]
	b.all[w.place-1], last.place = last, w.place
	b.all[n], w.place = nil, 0
	if b.all = b.all[:n]; n < cap(b.all)/4 {
		b.all = slices.Clone(b.all)
	}
}

// living lists the watches on the books.
func (b *books) living() []*core {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.all)
}
