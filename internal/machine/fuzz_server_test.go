package machine

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
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
		if w.aliases {
			break // an error is of one name
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
	wild     time.Time            // when everything was asked for; zero if it is not
	legacy   bool                 // that has no name
	named    bool                 // names were sent
	due      bool                 // a response is owed though it may hold nothing
	known    map[string]int       // revisions that the client has; 0 for none
	sent     map[string]bool      // names of resources that it was sent, asked for or not
	newest   string               // nonce
	accepted string               // version; SotW
	owed     []*simResponse       // that are not answered
}

// wants says whether a name is subscribed in any way.
func (sub *simType) wants(name string) bool {
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
		return revision != 0 && (w.server.Delta || sub.typ.FullState) || byName && !told && w.server.Delta
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
		case !news && (w.server.Delta || !t.FullState) && w.roll(4) != 1:
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

// request is what a server makes of a request, and what it may be.
func (w *world) request(send Send) {
	s := w.stream(send.Stream)
	if s.ref != send.Ref || s.state != up || s.writing {
		w.fail("a request to stream %v, which is %+v", send.Ref, s)
	}
	s.writing = true
	if msg := bytes.Join(send.Message, nil); w.server.Delta {
		var r discoveryv3.DeltaDiscoveryRequest
		if err := proto.Unmarshal(msg, &r); err != nil {
			w.fail("the request does not parse: %v", err)
		}
		w.say("-> %v %s +%q -%q %v nonce %q error %v", s.ref, r.TypeUrl[20:], r.ResourceNamesSubscribe, r.ResourceNamesUnsubscribe, r.InitialResourceVersions, r.ResponseNonce, r.ErrorDetail)
		w.requestDelta(s, &r)
	} else {
		var r discoveryv3.DiscoveryRequest
		if err := proto.Unmarshal(msg, &r); err != nil {
			w.fail("the request does not parse: %v", err)
		}
		w.say("-> %v %s %q version %q nonce %q error %v", s.ref, r.TypeUrl[20:], r.ResourceNames, r.VersionInfo, r.ResponseNonce, r.ErrorDetail)
		w.requestSotW(s, &r)
	}
	s.began = true
}

// subscribedTo finds what a request adds to, and checks what all requests have in common.
func (w *world) subscribedTo(s *simStream, url string, node *corev3.Node) (sub *simType, first bool) {
	if must := !s.began || w.config.NodeAlways; must != (node != nil) {
		w.fail("NODE-1: a request with the node %v", node)
	}
	i := slices.IndexFunc(w.types, func(t *Type) bool { return t.URL == url })
	if i < 0 || s.url != "" && s.url != url {
		w.fail("a request of type %s", url)
	}
	if sub = s.subscribed[url]; sub == nil {
		sub = &simType{typ: w.types[i], names: map[string]time.Time{}, known: map[string]int{}, sent: map[string]bool{}, newest: s.unasked[url]}
		s.subscribed[url] = sub
		first = true
	}
	if n := len(sub.owed); n > 0 && !sub.owed[n-1].done {
		w.fail("ACK-9: a request of %s between a response and its answer", url)
	}
	s.doomed = s.doomed || sub.typ == w.hated
	return sub, first
}

// add has a server owe an answer for what is subscribed anew.
func (sub *simType) add(now time.Time, name string) {
	sub.due = true
	for member := range sub.known {
		if name == star && !structured(member) || covers(name, member) {
			sub.known[member] = -1 // it is sent again, or said to be gone
		}
	}
	if name == star {
		sub.wild = now
		return
	}
	if _, again := sub.names[name]; !again {
		sub.names[name] = now
	}
	delete(sub.known, name)
}

func (w *world) requestSotW(s *simStream, r *discoveryv3.DiscoveryRequest) {
	sub, first := w.subscribedTo(s, r.TypeUrl, r.Node)
	st := s.server.stores[r.TypeUrl]
	if r.ResponseNonce != sub.newest {
		w.fail("ACK-8: nonce %q, the newest is %q", r.ResponseNonce, sub.newest)
	}
	if !slices.IsSorted(r.ResourceNames) || len(slices.Compact(slices.Clone(r.ResourceNames))) != len(r.ResourceNames) {
		w.fail("SOTW-3: names are not a sorted set: %q", r.ResourceNames)
	}
	if n := len(sub.owed); n > 0 {
		w.verdict(sub, sub.owed[n-1], r.ErrorDetail)
		for i, earlier := range sub.owed { // S-17: the newest is answered for all
			if i == n-1 && r.ErrorDetail == nil || i < n-1 && r.VersionInfo == earlier.version {
				sub.accepted = earlier.version
			}
			if i < n-1 {
				sub.again(earlier)
			}
		}
		sub.owed = nil
	} else if r.ErrorDetail != nil {
		w.fail("ACK-5: an error that answers nothing: %v", r.ErrorDetail)
	}
	if own := fmt.Sprintf("s%d.", s.server.index); r.VersionInfo != sub.accepted && !(w.server.ResumeVersion && sub.accepted == "" && strings.HasPrefix(r.VersionInfo, own)) {
		w.fail("SOTW-2, ACK-7: version %q to server %d, accepted on the stream is %q", r.VersionInfo, s.server.index, sub.accepted)
	}
	sub.named = sub.named || len(r.ResourceNames) > 0
	before, wild := sub.names, sub.wild
	sub.names, sub.wild, sub.legacy = map[string]time.Time{}, time.Time{}, !sub.named
	for _, name := range r.ResourceNames {
		if since, ok := before[name]; ok {
			sub.names[name] = since
		} else if name != star || wild.IsZero() {
			sub.add(w.now, name)
			if name != star && !wild.IsZero() {
				sub.names[name] = wild // it was among all
			}
		} else {
			sub.wild = wild
		}
	}
	if sub.legacy && !wild.IsZero() {
		sub.wild = wild
	} else if sub.legacy {
		sub.add(w.now, star)
	}
	if first && r.VersionInfo == s.server.version(st.revision) { // it compares versions
		sub.due = false
		for _, name := range sub.all(st) {
			if _, res := st.get(name); sub.wants(name) {
				sub.known[name] = res.revision
			}
		}
	}
}

func (w *world) requestDelta(s *simStream, r *discoveryv3.DeltaDiscoveryRequest) {
	sub, first := w.subscribedTo(s, r.TypeUrl, r.Node)
	st := s.server.stores[r.TypeUrl]
	add, remove := r.ResourceNamesSubscribe, r.ResourceNamesUnsubscribe
	switch {
	case r.ResponseNonce == "":
		if r.ErrorDetail != nil || !first && len(add)+len(remove) == 0 {
			w.fail("DELTA-5: a request that says nothing")
		}
	case len(sub.owed) == 0 || sub.owed[0].nonce != r.ResponseNonce:
		w.fail("ACK-1: an answer to %q, which is not the next that is owed", r.ResponseNonce)
	default:
		w.verdict(sub, sub.owed[0], r.ErrorDetail)
		sub.owed = sub.owed[1:]
	}
	if !first && len(r.InitialResourceVersions) > 0 {
		w.fail("DELTA-2: initial versions in a later request")
	}
	if first && len(add) == 0 {
		sub.legacy = true
		sub.add(w.now, star)
	}
	for _, name := range add {
		if slices.Contains(remove, name) {
			w.fail("%q is subscribed and unsubscribed by one request", name)
		}
		sub.add(w.now, name)
	}
	for _, name := range remove {
		if _, ok := sub.names[name]; !ok && !sub.sent[name] && (name != star || sub.wild.IsZero()) {
			w.fail("%q is unsubscribed, which was not subscribed", name)
		}
		if delete(sub.names, name); name == star {
			sub.wild = time.Time{}
		}
		if delete(sub.known, name); sub.wants(name) {
			sub.known[name] = -1 // WILD-7: it may be the wildcard's, and the server has to say so
		}
	}
	for name, version := range r.InitialResourceVersions {
		if !st.versions[name][version] {
			w.fail("ACK-10: initial version %q of %s, which server %d never gave", version, name, s.server.index)
		}
		_, res := st.get(name)
		if sub.known[name] = -1; s.server.version(res.revision) == version {
			sub.known[name] = res.revision
		}
	}
}

// verdict checks the answer to a response, and has the server send again what a refusal undid.
func (w *world) verdict(sub *simType, r *simResponse, detail *status.Status) {
	refused := detail != nil && strings.Contains(detail.Message, errJudged.Error())
	switch {
	case detail != nil && len(r.invalid) == 0 && !r.faulty && !refused:
		w.fail("ACK-2: a response that is good is refused: %v", detail)
	case detail == nil && r.changes == w.changes && w.first(w.stream(r.ref.Stream).server) && slices.ContainsFunc(r.invalid, func(name string) bool {
		return sub.wants(name) && w.watched(sub.typ, name)
	}):
		w.fail("ACK-4: a response with invalid %q is acknowledged", r.invalid)
	}
	if refused || detail != nil && r.faulty {
		sub.again(r)
	}
}

// again has a server say again what a response said that was not acknowledged.
func (sub *simType) again(r *simResponse) {
	sub.due = true
	for _, name := range r.names {
		if sub.known[name] = -1; !sub.wants(name) {
			delete(sub.known, name)
		}
	}
}

// watched says whether a watch wants a name.
func (w *world) watched(t *Type, name string) bool {
	return slices.ContainsFunc(w.watches, func(sw *simWatch) bool {
		return sw.Type == t && (sw.Name == name || covers(sw.Name, name) || sw.Name == star && !structured(name))
	})
}

// first says whether a server is the first of all sources that it is of, so that what it says counts.
func (w *world) first(s *simServer) bool {
	return !slices.ContainsFunc(w.sources, func(order []int) bool { return slices.Index(order, s.index) > 0 })
}

// checkSubscribed: at rest a server knows of what is wanted, and of nothing else.
func (w *world) checkSubscribed(s *simStream) {
	for _, t := range w.types {
		want := map[string]bool{}
		for _, sw := range w.watches {
			order := w.sources[sw.Source]
			if sw.Type == t && w.servers[order[0]] == s.server && (s.url == "" || s.url == t.URL) {
				want[sw.Name] = true
			}
		}
		sub := s.subscribed[t.URL]
		if sub == nil {
			sub = &simType{}
		}
		got := map[string]bool{}
		for name := range sub.names {
			got[name] = true
		}
		if !sub.wild.IsZero() {
			got[star] = true
		}
		if want[star] && sub.legacy && !w.server.Delta {
			want = map[string]bool{star: true} // the others are among all
		}
		if !maps.Equal(got, want) || len(sub.owed) > 0 {
			w.fail("stream %v: %s: the server knows of %v, wanted are %v; %d answers are owed", s.ref, t.URL, got, want, len(sub.owed))
		}
	}
}
