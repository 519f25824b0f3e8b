package machine

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/testutil"
)

// simType is what a server knows of a type on one incarnation of a stream.
type simType struct {
	typ      *Type
	begun    bool                 // there was a request
	since    map[string]time.Time // names that are subscribed, `*` too, and since when
	waited   map[string]time.Time // the same, with the time on earlier incarnations that the client ended
	legacy   bool                 // everything is, by a request without names
	covered  []string             // all that was ever subscribed
	known    map[string]int       // revisions that the client has, by name: 0 if it knows of none, less if it has to be sent one
	due      bool                 // a request asks for an answer
	newest   string               // nonce
	accepted string               // version; SotW
	owed     []*simResponse       // that are not answered
}

// of is what the server knows of a type.
func (s *simStream) of(t *Type) *simType {
	if s.types[t.URL] == nil {
		s.types[t.URL] = newSimType(t, map[string]time.Time{})
	}
	return s.types[t.URL]
}

func newSimType(t *Type, waited map[string]time.Time) *simType {
	return &simType{typ: t, since: map[string]time.Time{}, waited: waited, known: map[string]int{}}
}

// request has a server take a request, which has to be one that a client may send.
func (w *world) request(send Send) {
	s := w.stream(send.Stream)
	if s.ref != send.Ref || s.state != up || s.writing {
		w.fail("a request to stream %v, which is %+v", send.Ref, s)
	}
	s.writing = true
	w.owe(func() {
		if s.ref == send.Ref && s.state == up {
			s.writing = false
			w.say("written %v", s.ref)
			w.push(Written{s.ref})
		}
	})
	r, msg := &testutil.Request{Stream: send.Stream}, bytes.Join(send.Message, nil)
	if w.server.Delta {
		r.Delta = new(discoveryv3.DeltaDiscoveryRequest)
		r.Err = proto.Unmarshal(msg, r.Delta)
	} else {
		r.SotW = new(discoveryv3.DiscoveryRequest)
		r.Err = proto.Unmarshal(msg, r.SotW)
	}
	w.say("-> %v", r)
	i := slices.IndexFunc(w.types, func(t *Type) bool { return t.URL == r.TypeURL() })
	switch must := !s.began || w.config.NodeAlways; {
	case r.Err != nil:
		w.fail("the request does not parse: %v", r.Err)
	case must != (r.Node() != nil):
		w.fail("NODE-1: a request with the node %v", r.Node())
	case i < 0 || s.url != "" && s.url != r.TypeURL():
		w.fail("a request of type %s", r.TypeURL())
	}
	sub := s.of(w.types[i])
	first := !sub.begun
	if w.working[s.ref] != nil && w.working[s.ref].sub == sub {
		w.fail("ACK-9: a request between a response and its answer: %v", r)
	}
	s.began, sub.begun, s.doomed = true, true, s.doomed || sub.typ == w.hated
	if w.server.Delta {
		w.requestDelta(s, sub, r, first)
	} else {
		w.requestSotW(s, sub, r, first)
	}
}

// add has a server owe an answer for what is subscribed anew.
func (sub *simType) add(now time.Time, name string) {
	sub.due, sub.covered = true, append(sub.covered, name)
	for member := range sub.known {
		if encloses(name, member) {
			sub.known[member] = -1 // it is sent again, or said to be gone
		}
	}
	delete(sub.known, name)
	for _, times := range []map[string]time.Time{sub.since, sub.waited} {
		if _, again := times[name]; !again {
			times[name] = now
		}
	}
}

// subscribes says whether a name is subscribed in any way.
func (sub *simType) subscribes(name string) bool {
	for subscribed := range sub.since {
		if subscribed == name || encloses(subscribed, name) {
			return true
		}
	}
	return false
}

func (w *world) requestSotW(s *simStream, sub *simType, r *testutil.Request, first bool) {
	if r.Nonce() != sub.newest {
		w.fail("ACK-8: nonce %q, the newest is %q", r.Nonce(), sub.newest)
	}
	names := r.Names()
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		w.fail("SOTW-3: names are not a sorted set: %q", names)
	}
	if len(sub.owed) == 0 && r.ErrorDetail() != nil {
		w.fail("ACK-5: an error that answers nothing: %v", r.ErrorDetail())
	}
	for i, resp := range sub.owed { // S-17: the newest is answered for all
		newest := i == len(sub.owed)-1
		if newest && r.ErrorDetail() == nil || !newest && r.Version() == resp.version {
			sub.accepted = resp.version
		}
		if newest {
			w.verdict(sub, resp, r.ErrorDetail())
		} else {
			sub.again()
		}
	}
	sub.owed = nil
	own := fmt.Sprintf("s%d.", s.server.index)
	if r.Version() != sub.accepted && !(w.server.ResumeVersion && sub.accepted == "" && strings.HasPrefix(r.Version(), own)) {
		w.fail("SOTW-2, ACK-7: version %q to server %d, accepted on the stream is %q", r.Version(), s.server.index, sub.accepted)
	}
	if sub.legacy = len(names) == 0 && (first || sub.legacy || w.server.Polled); sub.legacy {
		names = []string{star}
	}
	before := sub.since
	sub.since = map[string]time.Time{}
	for _, name := range names {
		if since, ok := before[name]; ok {
			sub.since[name] = since
		} else {
			sub.add(w.now, name)
		}
	}
	maps.DeleteFunc(sub.waited, func(name string, _ time.Time) bool { return !slices.Contains(names, name) })
	if sub.newest == "" { // the server compares versions, as long as it has sent none
		w.resume(s, sub, r.Version())
	}
}

