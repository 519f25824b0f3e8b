package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/testutil/script"
)

// simWatch is a watch, and what it was told last of each name.
type simWatch struct {
	*Watch
	began time.Time
	told  map[string]told // nil once it is over
}

func (sw *simWatch) String() string { return script.Short(sw.Type.URL) + "/" + sw.Name }

func (sw *simWatch) covers(name string) bool { return name == sw.Name || encloses(sw.Name, name) }

// synced says that a server has told the first state of a collection.
func (sw *simWatch) synced() bool {
	all := sw.told[sw.Name]
	return all.Kind == NoticeSynced && !all.Stale
}

// told is what a watch was told last of a name, and the trouble since. The zero value is nothing.
type told struct {
	News
	ambient *Fault
}

func (k told) held() bool  { return k.Kind == NoticeUpdated }
func (k told) knows() bool { return k.Kind == NoticeFailed || k.ambient != nil } // of trouble

// answered says that trouble or an absence was told, which is an answer if there is no value.
func (k told) answered() bool { return k.knows() || k.Kind == NoticeDoesNotExist }

// value is what is held; "" for nothing.
func (k told) value() string {
	value, _ := k.Value.(string)
	return value
}

// tell has watches hear a notice, which has to be possible.
func (w *world) tell(n Notice) {
	if n.Kind > NoticeSynced {
		return
	}
	if n.Held {
		n.Value = w.valueOf(n.TypeURL, n.Raw)
	}
	for i, watch := range slices.Concat(n.To, n.All) {
		sw := watch.Owner.(*simWatch)
		k := sw.told[n.Name]
		w.say("  tell %v: kind %d %s %v %v %v", sw, n.Kind, n.Name, n.Value, n.Reason, n.Fault)
		w.must(!slices.Contains(slices.Concat(n.To, n.All)[:i], watch), "a notice is told twice to %s: %+v", sw, n)
		w.must(sw.told != nil, "%s is over: %+v", sw, n)
		w.must(sw.Type.URL == n.TypeURL && w.hears(sw, n.Name), "a notice is told to %s: %+v", sw, n)
		w.checkTold(sw, k, told{News: n.News})
		if n.Kind == NoticeAmbient {
			k.ambient = n.Fault
		} else {
			k = told{News: n.News}
		}
		sw.told[n.Name] = k
	}
}

// checkTold checks what a watch is told of a name, after what it was told and what servers said.
func (w *world) checkTold(sw *simWatch, was, n told) {
	possible := func(holds bool, why string) {
		w.Helper()
		w.honest(holds, "%s: %s: %s: %+v after %+v", sw, n.Name, why, n, was)
	}
	gave := func(value string) int { return w.servers[n.Server].stores[sw.Type.URL].gave(n.Name, value) }
	again := n.Kind == was.Kind && n.Stale == was.Stale && n.Reason == was.Reason && n.value() == was.value()
	// In other bytes a value may be news for one of its names.
	possible(!again || n.Kind == NoticeFailed || n.held() && w.aliases, "WATCH-4: the same is told again")
	possible(!n.Stale || was.Stale || was.Kind == 0 || was.Kind == NoticeFailed, "LKG-5, LKG-8: the store's word in place of a server's")
	switch n.Kind {
	case NoticeDoesNotExist:
		w.checkAbsence(sw, was, n, possible)
	case NoticeUpdated:
		possible(gave(n.value()) > 0, "LKG-1: a value that the server never gave, or that the program refuses")
		possible(!was.held() || gave(n.value()) >= gave(was.value()), "a value that is older than the one that is held")
	case NoticeFailed:
		drops := w.server.FailOnDataErrors && (n.Fault.Kind == FaultRejected || n.Fault.Kind == FaultData)
		possible(!was.held() || drops, "ERR-3: trouble takes a value away")
	case NoticeAmbient:
		possible(was.held() || n.Name == sw.Name, "ambient trouble of nothing")
	}
}

