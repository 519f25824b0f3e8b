package machine

import (
	"cmp"
	"fmt"
	"slices"
)

// policy is what the configuration says about trouble.
type policy struct{ delta, keep, drop bool }

// apply takes a finished response into the model.
func (r *simResponse) apply(p policy) {
	if r.gone || r.ignored || r.void {
		return
	}
	if r.blurred {
		r.known()
		for name := range r.md.words {
			r.md.doubt(name)
		}
		return
	}
	if r.refusal != nil {
		r.applyRefusal(p)
		return
	}
	mentions := r.mentions()
	for _, en := range r.entries {
		name := en.name(r.md.typ)
		w := r.sure(name)
		if w == nil || mentions[name] > 1 || isGlobURL(name) {
			continue
		}
		switch {
		case en.kind == entryValue:
			*w = word{held: true, value: marked(en.means(), en.attributes(p.delta)), version: r.version, epoch: w.epoch, called: w.called, ttl: en.lives(p.delta), given: r.at}
			w.under, w.dim = w.surely(), w.vague
			if p.delta {
				w.version = en.version
			}
		case en.kind != entryBodiless:
			w.refuse(p.drop)
		case w.unsure:
			w.blur() // it may be gone
		case r.heartbeat(en, w, p.delta):
			w.ttl, w.given = en.lives(p.delta), r.at
		case p.delta:
			w.remove(p.keep)
		default:
			w.refuse(p.drop)
		}
	}
	for name, n := range mentions {
		w := r.sure(name)
		if w == nil || n == 1 || isGlobURL(name) {
			continue
		}
		w.refuse(p.drop)
		only := !slices.ContainsFunc(r.entries, func(en simEntry) bool { return en.name(r.md.typ) == name })
		if only && !w.held && !r.watched[name] {
			w.unsure = true // a member that may never have been known
		}
	}
	for _, name := range r.removed {
		if mentions[name] == 1 {
			r.applyRemoval(name, p)
		}
	}
	r.applyErrors(p, mentions)
	heartbeats := len(r.entries) > 0 && !slices.ContainsFunc(r.entries, func(en simEntry) bool { return en.kind != entryBodiless })
	nameless := mentions[""] > 0 || slices.ContainsFunc(r.errors, func(e simError) bool { return e.name == "" })
	if !p.delta && r.md.typ.FullState && !nameless && !heartbeats {
		r.applyAbsence(p)
	}
}

// applyRefusal takes a response that a guard refused: what is held stays, and what is new in the
// response or invalid has a fault, and what it would have removed.
func (r *simResponse) applyRefusal(p policy) {
	mentions := r.mentions()
	for _, name := range r.ending {
		w := r.md.word(name)
		if epoch, ok := r.epochs[name]; !ok || epoch != w.epoch || !w.held || w.unsure {
			w.mayGo()
		} else {
			w.refuse(false)
		}
	}
	for _, en := range r.entries {
		switch name := en.name(r.md.typ); {
		case mentions[name] > 1 || r.renews(en, r.md.word(name), p.delta):
			r.spoil(name)
		case en.kind == entryBodiless:
			r.spoilUnknown(name)
		}
	}
	for _, name := range r.removed {
		if mentions[name] > 1 {
			r.spoil(name)
		} else {
			r.spoilUnknown(name)
		}
	}
	for _, e := range r.errors {
		switch {
		case mentions[e.name] > 0 || e.code == 0:
		case failures(r.errors, e.name) > 1:
			r.spoil(e.name)
		default:
			r.spoilUnknown(e.name)
		}
	}
}

// spoilUnknown is for what the response ends: only of what nothing is known is that news.
func (r *simResponse) spoilUnknown(name string) {
	switch w := r.sure(name); {
	case w == nil || w.held || w.fault || w.absent || !r.watched[name]:
	case r.md.live[name] > 0:
		r.spoil(name)
	default:
		w.unsure = true // it was judged before or after its last watch ended
	}
}

// renews says whether an entry, if it were taken, would change what is held or be refused.
func (r *simResponse) renews(en simEntry, w *word, delta bool) bool {
	switch en.kind {
	case entryValue:
		return !w.held || w.value != marked(en.means(), en.attributes(delta))
	case entryBodiless:
		return !delta && !w.unsure && !r.heartbeat(en, w, delta)
	}
	return true
}

// spoil notes that a response of which nothing is taken speaks of a name.
func (r *simResponse) spoil(name string) {
	switch w := r.sure(name); {
	case w == nil, isGlobURL(name):
	case r.md.live[name] == 0 && !w.held && !w.fault:
		w.unsure = w.unsure || w.epoch > 0 // else it is new, and nothing is known of it
	default:
		w.refuse(false)
	}
}

