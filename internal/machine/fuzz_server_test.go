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
	"google.golang.org/protobuf/proto"
)

func (w *world) respond() {
	w.pick(up, func(s *simStream) {
		if s.reading != nil {
			return
		}
		md := w.models[w.next(3)]
		if md == w.hated {
			return
		}
		if pic := s.pics[md.typ.URL]; pic == nil && w.next(8) > 0 {
			return // types that were not asked for are rare
		}
		r := w.random(md)
		r.ref, r.at, r.wild = s.ref, w.now, md.wild > 0
		s.reading, s.responded = r, true
		frame := r.frame(w, w.policy.delta)
		w.receive(s, r)
		w.push(Received{s.ref, frame})
	})
}

// random makes a response of what is watched, and of more.
func (w *world) random(md *model) *simResponse {
	w.serial++
	r := &simResponse{md: md, params: w.params, aliased: w.aliased, nonce: fmt.Sprint("n", w.serial), version: fmt.Sprint(w.next(4))}
	if w.policy.delta && w.next(16) == 1 {
		r.nonce = ""
	}
	for range w.next(6) {
		name := w.anyName()
		en := simEntry{outer: name, inner: name, value: fmt.Sprint(w.next(4)), noise: byte(w.next(2)), version: fmt.Sprint(w.next(3))}
		if !w.policy.delta && md.typ.NameField != 0 && w.next(3) > 0 {
			en.outer = ""
		}
		if word := md.word(name); word.held && w.next(3) == 1 {
			en.value = strings.TrimSuffix(strings.TrimPrefix(word.value, "@"), doNotCache) // again, maybe as something else
		}
		en.locator = structured(en.outer) && w.next(3) == 1
		switch w.next(14) {
		case 12, 13:
			en.value = fmt.Sprint("flawed", strings.TrimPrefix(en.value, "flawed"))
		case 1, 2:
			en.kind, en.value = entryBad, fmt.Sprint("bad", en.value)
		case 3:
			en.kind = entryWrongType
		case 4, 5:
			en.kind = entryBodiless
		case 6:
			en.outer, en.locator = "", false
		}
		if w.ttls {
			w.mortal(r, &en)
		}
		if w.aliased {
			w.alias(&en)
		}
		r.entries = append(r.entries, en)
	}
	if !w.bulk && w.next(64) == 63 {
		w.bulk = true
		for i := range chunk + 10 {
			name := fmt.Sprint("z", i)
			r.entries = append(r.entries, simEntry{outer: name, inner: name, value: "1", version: "1"})
		}
	}
	if w.policy.delta {
		for range max(0, w.next(6)-2) {
			r.removed = append(r.removed, w.anyName())
		}
	}
	for range max(0, w.next(8)-5) {
		name := ""
		if w.next(9) > 0 {
			name = w.anyName()
		}
		r.errors = append(r.errors, simError{name, []int32{0, 5, 7, 14}[w.next(4)]})
	}
	if w.stern && md.typ.Guarded {
		w.curtail(r)
	}
	return r
}

// receive is what a response means to the model when the machine takes it.
func (w *world) receive(s *simStream, r *simResponse) {
	w.say("recv %v %s v%s %s entries %v removed %v errors %v", s.ref, r.md.typ.URL, r.version, r.nonce, r.entries[:min(len(r.entries), 8)], r.removed, r.errors)
	w.sent = append(w.sent, r)
	pic, l := s.pics[r.md.typ.URL], w.line(r.ref.Stream, r.md)
	l.say(r)
	if pic != nil {
		r.listed, pic.listed = pic.listed, nil
	}
	switch {
	case pic == nil:
		r.ignored = true
		s.ignored[r.md.typ.URL] = r.nonce
	case l.busy != nil:
		r.blurred = true // the machine takes it when the earlier one is done
		pic.newest = r.nonce
		r.mayCall()
	default:
		l.busy = r
		pic.newest = r.nonce
		r.applies, r.epochs, r.watched, r.beside = map[string]int{}, map[string]int{}, map[string]bool{}, map[string]bool{}
		r.spread(w)
		r.take(w, sourceOld)
		r.take(w, sourceA)
	}
}

// request is what a server makes of a request, and what it may be.
func (w *world) request(send Send) {
	s := w.stream(send.Stream)
	if s.ref != send.Ref || s.state != up || s.writing {
		w.fail("a request to stream %v, which is %+v", send.Ref, s)
	}
	s.writing = true
	if msg := bytes.Join(send.Message, nil); w.policy.delta {
		w.requestDelta(s, msg)
	} else {
		w.requestSotW(s, msg)
	}
	s.began = true
}

