package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/testutil/script"
)

// simServer is a management server that tells the truth, late and in parts, and checks what it is sent.
type simServer struct {
	index  int
	dead   bool
	stores map[string]simStore // by type URL
}

// simStore is what a server has had of a type, the newest last.
type simStore []*simResource

// simResource is a state of a resource, the first of which is that there is none.
type simResource struct {
	name     string // its own
	revision int    // counts the states of all resources of the type
	version  string
	value    string // "" if there is no resource
	code     int32  // of the error that the server has for it
	swapped  bool   // which differs in the bytes and not in the value
	ttl      time.Duration
}

func (r *simResource) named(name string) bool { return name == r.name || name == aliasOf[r.name] }

func (r *simResource) gone() bool { return r.value == "" && r.code == 0 }

// version is that of a type, after some changes, and of the resource that was changed last.
func (s *simServer) version(changes int) string { return fmt.Sprintf("s%d.%d", s.index, changes) }

var (
	plainNames      = []string{"a", "b", "c", "d", "e", "f"}
	structuredNames = []string{
		"xdstp://a/t/p/a", "xdstp://a/t/p/b", "xdstp://a/t/p/c", "xdstp://a/t/q/a", "xdstp://a/t/q/b", "xdstp://a/t/r",
	}
	globURLs = []string{"xdstp://a/t/p/*", "xdstp://a/t/q/*"}
	aliasOf  = map[string]string{"a": "za", "b": "zb"}
)

// sourceOf is the index of the source that answers for a name.
func sourceOf(name string) int {
	if structured(name) {
		return 1
	}
	return 0
}

// encloses says whether the wildcard or a glob has a name as its member.
func encloses(collection, name string) bool {
	if collection == star {
		return slices.Contains(plainNames, name)
	}
	before, ok := strings.CutSuffix(collection, star)
	return ok && strings.HasPrefix(name, before) && name != collection
}

// change changes what some servers have.
func (w *world) change() {
	t := w.types[w.roll(3)]
	w.serial++
	r := simResource{name: w.resources[w.roll(len(w.resources))], value: fmt.Sprint("good", w.serial)}
	touched := false
	switch w.roll(10) {
	case 0, 1:
		r.value = ""
	case 2:
		r.value = fmt.Sprint("bad:", w.serial)
	case 3:
		if !w.aliases && !w.server.AlwaysFull { // an error is of one name, and a file has none but its own
			r.value, r.code = "", []int32{codeNotFound, codePermissionDenied, 14}[w.roll(3)]
		}
	case 4:
		touched = true
	}
	if w.mortal && isGood(r.value) && w.one(2) {
		r.ttl = []time.Duration{time.Second, 10 * time.Second, 40 * time.Second}[w.roll(3)]
	}
	one := w.roll(2 * len(w.servers))
	for i, s := range w.servers {
		if one < len(w.servers) && i != one {
			continue
		}
		r := r
		if was := s.stores[t.URL].has(r.name); touched && isGood(was.value) {
			r = *was // the same, in other bytes
			r.swapped = !was.swapped
		}
		s.put(t, r)
		w.say("server %d has %s: %+v", i, script.Short(t.URL), r)
	}
}

func (s *simServer) put(t *Type, r simResource) {
	r.revision = len(s.stores[t.URL]) + 1
	r.version = s.version(r.revision)
	s.stores[t.URL] = append(s.stores[t.URL], &r)
}

// has is what there is under a name now.
func (st simStore) has(name string) *simResource {
	for _, r := range slices.Backward(st) {
		if r.named(name) {
			return r
		}
	}
	return &simResource{}
}

// gave is the first revision of a value or version under a name; 0 if there was none.
func (st simStore) gave(name, what string) int {
	for _, r := range st {
		if what != "" && r.named(name) && (r.value == what || r.version == what) {
			return r.revision
		}
	}
	return 0
}

// lacked says whether there was no resource of a name at or after a revision. At first there was none.
func (st simStore) lacked(name string, revision int) bool {
	return revision == 0 || slices.ContainsFunc(st[revision:], func(r *simResource) bool { return r.value == "" && r.named(name) })
}

// simResponse is one response.
type simResponse struct {
	ref            Ref
	sub            *simType
	version, nonce string
	invalid        []string // that the program refuses
	twice          bool     // it has one twice
	refused        bool     // by a guard
}

// respond sends a response, if there may be one.
func (w *world) respond(s *simStream) {
	if s.state != up || !s.reading {
		return
	}
	n := w.roll(3)
	for i := range w.types {
		t := w.types[(n+i)%3]
		switch sub := s.of(t); {
		case !sub.begun && i == 0 && w.one(16) && (s.url == "" || s.url == t.URL): // nobody asked for it
			w.send(s, &simResponse{ref: s.ref, sub: sub, version: "-", nonce: "unasked"}, nil)
			return
		case sub.begun && t == w.hated:
			w.end(s)
			return
		case sub.begun && (sub.due || slices.ContainsFunc(w.all, func(name string) bool { return w.news(s, sub, name) }) || w.one(8)):
			w.answer(s, sub)
			return
		}
	}
}

