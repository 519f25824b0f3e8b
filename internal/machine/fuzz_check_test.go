package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// check compares what everyone knows when nothing is under way.
func (w *world) check(long bool) {
	if len(w.tasks) > 0 || len(w.judging) > 0 || len(w.sent) > 0 && slices.ContainsFunc(w.sent, func(r *simResponse) bool { return !r.stuck(w) }) {
		w.fail("%d tasks, %d proposals and %d responses are not done with", len(w.tasks), len(w.judging), len(w.sent))
	}
	w.sent = nil
	w.checkDescribed()
	left := 0
	for _, s := range w.m.streams {
		w.checkStream(s)
		for _, ts := range s.order {
			for e := range ts.entries.all() {
				if !e.pinned {
					left++
				}
			}
		}
	}
	for _, c := range w.m.Counts() {
		left -= c.N
	}
	if left != 0 {
		w.fail("%d resources are not counted", left)
	}
	if long {
		w.checkLapsed()
	}
	for _, sw := range w.watches {
		md := w.model(sw.Type.URL)
		if sw.Wildcard {
			w.checkWild(sw, md, long)
			continue
		}
		w.checkTold(sw, &sw.told, sw.Name, md.word(sw.Name), long)
		if !w.murky(md, sw.Name) && !sw.agrees(md.word(sw.Name), long) {
			w.fail("%s: %v; the server's word is %v", sw.label(), &sw.told, md.word(sw.Name))
		}
	}
}

// stuck says that nothing more will come of a response: it waited for another one of a
// stream that is over.
func (r *simResponse) stuck(w *world) bool {
	s := w.stream(r.ref.Stream)
	return s.ref != r.ref || s.state != up
}

func (w *world) checkStream(s *stream) {
	sim := w.stream(s.index)
	if w.watching(sim) != (sim.state == up) {
		w.fail("stream %d is in state %d; something is watched: %v", s.index, sim.state, w.watching(sim))
	}
	if (s.fault != nil) != w.trouble[s.index] {
		w.fail("stream %d is in trouble: %v, the machine says %v", s.index, w.trouble[s.index], s.fault)
	}
	for _, ts := range s.order {
		md := w.model(ts.typ.URL)
		wanted, _, _ := w.wantedOn(s.index, md)
		if ts.busy != nil || len(ts.owed) > 0 || len(ts.changed) > 0 {
			w.fail("%s is not at rest: busy %v, %d answers, %d changes", ts.typ.URL, ts.busy != nil, len(ts.owed), len(ts.changed))
		}
		for e := range ts.entries.all() {
			name := e.name
			live := md.live[name]
			if !w.active(sim, ts.typ.URL, name) {
				live = 0
			}
			if ts.entries.get(name) != e || e.noted || len(e.joining()) > 0 || len(e.watches) != live || e.wanted() != wanted[name] || !e.wanted() && !ts.member(e) {
				w.fail("stream %d: entry %s is left over: %+v", s.index, name, e)
			}
		}
		held := int64(0)
		for e := range ts.entries.all() {
			held += e.counted()
			if len(e.raw) > 0 && e.counted() == 0 && !e.byAlias() {
				w.fail("stream %d: what is held of %s is not counted", s.index, e.name)
			}
		}
		if held != ts.held {
			w.fail("stream %d: %d bytes are held of %s, counted are %d", s.index, held, ts.typ.URL, ts.held)
		}
		for name := range wanted {
			if ts.entries.get(name) == nil {
				w.fail("stream %d: no entry of %s", s.index, name)
			}
		}
		for _, ch := range s.chains {
			w.checkChain(ts, ch)
		}
	}
	if sim.state != up {
		return
	}
	if !s.reading || len(s.undelivered) > 0 {
		w.fail("stream %d is not read: reading %v, undelivered %v", s.index, s.reading, s.undelivered)
	}
	for _, md := range w.models {
		if s.url == "" || s.url == md.typ.URL {
			w.checkPicture(sim, md)
		}
	}
}

// checkChain compares what is found of a chain with what there is.
func (w *world) checkChain(ts *typeState, ch *chain) {
	es := slices.DeleteFunc(ts.inOrder(nil), func(e *entry) bool { return e.of.chain != ch })
	cs := slices.DeleteFunc(ts.collectionsOf(nil), func(c *collection) bool { return c.chain != ch })
	if found := ts.inOrder(ch); !slices.Equal(found, es) {
		w.fail("%s: %d entries of a chain are found, there are %d", ts.typ.URL, len(found), len(es))
	}
	found := slices.DeleteFunc(ts.collectionsOf(ch), func(c *collection) bool { return c.self == nil })
	if !slices.Equal(found, cs) {
		w.fail("%s: %d collections of a chain are found, there are %d", ts.typ.URL, len(found), len(cs))
	}
}

func (w *world) checkPicture(s *simStream, md *model) {
	pic := s.pics[md.typ.URL]
	names, wild, _ := w.wantedOn(s.ref.Stream, md)
	if pic == nil {
		if len(names) > 0 || wild {
			w.fail("%s was never asked for", md.typ.URL)
		}
		return
	}
	if len(pic.unheard) > 0 {
		w.fail("%s: not answered: %+v", md.typ.URL, pic.unheard)
	}
	if pic.legacy && !w.policy.delta {
		names = nil // they are among all
	}
	if !maps.Equal(pic.names, names) || pic.wild != wild {
		w.fail("stream %d: %s: the server knows of %v, wildcard %v; wanted are %v, wildcard %v", s.ref.Stream, md.typ.URL, pic.names, pic.wild, names, wild)
	}
}