// pictureOf finds what a request adds to, and checks what all requests have in common.
func (w *world) pictureOf(s *simStream, url string, node *corev3.Node) (pic *picture, first bool) {
	w.checkNode(s, node)
	md := w.model(url)
	s.doomed = s.doomed || md == w.hated
	if w.perType && w.m.streams[s.ref.Stream].url != url {
		w.fail("type %s on the stream of another", url)
	}
	if busy := w.line(s.ref.Stream, md).busy; busy != nil && busy.ref == s.ref && !busy.blurred {
		w.fail("a request of %s between a response and its answer", url)
	}
	pic = s.pics[url]
	if pic == nil {
		pic = &picture{names: map[string]bool{}, newest: s.ignored[url], acks: map[string]int{}}
		s.pics[url] = pic
		first = true
	}
	return pic, first
}

func (w *world) requestSotW(s *simStream, msg []byte) {
	var r discoveryv3.DiscoveryRequest
	if err := proto.Unmarshal(msg, &r); err != nil {
		w.fail("the request does not parse: %v", err)
	}
	r.ResourceNames = w.named(r.ResourceNames, r.ResourceLocators)
	w.say("-> %v %s %q version %q nonce %q error %v", s.ref, r.TypeUrl, r.ResourceNames, r.VersionInfo, r.ResponseNonce, r.ErrorDetail)
	pic, first := w.pictureOf(s, r.TypeUrl, r.Node)
	md := w.model(r.TypeUrl)
	if first && !w.resumes {
		w.line(s.ref.Stream, md).accepted = ""
	}
	if r.ResponseNonce != pic.newest {
		w.fail("nonce %q, the newest is %q", r.ResponseNonce, pic.newest)
	}
	if !slices.IsSorted(r.ResourceNames) || len(slices.Compact(slices.Clone(r.ResourceNames))) != len(r.ResourceNames) {
		w.fail("names are not a sorted set: %q", r.ResourceNames)
	}
	legacy := !pic.named && len(r.ResourceNames) == 0
	if first && legacy {
		pic.legacy = true
		w.checkLegacy(s, md)
	}
	w.checkStar(s, md, r.ResourceNames)
	w.answerSotW(s, pic, md, &r)
	pic.named = pic.named || len(r.ResourceNames) > 0
	was, before := pic.wild, pic.names
	pic.wild, pic.names, pic.legacy = legacy, map[string]bool{}, legacy
	for _, name := range r.ResourceNames {
		switch {
		case name != star:
			if pic.names[name] = true; !before[name] {
				md.word(name).lapsed = false // the server owes it
			}
		case !was:
			md.owed()
		}
		pic.wild = pic.wild || name == star
	}
	if was && !pic.wild {
		md.left()
	}
}

func (w *world) answerSotW(s *simStream, pic *picture, md *model, r *discoveryv3.DiscoveryRequest) {
	l := w.line(s.ref.Stream, md)
	if len(pic.unheard) == 0 {
		if r.ErrorDetail != nil || pic.answered && l.accepted != "?" && r.VersionInfo != l.accepted {
			w.fail("a change of interest with version %q, accepted %q, error %v", r.VersionInfo, l.accepted, r.ErrorDetail)
		}
		switch {
		case pic.answered:
		case r.VersionInfo != "":
			s.resume(w.now)
			w.carried(s, md, r.VersionInfo)
		default:
			md.owed()
		}
		return
	}
	a, v := pic.unheard[0], pic.verdicts[0]
	pic.unheard, pic.verdicts, pic.answered = nil, nil, true
	w.verdict(v, a, r.ErrorDetail)
	want := l.accepted
	if r.ErrorDetail == nil {
		want = a.version
		l.accepted = want
	}
	if want != "?" && r.VersionInfo != want {
		w.fail("answer to %q has version %q, want %q", a.nonce, r.VersionInfo, want)
	}
	if l.accepted == "?" {
		l.accepted = r.VersionInfo
	}
}

// carried: a version on a new stream is the last accepted one, and nothing is waited for.
func (w *world) carried(s *simStream, md *model, version string) {
	if l := w.line(s.ref.Stream, md); l.accepted != "?" && version != l.accepted {
		w.fail("a request before any response has version %q, accepted was %q", version, l.accepted)
	}
	for name, word := range md.words {
		if word.lapsed && !word.unsure && md.covered(name) && w.active(s, md.typ.URL, name) && !w.murky(md, name) {
			w.fail("a request before any response carries version %q although %s has lapsed: %v", version, name, word)
		}
	}
	names, _, _ := w.wantedOn(s.ref.Stream, md)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if isGlobURL(name) || w.murky(md, name) {
			continue
		}
		if word := md.word(name); !word.held && !word.absent && !word.unsure {
			w.fail("a request before any response carries version %q although %s is waited for: %v", version, name, word)
		}
	}
}

func (w *world) verdict(v verdict, a answer, detail *status.Status) {
	if v == good && detail != nil || v == bad && detail == nil {
		w.fail("the answer to %q has the error %v; the verdict is %d", a.nonce, detail, v)
	}
	if a.detail != nil && detail.Message != a.detail.Message {
		w.fail("the answer to %q has the error %v; it was refused by %q", a.nonce, detail, a.detail.Message)
	}
}

