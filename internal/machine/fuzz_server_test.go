package machine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// simServer is a management server that tells the truth, late and in parts, and checks what it is sent.
type simServer struct {
	index  int
	dead   bool
	stores map[string]*simStore // by type URL
}

// simStore is what a server has of a type, and has had.
type simStore struct {
	revision int
	has      map[string]simResource
	given    map[string]map[string]int  // values that were sent, by name, with the first revision that has them
	versions map[string]map[string]bool // that were sent, by name
	gone     map[string]int             // the last revision without a resource, by name
}

// simResource is what a server has under a name. The zero value is nothing.
type simResource struct {
	kind     resourceKind
	revision int
	value    string
	noise    byte // differs in the bytes and not in the value
	code     int32
	ttl      time.Duration
	alias    string
}

type resourceKind uint8

const (
	isGone   resourceKind = iota
	isGood                // the program accepts it
	isBroken              // it does not
	isFailed              // the server has an error for it
)

func newSimServer(w *world, i int) *simServer {
	s := &simServer{index: i, stores: map[string]*simStore{}}
	for _, t := range w.types {
		s.stores[t.URL] = &simStore{
			has: map[string]simResource{}, given: map[string]map[string]int{}, versions: map[string]map[string]bool{}, gone: map[string]int{},
		}
	}
	return s
}

// get is what the server has under a name of its own or an alias.
func (st *simStore) get(name string) (own string, r simResource) {
	if own, ok := strings.CutPrefix(name, aliasPrefix); ok {
		if r := st.has[own]; r.alias == name && r.kind != isFailed {
			return own, r
		}
		return own, simResource{}
	}
	return name, st.has[name]
}

// version is of one resource, and of all.
func (s *simServer) version(revision int) string { return fmt.Sprintf("s%d.%d", s.index, revision) }

const aliasPrefix = "z"

var (
	plainNames      = []string{"a", "b", "c", "d", "e", "f"}
	structuredNames = []string{
		"xdstp://a/t/p/a", "xdstp://a/t/p/b", "xdstp://a/t/p/c", "xdstp://a/t/q/a", "xdstp://a/t/q/b", "xdstp://a/t/r",
	}
	globURLs = []string{"xdstp://a/t/p/*", "xdstp://a/t/q/*"}
)

// names are those that may be watched.
func (w *world) names() []string {
	all := plainNames
	if w.aliases {
		all = append(slices.Clone(all), "za", "zb")
	}
	if w.globs {
		all = append(slices.Clone(all), structuredNames...)
	}
	return all
}

// covers says whether a glob covers a name.
func covers(glob, name string) bool {
	before, ok := strings.CutSuffix(glob, star)
	return ok && before != "" && strings.HasPrefix(name, before) && name != glob
}

// change changes what some servers have.
func (w *world) change() {
	t := w.types[w.roll(3)]
	names := plainNames
	if w.globs && w.roll(2) == 1 {
		names = structuredNames
	}
	name := names[w.roll(len(names))]
	w.serial++
	r := simResource{kind: isGood, value: fmt.Sprint("good", w.serial)}
	touched := false
	switch w.roll(10) {
	case 0, 1:
		r = simResource{}
	case 2:
		r = simResource{kind: isBroken, value: fmt.Sprint("bad", w.serial)}
	case 3:
		if w.aliases || w.server.FullState {
			break // an error is of one name, and a file has none but its own
		}
		r = simResource{kind: isFailed, code: []int32{codeNotFound, codePermissionDenied, 14}[w.roll(3)]}
	case 4:
		touched = true
	}
	if w.mortal && r.kind == isGood && w.roll(2) == 1 {
		r.ttl = []time.Duration{time.Second, 10 * time.Second, 40 * time.Second}[w.roll(3)]
	}
	if w.aliases && (name == "a" || name == "b") && r.kind != isGone {
		r.alias = aliasPrefix + name
	}
	one := w.roll(2 * len(w.servers))
	for i, s := range w.servers {
		if one >= len(w.servers) || i == one {
			st, r := s.stores[t.URL], r
			if was := st.has[name]; touched && was.kind == isGood {
				r = was // the same, in other bytes
				r.noise++
			}
			st.set(name, r)
			w.say("server %d has %s %s: %+v", i, t.URL[20:], name, st.has[name])
		}
	}
}

func (st *simStore) set(name string, r simResource) {
	st.revision++
	r.revision = st.revision
	for _, own := range []string{name, aliasPrefix + name} {
		if _, before := st.get(own); before.kind == isGone || before.kind == isFailed {
			st.gone[own] = st.revision - 1
		}
	}
	st.has[name] = r
	for _, own := range []string{name, aliasPrefix + name} {
		if _, now := st.get(own); now.kind == isGone || now.kind == isFailed {
			st.gone[own] = st.revision
		}
	}
}

