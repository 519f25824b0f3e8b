package machine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/xdswatch/xdswatch/internal/wire"
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
	noise    byte   // differs in the bytes and not in the value
	ttl      time.Duration
}

// names are its own and its alias; "" if it has none.
func (r *simResource) names() []string { return []string{r.name, aliasOf[r.name]} }

func (r *simResource) named(name string) bool { return slices.Contains(r.names(), name) }

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
	names := plainNames
	if w.globs && w.one(2) {
		names = structuredNames
	}
	w.serial++
	r := simResource{name: names[w.roll(len(names))], value: fmt.Sprint("good", w.serial)}
	touched := false
	switch w.roll(10) {
	case 0, 1:
		r.value = ""
	case 2:
		r.value = fmt.Sprint("bad", w.serial)
	case 3:
		if !w.aliases && !w.server.FullState { // an error is of one name, and a file has none but its own
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
		st, r := s.stores[t.URL], r
		if was := st.has(r.name); touched && isGood(was.value) {
			r = *was // the same, in other bytes
			r.noise++
		}
		r.revision = len(st) + 1
		r.version = s.version(r.revision)
		s.stores[t.URL] = append(st, &r)
		w.say("server %d has %s: %+v", i, t.URL[20:], r)
	}
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
			w.send(s, &simResponse{ref: s.ref, sub: sub}, &wire.Response{TypeURL: t.URL, Nonce: "unasked"})
			return
		case sub.begun && t == w.hated:
			w.end(s)
			return
		case sub.begun && (w.owes(s, sub) || w.one(8)):
			w.answer(s, sub)
			return
		}
	}
}

// owes says whether a response is owed.
func (w *world) owes(s *simStream, sub *simType) bool {
	return sub.due || slices.ContainsFunc(w.all, func(name string) bool { return w.news(s.server.stores[sub.typ.URL], sub, name) })
}

// wants says whether a response has a name. A file says everything anyway.
func (w *world) wants(sub *simType, name string) bool {
	return w.server.FullState || sub.subscribes(name)
}

// tells is what a server has to say of a name, or of a glob, which is there if it has members. Of an error hears only who
// subscribed to the name itself.
func (st simStore) tells(sub *simType, name string) *simResource {
	r := st.has(name)
	switch {
	case slices.ContainsFunc(structuredNames, func(member string) bool { return encloses(name, member) && st.has(member).value != "" }):
		return &simResource{revision: 1, value: name}
	case r.code != 0 && !sub.subscribed[name]:
		return &simResource{}
	}
	return r
}

// news says whether the client does not know what there is to say of a name.
func (w *world) news(st simStore, sub *simType, name string) bool {
	revision, known := sub.known[name]
	switch r := st.tells(sub, name); {
	case !w.wants(sub, name):
		return false
	case r.gone() && !known:
		return w.server.Delta && sub.subscribed[name]
	default:
		return revision != r.revision && (!r.gone() || w.server.Delta || w.full(sub.typ))
	}
}

// answer says what is news, and in a full state all, and sometimes more.
func (w *world) answer(s *simStream, sub *simType) {
	w.serial++
	st := s.server.stores[sub.typ.URL]
	r := &simResponse{ref: s.ref, sub: sub, nonce: fmt.Sprint("n", w.serial)}
	resp := &wire.Response{TypeURL: sub.typ.URL, Nonce: r.nonce}
	if !w.server.Delta {
		r.version = s.server.version(len(st))
		resp.Version = r.version
	}
	for _, name := range w.all {
		res, news := st.tells(sub, name), w.news(st, sub, name)
		switch {
		case !w.wants(sub, name) && (!isGood(res.value) || structured(name) || !w.one(16)):
			continue // sometimes it says what nobody asked for
		case res.gone() && news && w.server.Delta: // a glob takes its members along
			resp.Removed = append(resp.Removed, []byte(name))
			maps.DeleteFunc(sub.known, func(member string, _ int) bool { return encloses(name, member) })
		case res.gone(), strings.HasSuffix(name, star), !news && !w.full(sub.typ) && !w.one(4):
		case res.code != 0:
			w.say("  has %+v", *res)
			resp.Errors = append(resp.Errors, wire.ResourceError{ResourceName: wire.ResourceName{Name: []byte(name)}, Code: res.code, Message: "no"})
		default:
			w.add(resp, r, res)
		}
		sub.known[name] = res.revision
	}
	if len(resp.Resources) > 0 && !w.server.ResumeVersion && w.one(32) {
		again := resp.Resources[0]
		resp.Resources, r.invalid, r.twice = append(resp.Resources, again), append(r.invalid, decodeName(again.Payload)), true
	}
	sub.due, sub.owed = false, append(sub.owed, r)
	w.send(s, r, resp)
}