func (w *world) requestDelta(s *simStream, msg []byte) {
	var r discoveryv3.DeltaDiscoveryRequest
	if err := proto.Unmarshal(msg, &r); err != nil {
		w.fail("the request does not parse: %v", err)
	}
	r.ResourceNamesSubscribe = w.named(r.ResourceNamesSubscribe, r.ResourceLocatorsSubscribe)
	r.ResourceNamesUnsubscribe = w.named(r.ResourceNamesUnsubscribe, r.ResourceLocatorsUnsubscribe)
	w.say("-> %v %s +%q -%q %v nonce %q error %v", s.ref, r.TypeUrl, r.ResourceNamesSubscribe, r.ResourceNamesUnsubscribe, r.InitialResourceVersions, r.ResponseNonce, r.ErrorDetail)
	pic, first := w.pictureOf(s, r.TypeUrl, r.Node)
	md := w.model(r.TypeUrl)
	add, sub := r.ResourceNamesSubscribe, r.ResourceNamesUnsubscribe
	switch {
	case r.ResponseNonce == "":
		if r.ErrorDetail != nil || !first && len(add)+len(sub) == 0 && r.Node == nil {
			w.fail("a request that says nothing: %v", &r)
		}
	case len(pic.unheard) == 0 || pic.unheard[0].nonce != r.ResponseNonce:
		w.fail("answer to %q, owed are %+v", r.ResponseNonce, pic.unheard)
	default:
		w.verdict(pic.verdicts[0], pic.unheard[0], r.ErrorDetail)
		pic.unheard, pic.verdicts = pic.unheard[1:], pic.verdicts[1:]
	}
	if first {
		if len(r.InitialResourceVersions) > 0 {
			s.resume(w.now)
		}
		if len(add) == 0 {
			pic.wild, pic.legacy = true, true
			w.checkLegacy(s, md)
		}
		pic.listed = r.InitialResourceVersions
		w.initial(s, md, r.InitialResourceVersions)
	} else if len(r.InitialResourceVersions) > 0 {
		w.fail("initial versions in a later request")
	}
	w.checkStar(s, md, add)
	was := pic.wild
	w.subscribe(pic, add, sub)
	if was && !pic.wild {
		md.left()
	}
	for name := range md.words { // the server owes a word on whether it is the wildcard's
		if pic.wild && structured(name) && (slices.Contains(sub, name) || slices.Contains(sub, globOver(name))) {
			md.doubt(name)
		}
	}
}

func (s *simStream) resume(now time.Time) {
	if s.resumed.IsZero() {
		s.resumed = now
	}
}

// silent says whether the stream may be well after so much silence: how long its clock stood
// still is the machine's to know.
func (s *simStream) silent(now time.Time, d time.Duration) bool {
	return !s.resumed.IsZero() && now.Sub(s.resumed) >= d
}

func (w *world) subscribe(pic *picture, add, sub []string) {
	for _, name := range add {
		if slices.Contains(sub, name) {
			w.fail("%q is subscribed and unsubscribed by one request", name)
		}
		pic.wild = pic.wild || name == star
		pic.names[name] = true
	}
	for _, name := range sub {
		if name == star && !pic.wild || name != star && !pic.names[name] {
			w.fail("%q is unsubscribed, which was not subscribed", name)
		}
		pic.wild = pic.wild && name != star
		delete(pic.names, name)
	}
	delete(pic.names, star)
}

// initial: the first request of a stream tells of everything that is held, and no more.
func (w *world) initial(s *simStream, md *model, versions map[string]string) {
	l := w.line(s.ref.Stream, md)
	var busy map[string]int // may be in by half
	if l.busy != nil {
		busy = l.busy.mentions()
	}
	for name, version := range versions {
		if pic := s.pics[md.typ.URL]; !w.many && !w.aliased && pic.legacy && (md.globs[globOver(name)] > 0 || md.live[name] > 0) {
			w.fail("initial version %q of %s before it is asked for", version, name)
		}
		if !l.said[name][version] || !w.servesAs(s, md, name) && !w.murky(md, name) {
			w.fail("initial version %q of %s, which this server never gave, or does not serve", version, name)
		}
		if busy[name] == 0 && !w.murky(md, name) && !md.tells(name, version) {
			w.fail("initial version %q of %s: %v", version, name, md.word(name))
		}
	}
	for name, word := range md.words {
		if w.withheld(s, md, cmp.Or(word.under, name)) {
			continue
		}
		if _, ok := versions[cmp.Or(word.under, name)]; word.held && !ok && !word.unsure && !word.vague && !word.dim && !w.murky(md, name) && busy[name] == 0 && md.covered(name) && w.active(s, md.typ.URL, name) {
			w.fail("no initial version of %s: %v", name, word)
		}
	}
}