// lacked says whether there was no resource of a name at or after a revision.
func (st *simStore) lacked(name string, revision int) bool {
	_, now := st.get(name)
	last, ever := st.gone[name]
	return now.kind == isGone || now.kind == isFailed || ever && last >= revision
}

// simType is what a server knows of a type on one incarnation of a stream.
type simType struct {
	typ      *Type
	names    map[string]time.Time // that were asked for by name, with when
	beside   map[string]time.Time // that were when everything was asked for without a name
	wild     time.Time            // when everything was asked for; zero if it is not
	legacy   bool                 // that has no name
	wasWild  bool                 // everything was asked for once
	named    bool                 // names were sent
	file     bool                 // it is of a file, which has everything
	due      bool                 // a response is owed though it may hold nothing
	known    map[string]int       // revisions that the client has; 0 for none
	sent     map[string]bool      // names of resources that it was sent, asked for or not
	newest   string               // nonce
	accepted string               // version; SotW
	owed     []*simResponse       // that are not answered
}

// wants says whether a name is subscribed in any way, or the server says everything anyway.
func (sub *simType) wants(name string) bool { return sub.file || sub.subscribes(name) }

// subscribes says whether a name is subscribed in any way.
func (sub *simType) subscribes(name string) bool {
	if _, ok := sub.names[name]; ok || !sub.wild.IsZero() && !structured(name) && !strings.HasPrefix(name, aliasPrefix) {
		return true
	}
	return slices.ContainsFunc(globURLs, func(glob string) bool { return !sub.names[glob].IsZero() && covers(glob, name) })
}

// all are the names that there is something to say of.
func (sub *simType) all(st *simStore) []string {
	names := maps.Clone(sub.known)
	for name := range sub.names {
		names[name] = 0
	}
	for name := range st.has {
		names[name] = 0
	}
	return slices.Sorted(maps.Keys(names))
}

// simResponse is one response.
type simResponse struct {
	ref            Ref
	sub            *simType // nil if its type was not asked for
	version, nonce string
	names          []string // that it speaks of
	invalid        []string // that the program refuses
	faulty         bool     // it is malformed in another way
	changes        int      // of what was watched until then
	done           bool     // it was worked on
}

// respond sends a response, if there may be one.
func (w *world) respond(s *simStream) {
	if s.state != up || !s.reading {
		return
	}
	n := w.roll(3)
	for i := range w.types {
		t := w.types[(n+i)%3]
		sub := s.subscribed[t.URL]
		switch {
		case sub == nil && i == 0 && w.roll(16) == 1 && (s.url == "" || s.url == t.URL): // nobody asked for it
			r := &simResponse{ref: s.ref, nonce: "unasked"}
			s.unasked[t.URL] = r.nonce
			w.deliverTo(s, t, r, nil, nil, nil)
			return
		case sub != nil && t != w.hated && (sub.owes(w, s) || w.roll(8) == 1):
			w.answer(s, t, sub)
			return
		}
	}
}

// owes says whether a response is owed.
func (sub *simType) owes(w *world, s *simStream) bool {
	st := s.server.stores[sub.typ.URL]
	return sub.due || slices.ContainsFunc(sub.all(st), func(name string) bool { return sub.news(w, st, name) })
}

// news says whether the client does not know what there is to say of a name.
func (sub *simType) news(w *world, st *simStore, name string) bool {
	_, r := st.get(name)
	_, byName := sub.names[name]
	revision, told := sub.known[name]
	switch {
	case !sub.wants(name) || strings.HasSuffix(name, star):
		return false
	case r.kind == isGone, r.kind == isFailed && !byName:
		return revision != 0 && (w.server.Delta || w.full(sub.typ)) || byName && !told && w.server.Delta
	}
	return revision != r.revision
}

// draft is a response in the making.
type draft struct {
	resources []*discoveryv3.Resource
	removed   []string
	errors    []*discoveryv3.ResourceError
}

// answer says what is news, and in a full state all, and sometimes more.
func (w *world) answer(s *simStream, t *Type, sub *simType) {
	w.serial++
	st := s.server.stores[t.URL]
	r := &simResponse{ref: s.ref, sub: sub, nonce: fmt.Sprint("n", w.serial), version: s.server.version(st.revision), changes: w.changes}
	var d draft
	for _, name := range sub.all(st) {
		_, res := st.get(name)
		_, byName := sub.names[name]
		news := sub.news(w, st, name)
		switch {
		case strings.HasSuffix(name, star):
			if w.server.Delta && byName && sub.known[name] <= 0 && !st.fills(name) {
				d.removed, r.names, sub.known[name] = append(d.removed, name), append(r.names, name), 1 // the glob is empty
				maps.DeleteFunc(sub.known, func(member string, _ int) bool { return covers(name, member) })
			}
			continue
		case !sub.wants(name) && (res.kind != isGood || structured(name) || w.roll(16) != 1):
			continue // sometimes it says what nobody asked for
		case res.kind == isGone, res.kind == isFailed && !byName:
			if res = (simResource{}); news && w.server.Delta {
				d.removed = append(d.removed, name)
			}
		case !news && !w.full(t) && w.roll(4) != 1:
		case res.kind == isFailed:
			d.errors = append(d.errors, &discoveryv3.ResourceError{
				ResourceName: &discoveryv3.ResourceName{Name: name}, ErrorDetail: &status.Status{Code: res.code, Message: "no"},
			})
		default:
			w.add(&d, r, s.server, t, name)
			sub.sent[name] = true
		}
		if r.names = append(r.names, name); sub.wants(name) {
			sub.known[name] = res.revision
		}
	}
	if len(d.resources) > 0 && sub.wants(d.resources[0].Name) && !w.server.ResumeVersion && w.roll(32) == 1 {
		d.resources, r.faulty = append(d.resources, d.resources[0]), true
		r.invalid = append(r.invalid, d.resources[0].Name)
	}
	sub.due, sub.newest, sub.owed = false, r.nonce, append(sub.owed, r)
	w.deliverTo(s, t, r, d.resources, d.removed, d.errors)
}