// resume has a server owe nothing to a client that has its version, in state of the world.
func (w *world) resume(s *simStream, sub *simType, version string) {
	st := s.server.stores[sub.typ.URL]
	clear(sub.known)
	if sub.due = w.server.FullState || w.server.Polled || version != s.server.version(len(*st)); sub.due {
		return
	}
	for _, name := range w.names {
		if r := st.has(name); sub.subscribes(name) && r.kind != isFailed { // errors are stated anew
			sub.known[name] = r.revision
		}
	}
}

func (w *world) requestDelta(s *simStream, sub *simType, r *testutil.Request, first bool) {
	st, versions := s.server.stores[sub.typ.URL], r.Delta.GetInitialResourceVersions()
	add, remove := r.Names(), r.Unsubscribed()
	switch {
	case r.Nonce() == "":
		if r.ErrorDetail() != nil || !first && len(add)+len(remove) == 0 {
			w.fail("DELTA-5: a request that says nothing")
		}
	case len(sub.owed) == 0 || sub.owed[0].nonce != r.Nonce():
		w.fail("ACK-1: an answer to %q, which is not the next that is owed", r.Nonce())
	default:
		w.verdict(sub, sub.owed[0], r.ErrorDetail())
		sub.owed = sub.owed[1:]
	}
	if !first && len(versions) > 0 {
		w.fail("DELTA-2: initial versions in a later request")
	}
	if first && len(add) == 0 {
		sub.legacy, add = true, []string{star}
	}
	for _, name := range add {
		if slices.Contains(remove, name) {
			w.fail("%q is subscribed and unsubscribed by one request", name)
		}
		sub.add(w.now, name)
	}
	for _, name := range remove {
		if _, ok := sub.since[name]; !ok && st.gave(name, "") == 0 { // what was sent unasked may be
			w.untrue("%q is unsubscribed, which was not subscribed", name)
		}
		delete(sub.since, name)
		delete(sub.waited, name)
		if delete(sub.known, name); sub.subscribes(name) {
			sub.known[name] = -1 // WILD-7: it may be the wildcard's, and the server has to say so
		}
	}
	for name, version := range versions {
		if st.gave(name, version) == 0 {
			w.untrue("ACK-10: initial version %q of %s, which server %d never gave", version, name, s.server.index)
		}
		if sub.known[name] = -1; st.has(name).version == version {
			sub.known[name] = st.has(name).revision
		}
	}
}

// verdict checks the answer to a response, and has the server send again what was refused though each resource of it is good.
func (w *world) verdict(sub *simType, r *simResponse, detail *status.Status) {
	refused := detail != nil && strings.Contains(detail.Message, errJudged.Error())
	if refused || detail != nil && r.twice {
		sub.again()
	}
	switch {
	case detail != nil && len(r.invalid) == 0 && !refused:
		w.untrue("ACK-2: a response that is good is refused: %v", detail)
	case detail == nil && w.first(w.stream(r.ref.Stream).server) && slices.ContainsFunc(r.invalid, func(name string) bool {
		return sub.subscribes(name) && slices.ContainsFunc(w.watches, func(sw *simWatch) bool { return sw.Type == sub.typ && sw.covers(name) })
	}):
		w.untrue("ACK-4: a response with invalid %q is acknowledged", r.invalid)
	}
}

// again has a server say again what it said, since some of it was not acknowledged.
func (sub *simType) again() {
	sub.due = true
	for name := range sub.known {
		sub.known[name] = -1
	}
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
			if sw.Type == t && w.servers[w.sources[sw.Source][0]] == s.server && (s.url == "" || s.url == t.URL) {
				want[sw.Name] = true
			}
		}
		sub := s.of(t)
		if want[star] && sub.legacy && !w.server.Delta {
			want = map[string]bool{star: true} // the others are among all
		}
		got := map[string]bool{}
		for name := range sub.since {
			got[name] = true
		}
		if !maps.Equal(got, want) || len(sub.owed) > 0 {
			w.fail("stream %v: %s: the server knows of %v, wanted are %v; %d answers are owed", s.ref, t.URL, got, want, len(sub.owed))
		}
	}
}
