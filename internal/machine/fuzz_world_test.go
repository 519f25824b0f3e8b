package machine

import (
	"errors"
	"slices"
)

func (w *world) stream(i int) *simStream {
	if w.streams[i] == nil {
		w.streams[i] = &simStream{ref: Ref{Stream: i}}
	}
	return w.streams[i]
}

// pick does something to a stream in the given state; idle stands for any.
func (w *world) pick(state streamState, do func(*simStream)) {
	n := w.next(4)
	all := len(w.m.streams)
	for i := range all {
		s := w.stream((n + i) % all)
		if s.state == state || state == idle {
			do(s)
			return
		}
	}
}

func (w *world) push(ev Event) { w.queue = append(w.queue, ev) }

func (w *world) start() {
	md := w.models[w.next(3)]
	kinds := 12
	if w.globs {
		kinds += len(structuredNames) + len(globURLs)
	}
	n := w.next(kinds)
	watch := &Watch{Type: md.typ, Name: string(rune('a' + n))}
	switch {
	case n >= 12+len(structuredNames):
		watch.Name, watch.Wildcard = globURLs[n-12-len(structuredNames)], true
	case n >= 12:
		watch.Name = structuredNames[n-12]
	case n >= 8:
		watch.Name, watch.Wildcard, watch.Explicit = star, true, n >= 10
	}
	watch.Source = int32(sourceOf(watch.Name))
	if structured(watch.Name) {
		watch.Authority = "a"
	}
	if watch.Name == star && w.clear {
		return
	}
	if n == 8 && md.wild > 0 || watch.Name == star && n%2 == 0 && md.typ.NameField == 0 {
		return // fewer wildcards
	}
	sw := &simWatch{Watch: watch, members: map[string]*told{}}
	watch.Owner = sw
	w.watches = append(w.watches, sw)
	w.lapseUntold(md)
	md.start(watch)
	w.say("start %s explicit=%v", sw.label(), watch.Explicit)
	w.started = append(w.started, watch)
	w.push(Start{watch})
}

func (w *world) stop(i int) {
	sw := w.watches[i]
	w.watches = slices.Delete(w.watches, i, i+1)
	w.model(sw.Type.URL).stop(sw.Watch, w.asked(sw.Type.URL))
	w.stopped = append(w.stopped, sw.Watch)
	w.say("stop %s", sw.label())
	w.push(Stop{sw.Watch})
	if w.next(4) == 0 {
		w.push(Stop{sw.Watch}) // twice is nothing
	}
}

func (w *world) up(s *simStream) {
	if s.state != opening {
		return
	}
	*s = simStream{ref: s.ref, state: up, since: w.now, pics: map[string]*picture{}, ignored: map[string]string{}}
	w.say("up %v", s.ref)
	w.push(Up{s.ref, []byte{0x0a, 1, 'n'}})
}

func (w *world) down() {
	w.pick(idle, w.end)
}

// end ends a stream, or the attempt to have one.
func (w *world) end(s *simStream) {
	kind := FaultConnection
	switch s.state {
	case idle, waiting:
		return
	case up:
		if w.next(4) > 0 { // or a poll found no answer
			kind = FaultStream
		}
	}
	s.state, s.doomed, s.responded = idle, false, s.responded && kind == FaultStream
	w.trouble[s.ref.Stream] = !s.responded && !(s.calm && kind == FaultStream)
	w.leftWith(s)
	w.say("down %v", s.ref)
	w.handled(s)
	w.push(Down{Ref: s.ref, Kind: kind, Err: errors.New([]string{"refused", "lost"}[w.next(2)])})
}

func (w *world) retry(s *simStream) {
	if s.state == waiting {
		s.state = idle // until Open
		w.say("retry %v", s.ref)
		w.push(Retry{s.ref})
	}
}

func (w *world) written(s *simStream) {
	if s.state == up && s.writing {
		s.writing = false
		w.say("written %v", s.ref)
		w.push(Written{s.ref})
	}
}

func (w *world) deliver(s *simStream) {
	if s.state == up {
		w.handled(s)
	}
}