// fills says whether a glob has members.
func (st *simStore) fills(glob string) bool {
	return slices.ContainsFunc(structuredNames, func(name string) bool {
		return covers(glob, name) && (st.has[name].kind == isGood || st.has[name].kind == isBroken)
	})
}

// add adds a resource to a response, once for all its names.
func (w *world) add(d *draft, r *simResponse, s *simServer, t *Type, name string) {
	st := s.stores[t.URL]
	own, res := st.get(name)
	if slices.ContainsFunc(d.resources, func(r *discoveryv3.Resource) bool { return r.Name == own }) {
		return
	}
	version := s.version(res.revision)
	for _, name := range []string{own, res.alias} {
		if name == "" {
			continue // it has no alias
		}
		if res.kind == isBroken {
			r.invalid = append(r.invalid, name)
		} else {
			inner(st.given, name)[res.value] = cmp.Or(st.given[name][res.value], res.revision)
		}
		inner(st.versions, name)[version] = true
	}
	payload := &anypb.Any{TypeUrl: t.URL, Value: encodeValue(own, res.value, res.noise)}
	wrapped := &discoveryv3.Resource{Name: own, Version: version, Resource: payload}
	if res.alias != "" {
		wrapped.Aliases = []string{res.alias}
	}
	if res.ttl > 0 {
		wrapped.Ttl = durationpb.New(res.ttl)
	}
	d.resources = append(d.resources, wrapped)
}

func inner[V any](m map[string]map[string]V, key string) map[string]V {
	if m[key] == nil {
		m[key] = map[string]V{}
	}
	return m[key]
}

// deliverTo has the machine receive a response.
func (w *world) deliverTo(s *simStream, t *Type, r *simResponse, resources []*discoveryv3.Resource, removed []string, errs []*discoveryv3.ResourceError) {
	var said []string
	for _, res := range resources {
		said = append(said, res.Name+"="+decodeValue(res.Resource.Value))
	}
	w.say("recv %v %s v%s %s: %q removed %q, %d errors", s.ref, t.URL[20:], r.version, r.nonce, said, removed, len(errs))
	var m proto.Message = &discoveryv3.DeltaDiscoveryResponse{TypeUrl: t.URL, Nonce: r.nonce, Resources: resources, RemovedResources: removed, ResourceErrors: errs}
	scan := wire.ScanDelta
	if !w.server.Delta {
		sotw := &discoveryv3.DiscoveryResponse{TypeUrl: t.URL, Nonce: r.nonce, VersionInfo: r.version, ResourceErrors: errs}
		for _, res := range resources {
			a := res.Resource
			if res.Version = ""; t.NameField == 0 || res.Ttl != nil || res.Aliases != nil {
				a = new(anypb.Any)
				if err := a.MarshalFrom(res); err != nil {
					w.Fatal(err)
				}
			}
			sotw.Resources = append(sotw.Resources, a)
		}
		m, scan = sotw, wire.ScanSotW
	}
	b, err := proto.Marshal(m)
	if err != nil {
		w.Fatal(err)
	}
	resp, err := scan(b)
	if err != nil {
		w.Fatal(err)
	}
	if w.evil {
		w.garble(resp)
	}
	s.reading = false
	w.sent = append(w.sent, r)
	w.push(Received{s.ref, resp})
}

func encodeValue(name, value string, noise byte) []byte {
	var b []byte
	for i, s := range []string{name, value, string('a' + rune(noise%2))} {
		b = protowire.AppendTag(b, protowire.Number(i+1), protowire.BytesType)
		b = protowire.AppendString(b, s)
	}
	return b
}

func decodeValue(b []byte) string {
	v, _, err := wire.StringField(b, 2)
	if err != nil {
		return "broken"
	}
	return string(v)
}

func isBad(value string) bool { return strings.HasPrefix(value, "bad") }