// checkTold compares what a watch was told with what the machine holds.
func (w *world) checkTold(sw *simWatch, k *told, name string, word *word, long bool) {
	r, ok := w.m.Held(sourceOf(name), sw.Type.URL, name)
	held := ok && r.Raw != nil
	if held != (k.kind == NoticeUpdated) || held && marked(meaning(decodeValue(r.Raw), r.Locator), r.Attributes) != k.value {
		w.fail("%s: %s: %v; the machine holds %q, status %v", sw.label(), name, k, decodeValue(r.Raw), r.Status)
	}
	if !held {
		return
	}
	s := w.chain(sw.Type.URL, name).stream()
	ts := s.types[sw.Type.URL]
	own := ts.entries.get(name).fault
	served := ts.suspicion.fault == nil && s.fault == nil && (s.told == nil || s.state == up && s.responded)
	calm := own == nil && (served || sw.Wildcard)
	troubled := own != nil || !sw.Wildcard && s.told != nil && s.unreachable()
	if troubled && k.ambient == nil || calm && k.ambient != nil {
		w.fail("%s: %s: %v; trouble of its own %v, of the server %v", sw.label(), name, k, own, s.fault)
	}
	if !w.murky(w.model(sw.Type.URL), name) && !word.unsure && word.held && word.fault != (own != nil) {
		w.fail("%s: %s has the fault %v; the server's word is %v", sw.label(), name, own, word)
	}
}

func (w *world) checkWild(sw *simWatch, md *model, long bool) {
	names := map[string]bool{}
	for name := range sw.members {
		names[name] = true
	}
	for name := range md.words {
		names[name] = true
	}
	for name := range names {
		if isGlobURL(name) || sw.Name != star && globOver(name) != sw.Name || w.murky(md, name) {
			continue
		}
		k, word := sw.members[name], md.word(name)
		if k == nil {
			k = &told{}
		}
		if sure, perhaps := word.alias(); perhaps {
			if sure && word.held && k.kind == NoticeUpdated {
				w.fail("%s: %s is an alias, and was told", sw.label(), name)
			}
			continue
		}
		w.checkTold(sw, k, name, word, long)
		if !word.unsure && (word.held != (k.kind == NoticeUpdated) || word.held && word.value != k.value) {
			w.fail("%s: %s: %v; the server's word is %v", sw.label(), name, k, word)
		}
	}
	if long && !sw.synced && sw.kind == 0 {
		w.fail("%s never came to an end", sw.label())
	}
}

// told is what a watch knows of one resource from what it was told.
type told struct {
	kind    NoticeKind // of the last word; 0 if none
	value   string
	fault   *Fault
	ambient *Fault
}

func (k *told) hear(n Notice) {
	switch n.Kind {
	case NoticeUpdated:
		*k = told{kind: n.Kind, value: marked(n.Value.(string), n.Attributes)}
	case NoticeDoesNotExist:
		*k = told{kind: n.Kind}
	case NoticeFailed:
		*k = told{kind: n.Kind, fault: n.Fault}
	case NoticeAmbient:
		k.ambient = n.Fault
	}
}

// ofServer says that the trouble is with the server and not with the resource.
func (k *told) ofServer() bool {
	return k.kind == NoticeFailed && (k.fault.Kind == FaultConnection || k.fault.Kind == FaultStream)
}

func (k *told) String() string {
	s := fmt.Sprintf("told %d %q", k.kind, k.value)
	if k.fault != nil {
		s += " " + k.fault.Kind.String() + ": " + k.fault.Err.Error()
	}
	if k.ambient != nil {
		s += ", ambient " + k.ambient.Kind.String()
	}
	return s
}

// agrees says whether what was told is what the server's word means. A resource of which
// nothing is known may have to wait.
func (k *told) agrees(w *word, late bool) bool {
	switch {
	case w.unsure:
		return true
	case w.held:
		return k.kind == NoticeUpdated && k.value == w.value
	case w.absent:
		return k.kind == NoticeDoesNotExist || k.ofServer()
	case w.fault:
		return k.kind == NoticeFailed
	}
	return k.kind == 0 && !late || k.ofServer()
}

// simWatch is a live watch and what it knows.
type simWatch struct {
	*Watch
	told
	members map[string]*told
	synced  bool
}

func (w *simWatch) label() string {
	return strings.TrimPrefix(w.Type.URL, "type.googleapis.com/") + "/" + w.Name
}

// checkAgenda looks for streams that the last step should have looked at.
func (w *world) checkAgenda() {
	for _, s := range w.m.streams {
		if due := s.deadline(); s.touched || !due.Equal(s.due) || due.IsZero() != (s.place == 0) {
			w.fail("stream %d is due at %v, noted is %v, place %d, touched %v", s.index, due, s.due, s.place, s.touched)
		}
		if s.state != up || s.writing != nil || w.now.Before(s.Rate.ready(&s.throttle)) {
			continue
		}
		for _, ts := range s.order {
			if ts.busy.on(s.ref()) {
				continue
			}
			at := ts.sendAt
			answering, changing := ts.due(w.now)
			late := changing && !w.now.Before(ts.turn())
			late = late || s.watches > 0 && ts.outdated() && (ts.renewAt.IsZero() || !w.now.Before(ts.renewAt))
			if ts.sendAt = at; answering || late {
				w.fail("stream %d: %s owes a message: %v, %v", s.index, ts.typ.URL, answering, changing)
			}
		}
	}
}

// silent says that a notice may be because the server was not told a version and did not
// answer.
func (n Notice) silent() bool {
	switch n.Kind {
	case NoticeDoesNotExist:
		return n.Reason == ReasonTimeout || n.Reason == ReasonAbsent
	case NoticeAmbient:
		return n.Fault != nil && (n.Fault.Kind == FaultTimeout || n.Fault.Err == ErrDeletionKept)
	}
	return false
}
