package keeper

import (
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// maxBacklog is how many bytes of changes wait until those of one name are made one, about.
const maxBacklog = 64 << 20

// backlog is what waits to be saved.
type backlog struct {
	kept  []machine.Keep // as the machine gave them; the newest of a name last
	size  int            // of them
	limit int            // the size above which older changes of a name are dropped
	since time.Time      // when the first of them came; zero if there is none
}

func (b *backlog) add(kept []machine.Keep) {
	if b.since.IsZero() {
		b.since = time.Now()
	}
	b.kept = append(b.kept, kept...)
	if b.size += sizeOf(kept); b.size > b.limit {
		b.compact()
	}
}

// compact drops older changes of each name.
func (b *backlog) compact() {
	b.kept = newest(b.kept)
	b.size = sizeOf(b.kept)
	b.limit = max(maxBacklog, 2*b.size)
}

// putBack adds what could not be saved, before what came since.
func (b *backlog) putBack(left []machine.Keep, since time.Time) {
	b.kept, b.since = append(left, b.kept...), since
	b.compact()
}

// removed says which names of a section are gone, by what waits.
func (b *backlog) removed(at key) func(name string) bool {
	gone := map[string]bool{} // whether a name is, by the last that waits
	var settled []func(string) bool
	for _, k := range b.kept {
		if at != (key{k.Source, k.TypeURL}) {
			continue
		}
		if k.Covers != nil {
			settled = append(settled, k.Covers)
			for name := range gone {
				gone[name] = gone[name] || k.Covers(name)
			}
			for _, name := range k.Known {
				gone[name] = false
			}
		}
		for i := range k.Changes {
			gone[k.Changes[i].Name] = k.Changes[i].Raw == nil && !k.Changes[i].Complete
		}
	}
	return func(name string) bool {
		is, said := gone[name]
		return is || !said && slices.ContainsFunc(settled, func(covers func(string) bool) bool { return covers(name) })
	}
}

// sizeOf is how many bytes changes hold, about.
func sizeOf(kept []machine.Keep) (n int) {
	for i := range kept {
		for j := range kept[i].Changes {
			n += 128 + len(kept[i].Changes[j].Raw)
		}
	}
	return n
}

// newest leaves the last change of each name. What settles a collection stays behind what came before it.
// It takes the lists of changes apart.
func newest(kept []machine.Keep) []machine.Keep {
	type changed struct{ names, settled map[string]bool }
	sections := map[key]changed{}
	last := len(kept)
	for _, b := range slices.Backward(kept) {
		at := key{b.Source, b.TypeURL}
		seen, ok := sections[at]
		if !ok {
			seen = changed{map[string]bool{}, map[string]bool{}}
			sections[at] = seen
		}
		if b.Covers != nil {
			if seen.settled[b.Settled] {
				continue
			}
			seen.settled[b.Settled] = true
		} else if b.Changes = newestChanges(b.Changes, seen.names); len(b.Changes) == 0 {
			continue
		}
		last--
		kept[last] = b
	}
	clear(kept[:last])
	return kept[last:]
}

// newestChanges leaves the last change of each name that is not among those of later changes, and adds it to these.
func newestChanges(changes []machine.Kept, later map[string]bool) []machine.Kept {
	last := len(changes)
	for _, c := range slices.Backward(changes) {
		if !later[c.Name] {
			later[c.Name] = true
			last--
			changes[last] = c
		}
	}
	clear(changes[:last])
	return changes[last:]
}