func (w *world) checkAbsence(sw *simWatch, was, n told, possible func(bool, string)) {
	switch st := w.servers[n.Server].stores[sw.Type.URL]; {
	case n.Reason == ReasonTTL:
		possible(w.mortal, "TTL-1: nothing has a time to live")
	case n.Reason != ReasonTimeout:
		// It was given to the wildcard, whose full state lacks it.
		given := structured(n.Name) && (sw.Name == star || w.beside(sw.Type))
		silence := n.Reason == ReasonAbsent && w.server.Delta // on members whose versions were withheld
		kept := was.ambient != nil                            // for a while, which may end when another server is active
		lacked := !was.held() || st.lacked(n.Name, st.gave(n.Name, was.value()))
		possible(lacked || silence || given || kept, "the server has the resource all the while")
	case was.held() && was.Stale:
		collected := slices.ContainsFunc(w.collections, func(c string) bool { return w.watched[sw.Type.URL+c] && encloses(c, n.Name) })
		possible(collected || w.full(sw.Type), "LKG-5: silence takes a stale value away")
	case was.held():
		elsewhere := slices.ContainsFunc(w.servers, func(sv *simServer) bool {
			return sv.index != n.Server && sv.stores[sw.Type.URL].gave(n.Name, was.value()) > 0
		})
		possible(w.server.Delta || elsewhere, "silence takes a value away")
	}
	keeps := w.server.KeepDeleted || sw.Type.DeletionKeep > 0 && was.ambient == nil
	possible(!was.held() || !keeps || n.Reason == ReasonTTL, "ERR-4, ERR-5: a deletion takes a value away that is to be kept")
	since := w.asked(sw.Type, n.Name)
	early := n.Reason == ReasonTimeout && sw.began.Before(since) && w.now.Sub(since) < period
	possible(!early || was.held() && was.ambient != nil, "DNE-1: the timer fires early") // kept for a while after a silence
}

// asked is since when a server knows that a name is wanted, by itself or with everything. While the active server has no
// stream, the silence of others counts.
func (w *world) asked(t *Type, name string) (since time.Time) {
	for _, s := range w.streams {
		for _, by := range []string{name, star} {
			at, ok := s.since[t.URL+by]
			if ok && s.state == up && (by == name || encloses(star, name)) && (since.IsZero() || at.Before(since)) {
				since = at
			}
		}
	}
	return since
}

// check compares what every watch was told with what it should hold, when nothing is under way.
func (w *world) check(dead bool) {
	w.must(len(w.chores)+len(w.queue) == 0, "%d chores and %d events are not done with", len(w.chores), len(w.queue))
	for _, s := range w.streams {
		if s.state == up && !dead {
			w.checkSubscribed(s)
		}
	}
	for _, sw := range w.watches {
		w.checkWatch(sw)
		w.checkAlike(sw)
	}
	for _, sw := range slices.Clone(w.watches) {
		w.checkLate(sw)
	}
}

// checkLate: a watch that begins at rest is told what the others of its name were told.
func (w *world) checkLate(sw *simWatch) {
	late := w.begin(Watch{Type: sw.Type, Name: sw.Name, Explicit: sw.Explicit, Patient: sw.Patient, FetchTimeout: sw.FetchTimeout})
	w.work()
	for _, name := range append(slices.Clone(w.names), sw.Name) {
		k, l := sw.told[name], late.told[name]
		nothing := name != sw.Name && !k.held() && !l.held()                                          // of a collection's member
		over := k.Kind == NoticeFailed && (l.Kind == 0 || l.Reason == ReasonTimeout) && w.endless(sw) // trouble, which nothing followed
		same := k.Kind == l.Kind && k.value() == l.value() && k.Stale == l.Stale && (k.ambient != nil) == (l.ambient != nil)
		w.must(same || nothing || over, "WATCH-3: %s: %s: told late: %+v, before: %+v", sw, name, l, k)
	}
	w.stop(slices.Index(w.watches, late))
	w.work()
}

// checkWatch: a watch holds what its first server has. If that is down, it may hold what another has, or what
// it held, and knows of the trouble.
func (w *world) checkWatch(sw *simWatch) {
	order := w.sources[sw.Source].Servers
	if w.servers[order[0]].dead {
		serves := func(i int) bool { return !w.servers[i].dead && w.differs(sw, w.servers[i]) == "" }
		w.honest(sw.told[sw.Name].answered() || slices.ContainsFunc(order, serves), "%s: its server is down, and nothing is told", sw)
		return
	}
	wrong := w.differs(sw, w.servers[order[0]])
	w.honest(wrong == "", "%s: %s", sw, wrong)
	for _, name := range w.names {
		w.checkStored(sw, name)
	}
}

