package machine

import (
	"slices"
	"sort"
	"strings"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// names is a sorted set of names together with its wire form. Changes are collected and
// merged when the set is looked at, by copying the stretches between them; a wire form
// that was handed out is never written to again.
type names struct {
	sorted  []string
	encoded []byte // wire form of sorted: a part of the last message that held it; nil if not known
	pending []change
}

// encodeTo is appendTo from scratch.
func (n *names) encodeTo(msg []byte) []byte {
	sorted := n.list()
	msg = slices.Grow(msg, sizeNames(sorted))
	start := len(msg)
	for _, name := range sorted {
		msg = wire.AppendName(msg, name)
	}
	n.encoded = msg[start:len(msg):len(msg)]
	return msg
}

type change struct {
	name string
	add  bool
}

func (n *names) set(name string, add bool) {
	n.pending = append(n.pending, change{name, add})
	if len(n.pending) > 1024+2*len(n.sorted) {
		n.list() // bounds what churn may collect
	}
}

// list returns the names in order; the slice is valid until the next change.
func (n *names) list() []string {
	if len(n.pending) > 0 {
		n.merge(n.take())
		n.encoded = nil
	}
	return n.sorted
}

// appendTo appends the wire form of all names to a message.
func (n *names) appendTo(msg []byte) []byte {
	if n.encoded == nil {
		return n.encodeTo(msg)
	}
	changes := n.take()
	grown := 0
	for _, c := range changes {
		grown += wire.SizeName(c.name)
	}
	msg = slices.Grow(msg, len(n.encoded)+grown)
	start, from, rest := len(msg), 0, n.encoded
	for _, c := range changes {
		at := from + sort.SearchStrings(n.sorted[from:], c.name)
		size := sizeNames(n.sorted[from:at])
		msg = append(msg, rest[:size]...)
		rest, from = rest[size:], at
		if c.add {
			msg = wire.AppendName(msg, c.name)
		} else {
			rest, from = rest[wire.SizeName(c.name):], at+1
		}
	}
	msg = append(msg, rest...)
	n.merge(changes)
	n.encoded = msg[start:len(msg):len(msg)]
	return msg
}

// take returns what is pending and would change something, in order of name.
func (n *names) take() []change {
	p := n.pending
	slices.SortStableFunc(p, func(a, b change) int { return strings.Compare(a.name, b.name) })
	kept := p[:0]
	for i, c := range p {
		if i+1 < len(p) && p[i+1].name == c.name {
			continue // the last word counts
		}
		if _, held := slices.BinarySearch(n.sorted, c.name); held != c.add {
			kept = append(kept, c)
		}
	}
	n.pending = p[:0]
	return kept
}

// fewChanges is up to how many changes are made in place.
const fewChanges = 4

func (n *names) merge(changes []change) {
	if len(changes) <= fewChanges {
		for _, c := range changes {
			at := sort.SearchStrings(n.sorted, c.name)
			if c.add {
				n.sorted = slices.Insert(n.sorted, at, c.name)
			} else {
				n.sorted = slices.Delete(n.sorted, at, at+1)
			}
		}
		return
	}
	merged := make([]string, 0, len(n.sorted)+len(changes))
	rest := n.sorted
	for _, c := range changes {
		at := sort.SearchStrings(rest, c.name)
		merged = append(merged, rest[:at]...)
		rest = rest[at:]
		if c.add {
			merged = append(merged, c.name)
		} else {
			rest = rest[1:]
		}
	}
	n.sorted = append(merged, rest...)
}

func sizeNames(names []string) int {
	size := 0
	for _, name := range names {
		size += wire.SizeName(name)
	}
	return size
}