func (w *world) decode(i int) {
	if i >= len(w.tasks) {
		return
	}
	t := w.tasks[i]
	w.tasks = slices.Delete(w.tasks, i, i+1)
	results := make([]Result, len(t.Items))
	for i, it := range t.Items {
		v := decodeValue(it.Raw)
		results[i] = Result{Value: meaning(v, it.Locator)}
		if flawed(v) {
			results[i].Flaws = []error{errors.New(v)}
		}
		switch {
		case len(v) > 2 && v[:3] == "bad":
			results[i] = Result{Err: errors.New(v)}
		case it.Old != nil && decodeValue(it.Old) == v && it.Attributes.Same(it.OldAttributes):
			results[i].Same = true
		}
	}
	w.say("decoded %d items", len(t.Items))
	w.push(Decoded{t, results})
}

// stale tells of an incarnation that is over.
func (w *world) stale() {
	w.pick(idle, func(s *simStream) {
		if s.ref.Gen == 0 {
			return
		}
		old := Ref{s.ref.Stream, s.ref.Gen - 1 - w.next(2)}
		r := &simResponse{md: w.models[w.next(3)], nonce: "stale", removed: []string{"a", "b", "c"}}
		w.push([]Event{
			Up{Ref: old}, Down{Ref: old, Kind: FaultStream, Err: errors.New("old")}, Written{old}, Delivered{old}, Retry{old},
			Received{old, r.frame(w, w.policy.delta)}, Tick{},
		}[w.next(7)])
	})
}

// flush steps the machine with what has been collected.
func (w *world) flush() {
	if len(w.queue) == 0 {
		return
	}
	events := w.queue
	w.queue = nil
	before, types := w.actives(), w.types()
	at, ok := w.m.Deadline()
	alone := len(events) == 1 && (!ok || at.After(w.now))
	judgement := w.judgement(events, alone)
	fx := w.m.Step(w.now, events...)
	judgement.check(w, &fx)
	w.checkAgenda()
	w.calmed()
	w.moved(before, events)
	w.remade(types)
	if at, ok = w.m.Deadline(); ok && at.Before(w.now) {
		w.fail("the deadline %v is in the past of %v", at, w.now)
	}
	for _, ref := range fx.Consumed {
		w.finish(ref)
	}
	troubled := map[int]bool{}
	for _, n := range fx.Notify {
		w.tell(n)
		if i := n.Stream.Stream; n.Trouble && !troubled[i] {
			troubled[i] = true
			w.push(Heard{i})
		}
	}
	for _, stopped := range w.stopped {
		w.dead[stopped] = true
	}
	w.started, w.stopped = nil, nil
	w.tasks = append(w.tasks, fx.Decode...)
	w.propose(&fx, alone)
	for _, ref := range fx.Close {
		w.close(ref)
	}
	for _, wait := range fx.Wait {
		s := w.stream(wait.Stream)
		laid := wait.Well && (w.suspects(types, wait.Stream) || s.silent(w.now, hush) && w.now.Sub(s.since) >= calmLife) // the end, to a type or to silence
		if wait.Abandoned && wait.Gen == s.ref.Gen+1 {
			s.ref = wait.Ref // it was closed
		}
		if s.ref != wait.Ref || s.state != idle || wait.Well != s.responded && !laid && !(wait.Abandoned && len(events) > 1) || wait.Abandoned && s.responded && len(events) == 1 {
			w.fail("wait of %+v on stream %+v", wait, s)
		}
		if (laid || s.calm) && !s.responded { // as it was, or as an answer was owed or not
			w.trouble[wait.Stream] = w.m.streams[wait.Stream].fault != nil
		}
		s.state = waiting
	}
	w.lost()
	for _, o := range fx.Open {
		w.open(o)
	}
	for _, send := range fx.Send {
		w.request(send)
	}
}

// calmed notes which streams the machine takes for well without a response.
func (w *world) calmed() {
	for _, s := range w.streams {
		if s.state == up && !s.calm && s.silent(w.now, hush) && w.m.streams[s.ref.Stream].calm {
			s.calm = true
			delete(w.trouble, s.ref.Stream)
		}
	}
}

// suspects says whether the machine has just laid the end of a stream to a type, of those that
// there were before; it may be forgotten by now.
func (w *world) suspects(before map[*typeState]bool, stream int) bool {
	for ts := range before {
		if ts.stream.index == stream && ts.suspicion.fault != nil && ts.until.Equal(w.now.Add(ts.hold)) {
			return true
		}
	}
	return false
}

