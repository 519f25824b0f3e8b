package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/testutil/script"
)

// shelf is where the store has a resource or a collection.
type shelf struct {
	source    int
	url, name string
}

// valueOf is what a payload says; "" if there is none, or the program refuses it.
func (w *world) valueOf(url string, raw []byte) string {
	value, _ := decodeItem(w.kinds[script.Short(url)], Item{Raw: raw}).Value.(string)
	return value
}

// fill gives the store what an earlier run of the program left: what servers gave, and do not have any more.
func (w *world) fill() {
	for _, t := range w.types {
		for _, name := range append(slices.Clone(w.all), star) {
			if !t.Stored || w.one(3) {
				continue
			}
			word, order := name, w.sources[sourceOf(name)].Servers
			if !strings.HasSuffix(name, star) {
				w.serial++
				word = fmt.Sprintf("<%s>@old=%s%d", name, []string{"old", "old", "old", "bad:"}[w.roll(4)], w.serial) // the program refuses some by now
				if w.mortal && w.one(2) {
					word += fmt.Sprintf("^%ds", w.roll(60))
				}
			}
			k := stored(w, w.now, script.Short(t.URL), []string{word})[0]
			k.Server = order[w.roll(len(order))]
			w.store[shelf{sourceOf(name), t.URL, name}] = k
			w.servers[k.Server].put(t, simResource{name: name, value: w.valueOf(t.URL, k.Raw)})
			w.servers[k.Server].put(t, simResource{name: name})
		}
	}
}

// keep has the store keep what the machine says, which has to be what a server said.
func (w *world) keep(k Keep) {
	maps.DeleteFunc(w.store, func(at shelf, _ Kept) bool {
		return k.Covers != nil && at.source == k.Source && at.url == k.TypeURL && k.Covers(at.name) && !slices.Contains(k.Known, at.name)
	})
	for _, c := range k.Changes {
		value := w.valueOf(k.TypeURL, c.Raw)
		w.say("  keep %s %s: %s", script.Short(k.TypeURL), c.Name, value)
		if c.Raw == nil && !c.Complete {
			delete(w.store, shelf{k.Source, k.TypeURL, c.Name})
			continue
		}
		given := w.servers[c.Server].stores[k.TypeURL].gave(c.Name, value) > 0
		w.honest(c.Complete || given, "LKG-1: %q is kept of %s, which server %d never gave or the program refused", value, c.Name, c.Server)
		w.store[shelf{k.Source, k.TypeURL, c.Name}] = c
	}
}

// recall answers what the machine looks for in the store, in two parts.
func (w *world) recall(ld *Load) {
	var entries []Kept
	for at, k := range w.store {
		wanted := at.source == ld.Source && at.url == ld.TypeURL && (ld.All || slices.Contains(ld.Names, at.name))
		if wanted && (k.Expires == 0 || k.Expires > w.now.UnixNano()) {
			entries = append(entries, k)
		}
	}
	slices.SortFunc(entries, func(a, b Kept) int { return strings.Compare(a.Name, b.Name) })
	half := w.roll(len(entries) + 1)
	w.say("store: %d of %d entries for %s %q", half, len(entries), script.Short(ld.TypeURL), ld.Names)
	w.push(Loaded{Load: ld, Entries: entries[:half]})
	w.push(Loaded{Load: ld, Entries: entries[half:], Last: true})
}

// checkStored: at rest the store has what a server said last, as far as a watch heard it. What the wildcard has too is
// stored for its source as well.
func (w *world) checkStored(sw *simWatch, name string) {
	if !sw.Type.Stored || !sw.covers(name) || structured(name) && w.watched[sw.Type.URL+star] {
		return
	}
	k, kept := sw.told[name], w.store[shelf{int(sw.Source), sw.Type.URL, name}]
	gone := k.Kind == NoticeDoesNotExist && k.Reason != ReasonTimeout || k.Kind == 0 && sw.synced()
	w.honest(!k.held() || k.Stale || k.value() == w.valueOf(sw.Type.URL, kept.Raw), "LKG-1: %s: %+v is held, and %+v is kept", name, k, kept)
	w.honest(!gone || kept.Raw == nil, "LKG-5: %s: %+v is told, and %+v is kept", name, k, kept)
}