// send has the machine receive a response.
func (w *world) send(s *simStream, r *simResponse, resp *wire.Response) {
	w.say("recv %v %s: version %q nonce %q removed %q", s.ref, resp.TypeURL[20:], resp.Version, resp.Nonce, resp.Removed)
	if w.evil {
		w.garble(resp)
	}
	if s.reading, s.working = false, r; !w.server.Delta {
		r.sub.newest = resp.Nonce
	}
	w.push(Received{s.ref, resp})
}

// add adds a resource to a response, once for all its names.
func (w *world) add(resp *wire.Response, r *simResponse, res *simResource) {
	if slices.ContainsFunc(resp.Resources, func(e wire.Resource) bool { return decodeName(e.Payload) == res.name }) {
		return
	}
	w.say("  has %+v", *res)
	if isBad(res.value) {
		r.invalid = append(r.invalid, res.names()...)
	}
	e := wire.Resource{Name: []byte(res.name), TypeURL: []byte(resp.TypeURL), Payload: encodeValue(res.name, res.value, res.noise), HasBody: true}
	if w.aliases && aliasOf[res.name] != "" {
		e.Attributes = &wire.Attributes{Aliases: [][]byte{[]byte(aliasOf[res.name])}}
	}
	e.HasTTL, e.TTL = res.ttl > 0, res.ttl
	if w.server.Delta {
		e.Version = []byte(res.version)
	} else if r.sub.typ.NameField != 0 && !e.HasTTL && e.Attributes == nil {
		e.Name = nil // it is not wrapped
	}
	resp.Resources = append(resp.Resources, e)
}

func encodeValue(name, value string, noise byte) []byte {
	var b []byte
	for i, s := range []string{name, value, string('a' + rune(noise%2))} {
		b = protowire.AppendTag(b, protowire.Number(i+1), protowire.BytesType)
		b = protowire.AppendString(b, s)
	}
	return b
}

func decodeName(b []byte) string  { return field(b, 1) }
func decodeValue(b []byte) string { return field(b, 2) }

func field(b []byte, n protowire.Number) string {
	v, _, err := wire.StringField(b, n)
	if err != nil {
		return "broken"
	}
	return string(v)
}

// The program accepts what is good, and refuses what is bad.
func isGood(value string) bool { return strings.HasPrefix(value, "good") }
func isBad(value string) bool  { return strings.HasPrefix(value, "bad") }

// oddNames are what servers of an evil world say beside names that are watched.
var oddNames = []string{"", "*", "nobody", "za", "zb", "xdstp:", "xdstp://a/t/p/*", "xdstp://a/t/p/a?x=1", "xdstp://b/t/p/a", "xdstp://a/u/p/a", "xdstp://a/t/p/%61"}

// garble changes a response in ways that no server should.
func (w *world) garble(r *wire.Response) {
	for range w.roll(4) {
		names := slices.Concat(w.names, oddNames)
		name := []byte(names[w.roll(len(names))])
		e := wire.Resource{Name: name, TypeURL: []byte("type.googleapis.com/odd"), HasBody: w.one(2), HasTTL: true, TTL: []time.Duration{-1, 0, 1, 1 << 62}[w.roll(4)]}
		if n := len(r.Resources); n > 0 && !w.one(3) {
			e = r.Resources[w.roll(n)]
		}
		w.say("  odd %q", name)
		switch w.roll(11) {
		case 0:
			r.Removed = append(r.Removed, name)
		case 1:
			r.RemovedNames = append(r.RemovedNames, wire.ResourceName{Name: name})
		case 2:
			r.Errors = append(r.Errors, wire.ResourceError{ResourceName: wire.ResourceName{Name: name}, Code: int32(w.roll(17)), Message: "odd"})
		case 3:
			r.Resources, r.Removed = nil, nil
		case 4:
			e.Name = name
		case 5:
			e.HasBody, e.Payload = w.one(2), nil
		case 6:
			e.Fault = errors.New("odd")
		case 7:
			e.Attributes = &wire.Attributes{Aliases: [][]byte{name, []byte(names[w.roll(len(names))])}}
		default:
			e.TypeURL = []byte(w.types[w.roll(3)].URL)
		}
		if i := w.roll(2 * (len(r.Resources) + 1)); i < len(r.Resources) {
			r.Resources[i] = e
		} else {
			r.Resources = append(r.Resources, e)
		}
	}
}