// heldBack says whether a type waits to be asked for, or answers to what is repeated wait.
func (w *world) heldBack() bool {
	return slices.ContainsFunc(w.m.streams, func(s *stream) bool {
		return s.state == up && slices.ContainsFunc(s.order, func(ts *typeState) bool { return ts.wanted() && !ts.asked || len(ts.owed) > 0 })
	})
}

func (w *world) close(ref Ref) {
	s := w.stream(ref.Stream)
	if s.ref != ref {
		w.fail("close of %v, the stream is %+v", ref, s)
	}
	w.say("close %v", ref)
	if w.many { // its end may have come too late to be heard of
		w.trouble[ref.Stream] = w.m.streams[ref.Stream].fault != nil
		w.tear(ref)
	} else if s.responded {
		delete(w.trouble, ref.Stream)
	}
	w.leftWith(s) // it may have had a wildcard that was left
	s.state = idle
	w.handled(s)
}

// handled ends the delivery of a stream's last response.
func (w *world) handled(s *simStream) {
	if s.consumed {
		s.reading, s.consumed = nil, false
		w.say("delivered %v", s.ref)
		w.push(Delivered{s.ref})
	}
}

// watching says whether anything on a stream is wanted.
func (w *world) watching(s *simStream) bool {
	return slices.ContainsFunc(w.watches, func(sw *simWatch) bool {
		return w.chain(sw.Type.URL, sw.Name).reaches(s.ref.Stream)
	})
}

// lost forgets what the machine may forget with a stream that nobody needs.
func (w *world) lost() {
	for _, s := range w.m.streams {
		if len(s.types) == 0 {
			if s.state == idle {
				delete(w.trouble, s.index)
			}
			w.forget(s)
		}
	}
}

func (w *world) forget(s *stream) {
	for _, md := range w.models {
		if s.url != "" && s.url != md.typ.URL {
			continue
		}
		l := w.line(s.index, md)
		if l.busy != nil {
			l.busy.gone = true
		}
		l.busy, l.accepted = nil, ""
		for name := range md.words {
			switch ch := w.chain(md.typ.URL, name); {
			case !w.many:
				delete(md.words, name)
			case ch.stream() == s:
				md.doubt(name)
			}
		}
		for _, r := range w.sent {
			if r.md == md && r.ref.Stream == s.index {
				r.gone = true
			}
		}
	}
}

func (w *world) open(o Open) {
	w.say("open %v", o.Ref)
	s := w.stream(o.Stream)
	if s.state != idle || o.Gen <= s.ref.Gen {
		w.fail("open %v while the stream is %+v", o.Ref, s)
	}
	if o.Gen > s.ref.Gen+1 {
		delete(w.trouble, o.Stream)
		w.forget(w.m.streams[o.Stream]) // it was given up in between
	}
	*s = simStream{ref: o.Ref, state: opening}
}

// finish is a response's end.
func (w *world) finish(ref Ref) {
	i := slices.IndexFunc(w.sent, func(r *simResponse) bool { return r.ref == ref })
	if i < 0 {
		w.fail("consumed %v, of which nothing is expected", ref)
	}
	r := w.sent[i]
	w.sent = slices.Delete(w.sent, i, i+1)
	w.say("consumed %v %s", ref, r.nonce)
	s := w.stream(ref.Stream)
	live := s.ref == ref && s.state == up
	if live {
		s.consumed = true
		delete(w.trouble, ref.Stream)
	} else {
		w.push(Delivered{ref})
	}
	if r.ignored {
		return
	}
	r.bad = unknown
	if !r.blurred && !r.gone && !r.torn {
		r.bad = r.judge(w.policy.delta)
	}
	if r.refusal != nil || r.void {
		r.bad = bad
	}
	w.expect(s, r, live)
	r.apply(w.policy)
	if live {
		r.confirm()
	}
	if r.gone {
		return
	}
	l := w.line(ref.Stream, r.md)
	l.busy = nil
	for _, later := range w.sent {
		if s := w.stream(later.ref.Stream); later.ref.Stream == ref.Stream && later.md == r.md && later.blurred && !later.ignored && later.ref == s.ref && s.state == up {
			l.busy = later
		}
	}
}

