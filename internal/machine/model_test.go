package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// simWatch is a live watch, and what it was told.
type simWatch struct {
	*Watch
	began  time.Time
	told   map[string]*told
	synced bool // by a server
	stale  bool // synced by the store
}

func newSimWatch(watch *Watch, now time.Time) *simWatch {
	sw := &simWatch{Watch: watch, began: now, told: map[string]*told{}}
	watch.Owner = sw
	return sw
}

func (sw *simWatch) label() string { return sw.Type.URL[20:] + "/" + sw.Name }

// told is the last that a watch was told of a name. The zero value is nothing.
type told struct {
	kind    NoticeKind
	value   string
	stale   bool // the value is the store's
	kept    bool // it was told to be kept though it is deleted
	deleter int  // the server that had deleted it then
	reason  Reason
	server  int
	fault   *Fault
	ambient *Fault
}

func (k *told) String() string {
	s := fmt.Sprintf("told %d %q of server %d, stale %v", k.kind, k.value, k.server, k.stale)
	if k.fault != nil {
		s += " " + k.fault.Kind.String() + ": " + k.fault.Err.Error()
	}
	if k.ambient != nil {
		s += ", ambient " + k.ambient.Kind.String() + ": " + k.ambient.Err.Error()
	}
	return s
}

// flush steps the machine with what has been collected, and does what it asks for.
func (w *world) flush() {
	if len(w.queue) == 0 {
		return
	}
	events := w.queue
	w.queue = nil
	fx := w.m.Step(w.now, events...)
	if at, ok := w.m.Deadline(); ok && at.Before(w.now) {
		w.fail("the deadline %v is in the past", at)
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
	w.tasks, w.judging, w.loads = append(w.tasks, fx.Decode...), append(w.judging, fx.Guard...), append(w.loads, fx.Load...)
	for _, k := range fx.Keep {
		w.keep(k)
	}
	for _, ref := range slices.Concat(fx.Close, fx.Fail) {
		s := w.stream(ref.Stream)
		if s.ref != ref {
			w.fail("close of %v, the stream is %+v", ref, s)
		}
		w.say("close %v", ref)
		w.handled(s)
		s.state, s.doomed = idle, false
	}
	for _, wait := range fx.Wait {
		s := w.stream(wait.Stream)
		if s.state != idle {
			w.fail("wait of %+v on stream %+v", wait, s)
		}
		s.ref, s.state = wait.Ref, waiting
	}
	for _, o := range fx.Open {
		s := w.stream(o.Stream)
		if s.state != idle || o.Gen <= s.ref.Gen {
			w.fail("open %v while the stream is %+v", o.Ref, s)
		}
		w.say("open %v", o.Ref)
		*s = simStream{ref: o.Ref, state: opening, server: w.servers[o.Server], url: o.TypeURL}
	}
	for _, ref := range fx.Read {
		if s := w.stream(ref.Stream); s.ref == ref {
			s.reading = true
		}
	}
	for _, send := range fx.Send {
		w.request(send)
	}
}

// finish is a response's end.
func (w *world) finish(ref Ref) {
	i := slices.IndexFunc(w.sent, func(r *simResponse) bool { return r.ref == ref && !r.done })
	if i < 0 {
		w.fail("consumed %v, of which nothing is expected", ref)
	}
	w.sent[i].done = true
	w.sent = slices.Delete(w.sent, i, i+1)
	if s := w.stream(ref.Stream); s.ref == ref && s.state == up {
		s.consumed = true
	} else {
		w.push(Delivered{ref})
	}
}

// tell has watches hear a notice, which has to be possible.
func (w *world) tell(n Notice) {
	if n.Kind >= NoticeCaughtUp {
		return
	}
	heard := map[*Watch]bool{}
	for _, watch := range slices.Concat(n.To, n.All) {
		sw := watch.Owner.(*simWatch)
		switch {
		case heard[watch]:
			w.fail("a notice is told twice to %s: %+v", sw.label(), n)
		case w.stopped[watch] && !slices.ContainsFunc(w.watches, func(sw *simWatch) bool { return sw.Watch == watch }):
			continue // maybe in this step
		case watch.Type.URL != n.TypeURL || watch.Name != n.Name && watch.Name != star && !covers(watch.Name, n.Name):
			w.fail("a notice is told to %s: %+v", sw.label(), n)
		}
		heard[watch] = true
		w.say("  tell %s: kind %d %s %v %v %v", sw.label(), n.Kind, n.Name, n.Value, n.Reason, n.Fault)
		if n.Kind == NoticeSynced {
			if sw.synced || n.Stale && sw.stale {
				w.fail("%s is synced twice, stale %v", sw.label(), n.Stale)
			}
			sw.synced, sw.stale = !n.Stale, n.Stale
			continue
		}
		if n.Name == sw.Name && (n.Kind == NoticeFailed || n.Kind == NoticeDoesNotExist) {
			sw.synced = false // ERR-3: a file's error takes a first state away
		}
		k := sw.told[n.Name]
		if k == nil {
			k = &told{}
			sw.told[n.Name] = k
		}
		if !w.evil {
			w.possible(sw, k, n)
		}
		k.hear(n)
	}
}

func (k *told) hear(n Notice) {
	switch n.Kind {
	case NoticeUpdated:
		*k = told{kind: n.Kind, value: n.Value.(string), stale: n.Stale, server: n.Server}
	case NoticeDoesNotExist:
		*k = told{kind: n.Kind, reason: n.Reason, server: n.Server}
	case NoticeFailed:
		*k = told{kind: n.Kind, fault: n.Fault, server: n.Server}
	case NoticeAmbient:
		k.ambient = n.Fault
		if n.Fault != nil && errors.Is(n.Fault.Err, ErrDeletionKept) {
			k.kept, k.deleter = true, n.Server
		}
	}
}

// confirmed says that another server gave the value that a watch was told, which is no event.
func (w *world) confirmed(n Notice, k *told) bool {
	return slices.ContainsFunc(w.servers, func(sv *simServer) bool {
		_, gave := sv.stores[n.TypeURL].given[n.Name][k.value]
		return gave && sv != w.servers[n.Server]
	})
}

// possible checks a notice against what the watch was told before, and what servers have said.
func (w *world) possible(sw *simWatch, k *told, n Notice) {
	fail := func(why string) {
		w.Helper()
		w.fail("%s: %s: %s: %+v after %v", sw.label(), why, n.Name, n, k)
	}
	st := w.servers[n.Server].stores[n.TypeURL]
	held := k.kind == NoticeUpdated
	switch n.Kind {
	case NoticeUpdated:
		if n.Stale {
			if why := w.possibleStale(sw, k, n); why != "" {
				fail(why)
			}
			return
		}
		revision, ok := st.given[n.Name][n.Value.(string)]
		switch {
		case !ok:
			fail("a value that the server never gave")
		case held && k.value == n.Value && !k.stale && !w.aliases: // in other bytes it may be news for one name of two
			fail("WATCH-4: the same value is told again")
		case held && !k.stale && k.server == n.Server && revision < st.given[n.Name][k.value]:
			fail("a value that is older than the one that is held")
		}
	case NoticeDoesNotExist:
		switch n.Reason {
		case ReasonTimeout:
			if since := w.since(n); held && k.stale && !k.kept && !w.lacked(n) {
				fail("LKG-5: silence takes a stale value away")
			} else if held && !k.stale && !w.server.Delta && k.server == n.Server && !w.confirmed(n, k) {
				fail("silence takes a value away")
			} else if !sw.Wildcard && sw.began.Before(since) && w.now.Sub(since) < period {
				fail("DNE-1: the timer fires early")
			}
		case ReasonTTL:
			if !w.mortal {
				fail("TTL-1: nothing has a time to live")
			}
		case ReasonRemoved, ReasonNotFound, ReasonAbsent:
			from := 0
			if k.kept { // the time runs on when another server becomes active
				st = w.servers[k.deleter].stores[n.TypeURL]
			} else if held && k.server == n.Server {
				from = st.given[n.Name][k.value]
			}
			member := structured(n.Name) && w.beside(sw)          // of the wildcard, whose full state lacks it
			silence := n.Reason == ReasonAbsent && w.server.Delta // on members whose versions were withheld
			if !member && !silence && !strings.HasSuffix(n.Name, star) && !st.lacked(n.Name, from) {
				fail("the server has the resource all the while")
			}
		}
	case NoticeFailed:
		if held && (n.Fault.Kind != FaultRejected && n.Fault.Kind != FaultData || !w.server.FailOnDataErrors) {
			fail("ERR-3: trouble takes a value away")
		}
	case NoticeAmbient:
		if !held && n.Name != sw.Name && sw.synced {
			fail("ambient trouble of nothing")
		}
	}
}

// since is when a server was asked for a name by itself on the stream of a notice; zero if it was not.
func (w *world) since(n Notice) time.Time {
	s := w.stream(n.Stream.Stream)
	if sub := s.subscribed[n.TypeURL]; sub != nil && s.ref == n.Stream {
		return sub.names[n.Name]
	}
	return time.Time{}
}

// active is the server that answers for a watch at rest; nil if none that can does.
func (w *world) active(sw *simWatch) (found *simServer) {
	for _, i := range w.sources[sw.Source] {
		for _, s := range w.streams {
			sub := s.subscribed[sw.Type.URL]
			if s.server != w.servers[i] || s.state != up || sub == nil {
				continue
			}
			if _, byName := sub.names[sw.Name]; byName || sub.subscribes(sw.Name) || sub.legacy && sw.Source == 0 && sub.subscribes("a") {
				found = w.servers[i]
			}
		}
	}
	return found
}

// check compares what every watch was told with what it should hold, when nothing is under way.
func (w *world) check(dead bool) {
	if len(w.tasks)+len(w.judging)+len(w.loads)+len(w.queue) > 0 {
		w.fail("%d tasks, %d proposals and %d loads are not done with", len(w.tasks), len(w.judging), len(w.loads))
	}
	for _, s := range w.streams {
		if s.state == up && !dead {
			w.checkSubscribed(s)
		}
	}
	if w.evil {
		return
	}
	for _, sw := range w.watches {
		active := w.active(sw)
		if first := w.servers[w.sources[sw.Source][0]]; !first.dead && active != first {
			w.fail("%s: the first server is not used", sw.label())
		}
		if active == nil {
			w.checkDown(sw)
			continue
		}
		names := []string{sw.Name}
		if sw.Wildcard {
			names = slices.Concat(plainNames, structuredNames)
			if !sw.synced && (w.server.Delta || sw.Name == star || sw.told[sw.Name] == nil && !w.endless(sw)) {
				w.fail("%s: %v: its first state never came", sw.label(), sw.told[sw.Name])
			}
		}
		for _, name := range names {
			if name == sw.Name || covers(sw.Name, name) || sw.Name == star && !structured(name) {
				w.checkTold(sw, name, active)
			} else if by := w.holder(name, sw.Type); by != nil && sw.Name == star && (w.answers == nil || slices.ContainsFunc(w.sources[0], func(i int) bool { return w.answers(i, "a") })) {
				w.checkTold(sw, name, by) // GLOB-5
			}
		}
	}
}

// checkDown: who has no server knows of the trouble, and holds what was held.
func (w *world) checkDown(sw *simWatch) {
	k := sw.told[sw.Name]
	if sw.Wildcard && sw.synced {
		return // its members stay
	}
	if k == nil || k.kind == NoticeUpdated && k.ambient == nil {
		w.fail("%s: %v: its server is down", sw.label(), k)
	}
}

// checkTold says what a watch should hold of a name: what its server has.
func (w *world) checkTold(sw *simWatch, name string, active *simServer) {
	k := sw.told[name]
	if k == nil {
		k = &told{}
	}
	_, r := active.stores[sw.Type.URL].get(name)
	member := name != sw.Name // it is told of what there is, and of what was
	held, absent := k.kind == NoticeUpdated, k.kind == NoticeDoesNotExist || member && k.kind != NoticeUpdated
	if w.server.TransientTimeout > 0 && !member && k.kind == NoticeFailed && k.fault.Kind == FaultTimeout {
		absent = true
	}
	ok, kind := false, r.kind
	if kind == isFailed && r.code == codeNotFound {
		kind = isGone
	}
	switch {
	case kind == isGood && r.ttl > 0: // its time is over, but a server in state of the world may repeat it
		ok = absent
	case kind == isGood:
		ok = held && k.value == r.value && k.ambient == nil && !k.stale // LKG-5
	case kind == isBroken: // ERR-3: what was held stays
		ok = held && k.ambient != nil && !w.server.FailOnDataErrors || k.kind == NoticeFailed
	case kind == isFailed && member: // the error is for who asks by name
		ok = absent || held && (k.ambient != nil || !w.server.Delta && !w.full(sw.Type))
	case kind == isFailed:
		ok = k.kind == NoticeFailed || w.beside(sw) || held && k.ambient != nil && (r.code != codePermissionDenied || !w.server.FailOnDataErrors)
	case kind == isGone && !w.server.Delta && !w.full(sw.Type): // SOTW-8: absence says nothing
		ok = k.kind != 0 || absent
	default: // SOTW-7: what was never held is not concluded to be absent
		ok = absent || k.kind == NoticeFailed && !w.server.Delta || held && k.ambient != nil && (w.server.KeepDeleted || w.server.TransientTimeout > 0)
	}
	w.checkKept(sw, name, k)
	ok = ok || w.endless(sw) && (w.mortal || kind == isGone || kind == isFailed) && (k.kind == 0 || k.kind == NoticeFailed || held && (k.stale || len(w.servers) > 1))
	ok = ok || held && slices.Contains(w.spared[sw.Type.URL], name)
	if !ok && !(absent && w.mortal && kind != isGood) { // TTL-2: what was held before may have ended
		w.fail("%s: %s: %v; server %d has %+v", sw.label(), name, k, active.index, r)
	}
}

// holder is the server that answers for a structured name, if something but the wildcard covers it; else nil.
func (w *world) holder(name string, t *Type) *simServer {
	for _, sw := range w.watches {
		if sw.Type == t && (sw.Name == name || covers(sw.Name, name)) {
			return w.active(sw)
		}
	}
	return nil
}

// endless says that a server's silence tells a watch nothing, however long.
func (w *world) endless(sw *simWatch) bool {
	return sw.FetchTimeout < 0 || w.config.ResourceTimeout < 0 && w.server.TransientTimeout == 0
}

// beside says that a server may not know that a watch's name is wanted: everything is.
func (w *world) beside(sw *simWatch) bool {
	return !w.server.Delta && slices.ContainsFunc(w.watches, func(other *simWatch) bool { return other.Type == sw.Type && other.Name == star })
}

// checkEmpty: nothing is left when nothing is watched.
func (w *world) checkEmpty() {
	for _, s := range w.streams {
		if s.state != idle {
			w.fail("stream %v is in state %d though nothing is watched", s.ref, s.state)
		}
	}
	for _, c := range counts(w.m, 1) {
		if c.N > 0 {
			w.fail("%d resources are left: %+v", c.N, c)
		}
	}
	for _, src := range w.m.working {
		if src.held != 0 {
			w.fail("%d bytes of source %d count as held", src.held, src.index)
		}
	}
	if at, ok := w.m.Deadline(); ok {
		w.fail("a deadline of %v is left", at)
	}
}
