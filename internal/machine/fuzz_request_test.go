package machine

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/testutil"
)

// simType is what a server knows of a type on one incarnation of a stream.
type simType struct {
	typ        *Type
	begun      bool            // there was a request
	subscribed map[string]bool // names, `*` too
	legacy     bool            // everything is, by a request without names
	known      map[string]int  // revisions that the client has, by name; -1 if it has to be told what there is
	due        bool            // a request asks for an answer
	newest     string          // nonce, which each request repeats; SotW
	accepted   string          // version; SotW
	owed       []*simResponse  // that are not answered
}

// of is what the server knows of a type.
func (s *simStream) of(t *Type) *simType {
	if s.types[t.URL] == nil {
		s.types[t.URL] = &simType{typ: t, subscribed: map[string]bool{}, known: map[string]int{}}
	}
	return s.types[t.URL]
}

// request has a server take a request, which has to be one that a client may send.
func (w *world) request(send Send) {
	s := w.streams[send.Stream]
	w.must(s.ref == send.Ref && s.state == up && !s.writing, "a request to stream %v, which is %+v", send.Ref, s)
	s.writing = true
	w.owe(func() {
		if s.ref == send.Ref && s.state == up {
			s.writing = false
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
	w.must(r.Err == nil, "the request does not parse: %v", r.Err)
	w.must((r.Node() != nil) == (!s.began || w.server.NodeAlways), "NODE-1: a request with the node %v", r.Node())
	w.must(i >= 0 && (s.url == "" || s.url == r.TypeURL()), "a request of type %s", r.TypeURL())
	sub := s.of(w.types[i])
	w.must(s.working == nil || s.working.ref != s.ref || s.working.sub != sub, "ACK-9: a request between a response and its answer: %v", r)
	w.answered(s, sub, r)
	w.subscribe(s, sub, r)
	s.began, sub.begun = true, true
}

// answered has a server take what a request says of its responses.
func (w *world) answered(s *simStream, sub *simType, r *testutil.Request) {
	nonce, detail, next := r.Nonce(), r.ErrorDetail(), 0
	if !w.server.Delta {
		next = max(0, len(sub.owed)-1) // S-17: the newest is answered for all
	}
	if len(sub.owed) > 0 && nonce == sub.owed[next].nonce {
		for _, older := range sub.owed[:next] {
			if sub.again(); older.version == r.Version() {
				sub.accepted = older.version
			}
		}
		w.verdict(s, sub, sub.owed[next], detail)
		sub.owed = sub.owed[next+1:]
	} else {
		w.must(nonce == sub.newest, "ACK-1, ACK-8: nonce %q is not the next that is owed, nor the newest, %q", nonce, sub.newest)
		w.must(detail == nil, "ACK-5: an error that answers nothing: %v", detail)
		w.must(!w.server.Delta || !sub.begun || len(r.Names())+len(r.Unsubscribed()) > 0, "DELTA-5: a request that says nothing")
	}
	resumes := w.server.ResumeVersion && sub.accepted == "" && strings.HasPrefix(r.Version(), fmt.Sprintf("s%d.", s.server.index))
	w.must(r.Version() == sub.accepted || resumes, "SOTW-2, ACK-7: version %q to server %d, accepted on the stream is %q", r.Version(), s.server.index, sub.accepted)
}

// verdict checks the answer to a response, and has the server send again what was refused though each resource of it is good.
func (w *world) verdict(s *simStream, sub *simType, r *simResponse, detail *status.Status) {
	counts := !slices.ContainsFunc(w.sources[:], func(src Source) bool { return slices.Index(src.Servers, s.server.index) > 0 })
	watched := func(name string) bool {
		return slices.ContainsFunc(w.watches, func(sw *simWatch) bool { return sw.Type == sub.typ && sub.subscribed[sw.Name] && sw.covers(name) })
	}
	if detail == nil {
		sub.accepted = r.version
	}
	w.honest(detail != nil || !counts || !slices.ContainsFunc(r.invalid, watched), "ACK-4: a response with invalid %q is acknowledged", r.invalid)
	w.honest(detail != nil || !r.refused, "CFG-5: a response that a guard refuses is acknowledged")
	w.honest(detail == nil || r.refused || len(r.invalid) > 0, "ACK-2: a response that is good is refused: %v", detail)
	if r.refused || detail != nil && r.twice {
		sub.again()
	}
}

// again has a server say again what it said, since some of it was not acknowledged.
func (sub *simType) again() {
	sub.due = true
	for name := range sub.known {
		sub.known[name] = -1
	}
}

// subscribe has a server take what a request says of names.
func (w *world) subscribe(s *simStream, sub *simType, r *testutil.Request) {
	st, add, remove := s.server.stores[sub.typ.URL], r.Names(), r.Unsubscribed()
	if sub.legacy = len(add) == 0 && (!sub.begun || !w.server.Delta && (sub.legacy || w.server.Polled)); sub.legacy {
		add = []string{star}
	}
	if !w.server.Delta { // it says all
		w.must(slices.IsSorted(add) && len(slices.Compact(slices.Clone(add))) == len(add), "SOTW-3: names are not a sorted set: %q", add)
		remove = slices.DeleteFunc(slices.Collect(maps.Keys(sub.subscribed)), func(name string) bool { return slices.Contains(add, name) })
		add = slices.DeleteFunc(slices.Clone(add), func(name string) bool { return sub.subscribed[name] })
	}
	for _, name := range add {
		sub.due, sub.subscribed[name], sub.known[name] = true, true, -1
		for member := range sub.known {
			if encloses(name, member) {
				sub.known[member] = -1
			}
		}
		since, at := w.now, sub.typ.URL+name
		if encloses(star, name) {
			since = cmp.Or(s.since[sub.typ.URL+star], since) // with everything
		}
		s.since[at] = cmp.Or(s.since[at], since)
	}
	for _, name := range remove {
		_, sent := sub.known[name]
		w.must(!slices.Contains(add, name), "%q is subscribed and unsubscribed by one request", name)
		w.honest(sub.subscribed[name] || sent, "%q is unsubscribed, which was not subscribed", name) // nor sent unasked
		delete(sub.subscribed, name)
		if !w.subscribes(sub, name) {
			delete(s.since, sub.typ.URL+name)
		}
		sub.known[name] = -1 // WILD-7: it may be the wildcard's, and the server has to say so
	}
	versions := r.Delta.GetInitialResourceVersions()
	w.must(!sub.begun || len(versions) == 0, "DELTA-2: initial versions in a later request")
	for name, version := range versions {
		w.honest(st.gave(name, version) > 0, "ACK-10: initial version %q of %s, which server %d never gave", version, name, s.server.index)
		if sub.known[name] = -1; st.has(name).version == version {
			sub.known[name] = st.has(name).revision
		}
	}
	if !w.server.Delta && sub.newest == "" { // the server compares versions, as long as it has sent none, and is silent where its own is equal
		clear(sub.known)
		if sub.due = w.server.AlwaysFull || w.server.Polled || r.Version() != s.server.version(len(st)); !sub.due {
			for _, name := range w.all {
				sub.known[name] = st.tells(name).revision
			}
		}
	}
}

// subscribes says whether a name is subscribed in any way. From a file everything is.
func (w *world) subscribes(sub *simType, name string) bool {
	for subscribed := range sub.subscribed {
		if subscribed == name || encloses(subscribed, name) {
			return true
		}
	}
	return w.server.AlwaysFull
}

// checkSubscribed: at rest a server knows of what is wanted, and of nothing else.
func (w *world) checkSubscribed(s *simStream) {
	for _, t := range w.types {
		want, sub := map[string]bool{}, s.of(t)
		for _, sw := range w.watches {
			if sw.Type == t && w.servers[w.sources[sw.Source].Servers[0]] == s.server && (s.url == "" || s.url == t.URL) {
				want[sw.Name] = true
			}
		}
		if want[star] && sub.legacy && !w.server.Delta {
			want = map[string]bool{star: true} // the others are among all
		}
		w.must(maps.Equal(sub.subscribed, want), "stream %v: %s: the server knows of %v, wanted are %v", s.ref, t.URL, sub.subscribed, want)
		w.must(len(sub.owed) == 0, "stream %v: %s: %d answers are owed", s.ref, t.URL, len(sub.owed))
	}
}