// expect notes what the answer to a response has to be.
func (w *world) expect(s *simStream, r *simResponse, live bool) {
	if live && (r.nonce != "" || !w.policy.delta) {
		pic := s.pics[r.md.typ.URL]
		if pic == nil {
			if !r.blurred {
				w.fail("a response of a type that was not asked for is no longer ignored")
			}
			return
		}
		if !w.policy.delta {
			pic.unheard, pic.verdicts = nil, nil
		}
		pic.unheard = append(pic.unheard, answer{version: r.version, nonce: r.nonce, detail: r.detail()})
		pic.verdicts = append(pic.verdicts, r.bad)
	}
	switch l := w.line(r.ref.Stream, r.md); {
	case r.gone, !live && !w.resumes:
	case r.bad == unknown, r.bad == good && !live:
		l.accepted = "?"
	case r.bad == good:
		l.accepted = r.version
	}
}

func (w *world) tell(n Notice) {
	if n.Kind >= NoticeEnd {
		return
	}
	heard := map[*Watch]bool{}
	for _, watch := range append(slices.Clone(n.To), n.All...) {
		if heard[watch] {
			w.fail("notice %+v is told twice to %s", n, watch.Name)
		}
		heard[watch] = true
		sw := watch.Owner.(*simWatch)
		if w.dead[watch] {
			w.fail("notice %+v is told to a watch that was stopped: %s", n, sw.label())
		}
		if watch.Type.URL != n.TypeURL || watch.Name != n.Name && watch.Name != star && (!watch.Wildcard || globOver(n.Name) != watch.Name) {
			w.fail("notice %+v is told to %s", n, sw.label())
		}
		if !slices.Contains(w.watches, sw) {
			continue // stopped in this step
		}
		w.say("  tell %s: kind %d %s %v %v", sw.label(), n.Kind, n.Name, n.Value, n.Fault)
		sw.listen(n)
	}
	late := len(n.To) == 1 && len(n.All) == 0 && slices.Contains(w.started, n.To[0])
	if n.Name != star && !isGlobURL(n.Name) && (!late || w.unnoticed(n) || w.besideLegacy(w.model(n.TypeURL), n)) {
		w.timeout(n)
	}
}

// unnoticed says that a timer may have fired while nobody watched the name: it was asked for
// all the while, and nothing was heard of it.
func (w *world) unnoticed(n Notice) bool {
	pic, word := w.stream(n.Stream.Stream).pics[n.TypeURL], w.model(n.TypeURL).word(n.Name)
	return pic != nil && pic.names[n.Name] && !word.held && !word.fault && !word.absent
}

func (w *simWatch) listen(n Notice) {
	switch {
	case n.Name == w.Name && n.Kind == NoticeSynced:
		w.synced = true
	case n.Name == w.Name:
		w.hear(n)
	default:
		if w.members[n.Name] == nil {
			w.members[n.Name] = &told{}
		}
		w.members[n.Name].hear(n)
	}
}

// timeout takes what the machine concluded by itself.
func (w *world) timeout(n Notice) {
	md := w.model(n.TypeURL)
	if w.murky(md, n.Name) {
		return
	}
	word := md.word(n.Name)
	r, _ := w.m.Held(sourceOf(n.Name), n.TypeURL, n.Name)
	if (w.budget || w.mayWithhold(md, n) || word.under != "" || word.dim) && word.held && n.silent() {
		if r.Status != StatusAcked { // else it came later in the same step
			word.remove(n.Kind == NoticeAmbient)
		}
		return
	}
	if n.Kind == NoticeDoesNotExist && n.Reason == ReasonTTL {
		w.lapse(n, word)
		return
	}
	fired := n.Kind == NoticeDoesNotExist && n.Reason == ReasonTimeout || n.Kind == NoticeFailed && n.Fault.Kind == FaultTimeout || w.besideLegacy(md, n)
	switch {
	case !fired || word.unsure:
	case word.held && r.Raw != nil: // came later in the same step
	case word.held:
		w.fail("%s is given up in spite of %v", n.Name, word)
	case n.Kind == NoticeFailed:
		word.fault, word.absent, word.refused = true, false, false
	default:
		word.absent, word.fault, word.refused = true, false, false
	}
}
