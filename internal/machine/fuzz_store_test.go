package machine

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// simShelf is what the store has of a type of a source, and has had.
type simShelf struct {
	has  map[string]Kept
	ever map[string]map[string]bool // values, by name
}

type shelfKey struct {
	source int
	url    string
}

func (w *world) shelf(source int, url string) *simShelf {
	s := w.shelves[shelfKey{source, url}]
	if s == nil {
		s = &simShelf{has: map[string]Kept{}, ever: map[string]map[string]bool{}}
		w.shelves[shelfKey{source, url}] = s
	}
	return s
}

// fill gives the store what an earlier run of the program left.
func (w *world) fill() {
	for source, order := range w.sources {
		names, collections := plainNames, []string{star}
		if source == 1 {
			names, collections = structuredNames, globURLs
		}
		for _, t := range w.types {
			if !t.Stored {
				continue
			}
			s := w.shelf(source, t.URL)
			for _, name := range names {
				kind := w.roll(6)
				if kind < 2 {
					continue
				}
				w.serial++
				value := fmt.Sprint("old", w.serial)
				if kind == 2 {
					value = fmt.Sprint("bad", w.serial) // the program refuses it by now
				}
				k := Kept{Name: name, Version: "old", Raw: encodeValue(name, value, 0), Server: order[w.roll(len(order))]}
				if w.mortal && w.roll(2) == 1 {
					k.Expires = w.now.Add(time.Duration(w.roll(60)) * time.Second).UnixNano()
				}
				s.put(k)
			}
			for _, name := range collections {
				if w.roll(2) == 1 {
					s.put(Kept{Name: name, Server: order[w.roll(len(order))], Complete: true})
				}
			}
		}
	}
}

func (s *simShelf) put(k Kept) {
	s.has[k.Name] = k
	inner(s.ever, k.Name)[decodeValue(k.Raw)] = true
}

// keep has the store keep what the machine says, which has to be what a server said.
func (w *world) keep(k Keep) {
	s := w.shelf(k.Source, k.TypeURL)
	if k.Covers != nil {
		maps.DeleteFunc(s.has, func(name string, _ Kept) bool { return k.Covers(name) && !slices.Contains(k.Known, name) })
		return
	}
	for _, c := range k.Changes {
		value := decodeValue(c.Raw)
		w.say("  keep %s %s: %s", k.TypeURL[20:], c.Name, value)
		switch _, gave := w.servers[c.Server].stores[k.TypeURL].given[c.Name][value]; {
		case c.Complete:
			s.put(c)
		case c.Raw == nil:
			delete(s.has, c.Name)
		case !w.evil && (!gave || isBad(value)):
			w.fail("LKG-1: %q is kept of %s, which server %d never gave or the program refused", value, c.Name, c.Server)
		default:
			s.put(c)
		}
	}
}

// recall answers what the machine looks for in the store.
func (w *world) recall(i int) {
	if i >= len(w.loads) {
		return
	}
	ld := w.loads[i]
	w.loads = slices.Delete(w.loads, i, i+1)
	var entries []Kept
	s := w.shelf(ld.Source, ld.TypeURL)
	for _, name := range slices.Sorted(maps.Keys(s.has)) {
		k := s.has[name]
		if (ld.All || slices.Contains(ld.Names, name)) && (k.Expires == 0 || k.Expires > w.now.UnixNano()) {
			entries = append(entries, k)
		}
	}
	half := w.roll(len(entries) + 1)
	w.say("store: %d of %d entries for %s %q", half, len(entries), ld.TypeURL[20:], ld.Names)
	w.push(Loaded{Load: ld, Entries: entries[:half]})
	w.push(Loaded{Load: ld, Entries: entries[half:], Last: true})
}

// possibleStale checks a notice of what the store has.
func (w *world) possibleStale(sw *simWatch, k *told, n Notice) (why string) {
	value := n.Value.(string)
	kept := func(source int) bool { return w.shelf(source, n.TypeURL).ever[n.Name][value] }
	switch {
	case !kept(0) && !kept(1): // what the wildcard's has of the other's is held once
		return "LKG-1: a stale value that was never kept"
	case isBad(value):
		return "LKG-3: a stale value that the program refuses"
	case k.kind == NoticeUpdated && !k.stale:
		return "LKG-8: a stale value in place of a server's"
	case k.kind == NoticeDoesNotExist && k.reason != ReasonTimeout && k.reason != ReasonTTL:
		return "LKG-5: a stale value of what a server said is gone"
	}
	return ""
}

// checkKept: at rest the store has what a watch holds, and nothing of what a server said is gone.
func (w *world) checkKept(sw *simWatch, name string, k *told) {
	if !sw.Type.Stored || structured(name) != (sw.Source == 1) {
		return
	}
	if structured(name) && w.starred[sw.Type] {
		return // it was maybe kept as the wildcard's, before it was the other source's
	}
	kept, ok := w.shelf(int(sw.Source), sw.Type.URL).has[name]
	switch value := decodeValue(kept.Raw); {
	case k.kind == NoticeUpdated && !k.stale && k.ambient == nil && (!ok || value != k.value):
		w.fail("%s: LKG-1: %s: %v is held, and %v %q is kept", sw.label(), name, k, ok, value)
	case name != sw.Name && sw.synced && k.kind == 0 && ok:
		w.fail("%s: LKG-5: %s: its state is complete without it, and %q is kept", sw.label(), name, value)
	case k.kind == NoticeDoesNotExist && (k.reason == ReasonRemoved || k.reason == ReasonNotFound || k.reason == ReasonAbsent) && ok && value != "":
		w.fail("%s: LKG-5: %s: %v (%v), and %q is kept", sw.label(), name, k, k.reason, value)
	}
}

// lacked says whether the server of a notice may have said all that there is, without the name of the notice.
func (w *world) lacked(n Notice) bool {
	sub := w.stream(n.Stream.Stream).subscribed[n.TypeURL]
	return sub != nil && sub.newest != "" && (w.full(sub.typ) || sub.wasWild && !structured(n.Name) || slices.ContainsFunc(w.watches, func(sw *simWatch) bool {
		return sw.Type == sub.typ && (covers(sw.Name, n.Name) || sw.Name == star && !structured(n.Name))
	}))
}
