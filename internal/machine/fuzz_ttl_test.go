package machine

import (
	"slices"
	"strings"
	"time"
)

// mortal gives an entry a time to live, and often has it say again what is held, with the
// resource or without.
func (w *world) mortal(r *simResponse, en *simEntry) {
	en.ttl = []time.Duration{0, time.Second, 10 * time.Second, 40 * time.Second}[w.next(4)]
	word := r.md.word(en.name(r.md.typ))
	if again := w.next(4); word.held && again > 1 {
		en.kind, en.value, en.locator = entryKind(again-2)*entryBodiless, strings.TrimSuffix(word.value, doNotCache), false
		if en.value, en.locator = strings.CutPrefix(en.value, "@"); en.locator {
			en.outer = en.inner
			en.locator = structured(en.outer) // else it was held for an alias
		}
		en.version, r.version = word.version, word.version
	}
}

// lapse takes the end of what had a time to live.
func (w *world) lapse(n Notice, word *word) {
	r, _ := w.m.Held(sourceOf(n.Name), n.TypeURL, n.Name)
	switch {
	case r.Raw != nil: // it came later in the same step
		return
	case w.answering(n.TypeURL, n.Name): // a part of it may count before the response is done with
		word.mayGo()
		word.epoch++
		return
	case !word.held || word.unsure:
		word.blur() // what it was called ends with it
		return
	case word.ttl == 0 || w.now.Before(word.given.Add(word.ttl)):
		w.fail("%s lapses in spite of %v", n.Name, word)
	}
	word.remove(false)
	word.lapsed = true
	word.epoch++ // a response may be under way
}

// answering says whether a response that names a resource is being worked on.
func (w *world) answering(typeURL, name string) bool {
	return slices.ContainsFunc(w.sent, func(r *simResponse) bool {
		return r.md.typ.URL == typeURL && r.mentions()[name] > 0 && !(r.blurred && r.stuck(w))
	})
}

// checkLapsed: no time to live lasts longer than it is.
func (w *world) checkLapsed() {
	for _, md := range w.models {
		for name, word := range md.words {
			if word.held && word.ttl > 0 && !word.unsure && md.covered(name) && !w.murky(md, name) {
				w.fail("%s has not lapsed: %v", name, word)
			}
		}
	}
}

// lapseUntold doubts what may have come to its end while nobody was told.
func (w *world) lapseUntold(md *model) {
	for name, word := range md.words {
		if word.held && word.ttl > 0 && !md.covered(name) && !w.now.Before(word.given.Add(word.ttl)) {
			word.unsure = true
		}
	}
}