// known makes words for all that a response names.
func (r *simResponse) known() {
	for name := range r.mentions() {
		r.md.word(name)
	}
	for _, e := range r.errors {
		r.md.word(e.name)
	}
}

// sure finds the word on a name that was wanted all the while.
func (r *simResponse) sure(name string) *word {
	w := r.md.word(name)
	epoch, ok := r.applies[name]
	if name == "" || !ok {
		return nil
	}
	if epoch != w.epoch {
		w.mayGo()
		return nil
	}
	return w
}

func (r *simResponse) applyErrors(p policy, mentions map[string]int) {
	for i, e := range r.errors {
		w := r.sure(e.name)
		if w == nil || e.code == 0 || mentions[e.name] > 0 || failures(r.errors[:i], e.name) > 0 {
			continue
		}
		if failures(r.errors, e.name) > 1 {
			if !isGlobURL(e.name) {
				w.refuse(p.drop)
				w.unsure = w.unsure || !w.held && !r.watched[e.name] // as of what is named twice
			}
		} else if e.code == codeNotFound || isGlobURL(e.name) && e.code == codePermissionDenied && p.drop {
			r.applyRemoval(e.name, p)
		} else if !isGlobURL(e.name) {
			w.refuse(p.drop && e.code == codePermissionDenied)
			w.stated = true
		}
	}
}

// names says whether a response says something of a resource, if only that it has an error.
func (r *simResponse) names(name string) bool {
	return r.mentions()[name] > 0 || slices.ContainsFunc(r.errors, func(e simError) bool { return e.name == name })
}

// failures counts the errors of a resource.
func failures(errors []simError, name string) (n int) {
	for _, e := range errors {
		if e.name == name && e.code != 0 {
			n++
		}
	}
	return n
}

// applyRemoval takes a resource as gone, or with a glob all that are in it.
func (r *simResponse) applyRemoval(name string, p policy) {
	if !isGlobURL(name) {
		if w := r.sure(name); w != nil {
			w.remove(p.keep)
		}
		return
	}
	if _, ok := r.applies[name]; !ok {
		return
	}
	for member, w := range r.md.words {
		epoch, ok := r.epochs[member]
		switch {
		case globOver(member) != name || r.names(member):
		case !ok || epoch != w.epoch:
			w.mayGo()
		case w.held && !w.unsure:
			w.remove(p.keep)
		case w.held, w.fault:
			w.mayGo() // what is held or was refused is gone, a name that timed out is not
		}
	}
}

func (r *simResponse) applyAbsence(p policy) {
	for name, w := range r.md.words {
		epoch, ok := r.epochs[name]
		switch {
		case !w.held && !(w.refused && (r.wild || r.md.wild > 0)) || w.unsure || r.names(name):
			w.lapsed = false
			if w.unsure {
				w.blur()
			}
		case !ok || epoch != w.epoch, !w.held && !(r.wild && r.md.wild > 0):
			w.mayGo()
		case r.beside[name] && (r.wild || r.md.wild > 0): // which waits to be asked for
			w.mayGo()
		default:
			w.remove(p.keep)
		}
	}
}

// mayGo notes what may be gone.
func (w *word) mayGo() {
	w.unsure = true
	w.blur()
}

func (w *word) refuse(drop bool) {
	if w.held && drop {
		w.held = false
	}
	w.fault, w.refused, w.stated = true, true, false
	w.absent = false
	w.unsure = w.unsure && !drop
}

func (w *word) remove(keep bool) {
	if w.held && keep {
		w.fault, w.stated = true, true
		return
	}
	if keep && w.unsure {
		w.blur()
		return
	}
	*w = word{absent: true, epoch: w.epoch}
}

func (w *word) String() string {
	s := "nothing"
	switch {
	case w.held:
		s = fmt.Sprintf("value %q version %q", w.value, w.version)
		if w.ttl > 0 {
			s += fmt.Sprintf(" for %v from %s", w.ttl, w.given.Format("05.000"))
		}
	case w.absent:
		s = "absent"
	}
	if w.fault {
		s += ", at fault"
	}
	if w.unsure {
		s += ", not for certain"
	}
	return s
}

// confirm takes the answer to the first request of a stream: what that listed and the answer leaves
// out is the server's own, and what was refused since is taken back.
func (r *simResponse) confirm() {
	for name, w := range r.md.words {
		if _, listed := r.listed[cmp.Or(w.under, name)]; listed && w.held && w.refused && !w.stated && !r.names(name) && r.refusal == nil && !r.void {
			w.fault, w.refused = false, false
		}
	}
}