// differs says in what a watch holds something else than a server has.
func (w *world) differs(sw *simWatch, sv *simServer) string {
	if sw.Wildcard && !sw.synced() && (w.server.Delta || sw.Name == star || !sw.told[sw.Name].answered() && !w.endless(sw)) {
		return "its first state never came"
	}
	for _, name := range w.names {
		if r := sv.stores[sw.Type.URL].has(name); sw.covers(name) && !w.agrees(sw, name, *r) {
			return fmt.Sprintf("%s: %+v; server %d has %+v", name, sw.told[name], sv.index, r)
		}
	}
	return ""
}

// hears says whether a watch is told of a name: what it covers, and the wildcard what its servers may say.
func (w *world) hears(sw *simWatch, name string) bool {
	src := w.sources[sourceOf(star)]
	may := src.Answers == nil || slices.ContainsFunc(src.Servers, func(i int) bool { return src.Answers(i, "a") })
	return sw.covers(name) || sw.Name == star && (may || !structured(name))
}

// checkAlike: all watches that hear of a name hold the same.
func (w *world) checkAlike(sw *simWatch) {
	for _, name := range w.names {
		for _, by := range w.watches {
			alike := by.Type != sw.Type || !by.covers(name) || !w.hears(sw, name) || by.told[name].value() == sw.told[name].value()
			w.honest(alike, "GLOB-5: %s: %s: %+v; %s: %+v", name, sw, sw.told[name], by, by.told[name])
		}
	}
}

// agrees says whether what a watch was told of a name is what a server has.
func (w *world) agrees(sw *simWatch, name string, r simResource) bool {
	k, member := sw.told[name], name != sw.Name
	held := k.held()
	// A collection is told of what there is, and of what was.
	absent := member && !held || k.Kind == NoticeDoesNotExist
	partial := !w.server.Delta && !w.full(sw.Type)
	ok := false
	switch gone := r.gone() || r.code == codeNotFound || r.ttl > 0; { // TTL-2: its time is over
	case isGood(r.value) && r.ttl == 0:
		return held && k.value() == r.value && k.ambient == nil && !k.Stale // LKG-5
	case isBad(r.value): // ERR-3: what was held stays
		ok = k.knows() && !(held && w.server.FailOnDataErrors)
	case gone && partial: // SOTW-8: absence says nothing
		ok = member || k.Kind != 0
	case gone: // SOTW-7: what was never held is not concluded to be absent
		ok = absent || k.Kind == NoticeFailed && (!w.server.Delta || r.ttl > 0) || held && k.knows() && (w.server.KeepDeleted || w.server.TransientTimeout > 0)
	case member: // the error is for who asks by name
		ok = !held || k.knows() || partial
	default:
		ok = k.Kind == NoticeFailed || w.beside(sw.Type) || held && k.knows() && (r.code != codePermissionDenied || !w.server.FailOnDataErrors)
	}
	silent := w.endless(sw) && (!held || k.Stale || len(w.servers) > 1)
	return ok || silent || absent && w.mortal || held && w.spared[sw.Type.URL+name] // TTL-2: what was held before may have ended
}

// endless says that a server's silence tells a watch nothing, however long.
func (w *world) endless(sw *simWatch) bool {
	return sw.Patient || w.m.config.ResourceTimeout < 0 && w.server.TransientTimeout == 0
}

// beside says that a server may not know that a name of a type is wanted: everything is.
func (w *world) beside(t *Type) bool {
	return !w.server.Delta && slices.ContainsFunc(w.watches, func(sw *simWatch) bool { return sw.Type == t && sw.Name == star })
}

// checkEmpty: nothing is left when nothing is watched.
func (w *world) checkEmpty() {
	for _, s := range w.streams {
		w.must(s.state == idle, "stream %v is in state %d though nothing is watched", s.ref, s.state)
	}
	for _, c := range counts(w.m, 1) {
		w.must(c.N == 0, "%d resources are left: %+v", c.N, c)
	}
	for _, src := range w.m.working {
		w.must(src.heldBytes == 0, "%d bytes of source %d count as held", src.heldBytes, src.index)
	}
	at, ok := w.m.Deadline()
	w.must(!ok, "a deadline of %v is left", at)
}