// tells is what a server has to say of a name, or of a glob, which is there if it has members.
func (st simStore) tells(name string) *simResource {
	if slices.ContainsFunc(structuredNames, func(member string) bool { return encloses(name, member) && st.has(member).value != "" }) {
		return &simResource{revision: 1, value: name}
	}
	return st.has(name)
}

// news says whether the client does not know what there is to say of a name.
func (w *world) news(s *simStream, sub *simType, name string) bool {
	r := s.server.stores[sub.typ.URL].tells(name)
	revision, known := sub.known[name]
	told := !r.gone() || known && (w.server.Delta || w.full(sub.typ))
	return w.subscribes(sub, name) && revision != r.revision && told
}

// answer says what is news, and in a full state all, and sometimes more.
func (w *world) answer(s *simStream, sub *simType) {
	w.serial++
	st := s.server.stores[sub.typ.URL]
	r := &simResponse{ref: s.ref, sub: sub, nonce: fmt.Sprint("n", w.serial)}
	if !w.server.Delta {
		r.version = s.server.version(len(st))
	}
	var has []*simResource
	var words []string // of scripts
	for _, name := range w.all {
		res, news := st.tells(name), w.news(s, sub, name)
		switch {
		case !w.subscribes(sub, name) && (!isGood(res.value) || structured(name) || !w.one(16)):
			continue // sometimes it says what nobody asked for
		case res.gone() && news && w.server.Delta: // a glob takes its members along
			words = append(words, "-"+name)
			maps.DeleteFunc(sub.known, func(member string, _ int) bool {
				return encloses(name, member) && (!sub.subscribed[member] || st.has(member).code != 0) // an error is told again
			})
		case res.gone(), strings.HasSuffix(name, star), !news && !w.full(sub.typ) && !w.one(4):
		case res.code != 0:
			words = append(words, fmt.Sprintf("!<%s>=%d:no", name, res.code))
		case !slices.Contains(has, res): // by another of its names
			has, words = append(has, res), append(words, w.word(sub.typ, res))
			if isBad(res.value) {
				r.invalid = append(r.invalid, res.name, aliasOf[res.name])
			}
		}
		sub.known[name] = res.revision
	}
	if len(has) > 0 && !w.server.ResumeVersion && w.one(32) {
		words, r.invalid, r.twice = append(words, w.word(sub.typ, has[0])), append(r.invalid, has[0].name), true
	}
	sub.due, sub.owed = false, append(sub.owed, r)
	w.send(s, r, words)
}

// send has the machine receive a response of some items.
func (w *world) send(s *simStream, r *simResponse, items []string) {
	words := []string{script.Short(r.sub.typ.URL), r.version, r.nonce}
	if s.reading, s.working = false, r; w.server.Delta {
		words = slices.Delete(words, 1, 2)
	} else {
		r.sub.newest = r.nonce
	}
	if w.evil {
		items = w.garble(items)
	}
	words = append(words, items...)
	w.say("recv %v %q", s.ref, words)
	w.push(Received{s.ref, scanned(w, words, w.server.Delta)})
}

// word is the item of a resource, in the words of scripts.
func (w *world) word(t *Type, res *simResource) string {
	word := fmt.Sprintf("<%s>@%s=%s", res.name, res.version, res.value)
	if res.swapped {
		word += "%"
	}
	if res.ttl > 0 {
		word += "^" + res.ttl.String()
	}
	if alias := aliasOf[res.name]; w.aliases && alias != "" {
		word += "&" + alias
	}
	if t.NameField == 0 || strings.ContainsAny(word, "^&") {
		word = "w:" + word
	}
	return word
}

// The program accepts what is good, and refuses what is bad.
func isGood(value string) bool { return strings.HasPrefix(value, "good") }
func isBad(value string) bool  { return strings.HasPrefix(value, "bad") }

// What servers of an evil world say, and of which names beside those that are watched.
var (
	oddNames = []string{"", "*", "nobody", "za", "zb", "xdstp:", "xdstp://a/t/p/*", "xdstp://a/t/p/a?x=1", "xdstp://b/t/p/a", "xdstp://a/u/p/a", "xdstp://a/t/p/%61"}
	oddItems = []string{
		"?=1", "?~", "()", "(#)", "#", "-NAME", "-NAME{}", "<NAME>=1", "w:<NAME>=1", "<NAME>~", "w:<NAME>#", "bar:<NAME>=1", "w:bar:<NAME>=1",
		"w:<NAME>=1^-1ns", "w:<NAME>=1^0s", "w:<NAME>=1^1ns", "w:<NAME>=1^1000000h", "w:<NAME>=1&a", "!<NAME>=0:odd", "!<NAME>=5:odd", "!<NAME>=7:odd", "!<NAME>=14:odd",
	}
)

// garble changes the items of a response in ways that no server should.
func (w *world) garble(items []string) []string {
	for range w.roll(4) {
		names := slices.Concat(w.names, oddNames)
		name, i := names[w.roll(len(names))], w.roll(len(items)+1)
		odd := strings.ReplaceAll(oddItems[w.roll(len(oddItems))], "NAME", name)
		if i < len(items) && w.one(3) {
			odd = items[i] + "&" + name
		}
		if items = slices.Insert(items, i, odd); w.one(2) {
			items = slices.Delete(items, i+1, min(i+2, len(items)))
		}
		if w.one(12) {
			items = nil
		}
	}
	return items
}
