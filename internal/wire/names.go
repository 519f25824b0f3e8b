package wire

import (
	"iter"
	"math"
	"slices"
	"sort"
	"strings"
)

// Names is a sorted set of names in the form that requests have on the wire, in chunks. What a
// chunk holds is never written to, so that requests that restate all names share it; names that
// come behind all others are written behind it. Changes are collected, and made when the set is
// looked at. The zero value is the empty set. Not safe for concurrent use.
type Names struct {
	chunks  [][]byte // none is empty
	count   int      // of the names in them
	top     string   // no name in them is greater
	pending []NameChange
	kept    int // how many changes were left when pending was last sorted
}

// Sizes of chunks in bytes. Only the last may be smaller than the least.
const (
	leastChunk = 2 << 10
	usualChunk = 8 << 10
	mostChunk  = 16 << 10
)

// NameChange is that a name is to be in a set, or not any more.
type NameChange struct {
	Name   string
	Params *Params // of the name; nil if that does not matter
	Add    bool
	Had    bool // the name was in the set before the changes that were made with this one
}

// Pending says whether changes were not made yet.
func (n *Names) Pending() bool { return len(n.pending) > 0 }

// Adds says whether a change that was not made yet adds a name.
func (n *Names) Adds() bool {
	return slices.ContainsFunc(n.pending, func(c NameChange) bool { return c.Add })
}

// Set has a name be in the set from the next look on, or not.
func (n *Names) Set(name string, p *Params, add bool) {
	if len(n.pending) == cap(n.pending) { // append would grow by a quarter, and this is let go of soon
		n.pending = slices.Grow(n.pending, len(n.pending)+1)
	}
	n.pending = append(n.pending, NameChange{Name: name, Params: p, Add: add})
	if len(n.pending) > 1024+2*max(n.count, n.kept) {
		n.pending = n.sortPending() // bounds what churn may collect
		n.kept = len(n.pending)
	}
}

// Has says whether a name was in the set before the changes that are pending.
func (n *Names) Has(name string) bool {
	i, exact := sort.Find(len(n.chunks), func(i int) int {
		first, _ := CutName(n.chunks[i])
		return strings.Compare(name, string(first))
	})
	if exact || i == 0 {
		return exact
	}
	_, held := find(n.chunks[i-1], name)
	return held
}

// All yields the names in order; they are valid while the loop lasts.
func (n *Names) All() iter.Seq[[]byte] {
	n.Flush()
	return func(yield func([]byte) bool) {
		for _, rest := range n.chunks {
			for len(rest) > 0 {
				var name []byte
				if name, rest = CutName(rest); !yield(name) {
					return
				}
			}
		}
	}
}

// After makes the parts of a message that begins with head and goes on with the names, without the
// changes that are pending.
func (n *Names) After(head []byte) [][]byte {
	return slices.Concat([][]byte{head}, n.chunks)
}

// Flush makes the changes that are pending, and returns them in order: of each name the last.
func (n *Names) Flush() []NameChange {
	all := n.sortPending()
	inner := sort.Search(len(all), func(i int) bool { return all[i].Name > n.top })
	n.insert(all[:inner])
	n.extend(all[inner:])
	return all
}

// insert makes changes among the names that are there.
func (n *Names) insert(changes []NameChange) {
	if len(changes) == 0 {
		return
	}
	old := n.chunks
	if len(old) == 0 {
		old = [][]byte{nil}
	}
	n.chunks = make([][]byte, 0, len(old)+1)
	var b []byte // that is to be a chunk, or several
	for i, chunk := range old {
		mine, last := changes, i+1 == len(old)
		if !last {
			mine = before(changes, old[i+1])
		}
		changes = changes[len(mine):]
		if b = n.merge(b, chunk, mine); last || len(b) >= leastChunk {
			n.put(b)
			b = nil
		}
	}
	if n.count == 0 {
		n.top = ""
	}
}

// extend makes changes behind the names that are there: only the last chunk grows.
func (n *Names) extend(changes []NameChange) {
	for i, c := range changes {
		if !c.Add {
			continue
		}
		size := SizeName(c.Name, c.Params)
		last := len(n.chunks) - 1
		if last < 0 || len(n.chunks[last]) >= leastChunk && len(n.chunks[last])+size > usualChunk {
			n.chunks = append(n.chunks, nil)
			last++
		}
		chunk := n.chunks[last]
		if cap(chunk)-len(chunk) < size {
			room := min(usualChunk, max(2*len(chunk), len(chunk)+sizeAdded(changes[i:], usualChunk)))
			chunk = append(make([]byte, 0, max(room, len(chunk)+size)), chunk...)
		}
		n.chunks[last] = AppendName(chunk, c.Name, c.Params)
		n.count, n.top = n.count+1, c.Name
	}
}

// sortPending returns what is pending in order of name. Of several changes of a name the last
// counts.
func (n *Names) sortPending() []NameChange {
	p := n.pending
	// SOTW-3: sorted, and each once.
	slices.SortStableFunc(p, func(a, b NameChange) int { return strings.Compare(a.Name, b.Name) })
	kept := p[:0]
	for i, c := range p {
		if i+1 == len(p) || p[i+1].Name != c.Name {
			kept = append(kept, c)
		}
	}
	n.pending, n.kept = nil, 0
	return kept
}

// before returns the changes of names that come before those of a chunk.
func before(changes []NameChange, chunk []byte) []NameChange {
	first, _ := CutName(chunk)
	return changes[:sort.Search(len(changes), func(i int) bool { return changes[i].Name >= string(first) })]
}

// find says where in a chunk a name stands, or would.
func find(chunk []byte, name string) (at int, held bool) {
	for rest := chunk; len(rest) > 0; {
		first, tail := CutName(rest)
		if string(first) >= name {
			return len(chunk) - len(rest), string(first) == name
		}
		rest = tail
	}
	return len(chunk), false
}

// merge appends a chunk with changes to b, by copying the stretches between them. Alone, a
// chunk that stays as it was is returned itself.
func (n *Names) merge(b, chunk []byte, changes []NameChange) []byte {
	copied, at, grown := 0, 0, false
	for i, c := range changes {
		skip, held := find(chunk[at:], c.Name)
		changes[i].Had = held
		if at += skip; held == c.Add {
			continue
		}
		if !grown {
			b, grown = slices.Grow(b, len(chunk)+sizeAdded(changes[i:], math.MaxInt)), true
		}
		b = append(b, chunk[copied:at]...)
		copied = at
		if c.Add {
			b = AppendName(b, c.Name, c.Params)
			n.count++
		} else {
			_, rest := CutName(chunk[at:])
			copied = len(chunk) - len(rest)
			n.count--
		}
	}
	if !grown && len(b) == 0 {
		return chunk
	}
	return append(b, chunk[copied:]...)
}

// sizeAdded is the size of the names that are added, or something above most if it is that.
func sizeAdded(changes []NameChange, most int) (size int) {
	for _, c := range changes {
		if size > most {
			break
		}
		if c.Add {
			size += SizeName(c.Name, c.Params)
		}
	}
	return size
}

// put adds a chunk behind the others, or several if it is too large for one.
func (n *Names) put(b []byte) {
	if len(b) > 0 && len(b) <= mostChunk {
		n.chunks = append(n.chunks, b)
		return
	}
	for rest := b; len(b) > 0; b = rest {
		for size := 0; len(rest) > 0 && size < usualChunk; size = len(b) - len(rest) {
			_, rest = CutName(rest)
		}
		if len(rest) < leastChunk {
			rest = nil
		}
		n.chunks = append(n.chunks, slices.Clone(b[:len(b)-len(rest)]))
	}
}
