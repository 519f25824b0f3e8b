package machine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

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
		sub = &simType{typ: w.types[i], file: w.server.FullState, names: map[string]time.Time{}, known: map[string]int{}, sent: map[string]bool{}, newest: s.unasked[url]}
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
		sub.wild, sub.wasWild = now, true
		return
	}
	if _, again := sub.names[name]; !again {
		sub.names[name] = now
	}
	delete(sub.known, name)
}

func (w *world) requestSotW(s *simStream, r *discoveryv3.DiscoveryRequest) {
	sub, _ := w.subscribedTo(s, r.TypeUrl, r.Node)
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
	sub.named = sub.named && !w.server.Polled || len(r.ResourceNames) > 0
	before, wild := sub.names, sub.wild
	sub.names, sub.wild, sub.legacy = map[string]time.Time{}, time.Time{}, !sub.named
	for _, name := range r.ResourceNames {
		if since, ok := before[name]; ok {
			sub.names[name] = since
		} else if name != star || wild.IsZero() {
			sub.add(w.now, name)
			if name != star && !wild.IsZero() {
				sub.names[name] = cmp.Or(sub.beside[name], wild) // it was among all
			}
		} else {
			sub.wild = wild
		}
	}
	if sub.legacy && !wild.IsZero() {
		sub.wild = wild
	} else if sub.legacy {
		sub.beside = before
		sub.add(w.now, star)
	}
	if sub.newest == "" { // it compares versions, as long as it has sent none
		if sub.due = sub.file || w.server.Polled || r.VersionInfo != s.server.version(st.revision); sub.due {
			clear(sub.known)
			return
		}
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
		if _, ok := sub.names[name]; !ok && !sub.sent[name] && !w.evil && (name != star || sub.wild.IsZero()) {
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
		if !st.versions[name][version] && !w.evil {
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
	case w.evil:
	case detail != nil && len(r.invalid) == 0 && !r.faulty && !refused:
		w.fail("ACK-2: a response that is good is refused: %v", detail)
	case detail == nil && r.changes == w.changes && w.first(w.stream(r.ref.Stream).server) && slices.ContainsFunc(r.invalid, func(name string) bool {
		return sub.subscribes(name) && w.watched(sub.typ, name)
	}):
		w.fail("ACK-4: a response with invalid %q is acknowledged", r.invalid)
	}
	if refused || detail != nil && r.faulty {
		sub.again(r)
	}
}

var errJudged = errors.New("the guard refuses it")

// judge has a guard judge a proposal.
func (w *world) judge(i int, mild bool) {
	if i >= len(w.judging) {
		return
	}
	p := w.judging[i]
	w.judging = slices.Delete(w.judging, i, i+1)
	var err error
	if !mild && w.roll(3) == 1 {
		err = errJudged
		if p.resp == nil { // it is what the server does not speak of, which stays
			w.spared[p.TypeURL] = append(w.spared[p.TypeURL], p.Removed...)
		}
	}
	w.say("judged %s v%s: %v", p.TypeURL, p.Version, err)
	w.push(Guarded{p, err})
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
