package engine

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// page is how many resources the loop looks at at a time for a dump: that takes it about a
// millisecond.
const page = 1024

// Resources yields what is wanted and held of some types, or without any of all, sorted by type, name and
// scope; nothing after Close. Up to
// a page of them are as they were at one moment. More are looked at page by page, while the loop goes
// on between: each is as it was when it was yielded or a little before.
func (e *Engine) Resources(typeURLs ...string) iter.Seq[machine.Resource] {
	return func(yield func(machine.Resource) bool) {
		keys, rs := e.list(typeURLs)
		slices.SortFunc(rs, compare)
		if !each(rs, yield) {
			return
		}
		slices.SortFunc(keys, machine.Key.Compare)
		keys = slices.CompactFunc(keys, func(a, b machine.Key) bool { return a.Compare(b) == 0 })
		rs = slices.Grow(rs[:0], min(page, len(keys))) // the loop has better things to do
		for some := range slices.Chunk(keys, page) {
			clear(rs) // of what is not held any more
			rs = rs[:0]
			e.ask(func() { rs = e.machine.Look(rs, some) })
			if !each(rs, yield) {
				return
			}
		}
	}
}

// list lists all resources: what is known of them if they are few, else their keys.
func (e *Engine) list(typeURLs []string) (keys []machine.Key, rs []machine.Resource) {
	at := machine.Listing{Types: typeURLs}
	for done := false; !done; {
		done = true // after Close
		// All of a type at once, and not while the loop waits.
		keys = slices.Grow(keys, max(page+1, at.Left()))
		e.ask(func() {
			keys, done = e.machine.List(&at, keys, page)
			if done && len(keys) <= page {
				rs, keys = e.machine.Look(rs, keys), nil
			}
		})
	}
	return keys, rs
}

func each(rs []machine.Resource, yield func(machine.Resource) bool) bool {
	for _, r := range rs {
		if !yield(r) {
			return false
		}
	}
	return true
}

func compare(a, b machine.Resource) int {
	return cmp.Or(strings.Compare(a.TypeURL, b.TypeURL), strings.Compare(a.Name, b.Name), cmp.Compare(a.Scope, b.Scope))
}
