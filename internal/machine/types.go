package machine

import (
	"slices"
	"strings"
	"time"
)

// typeState is one type on one stream: what is wanted of it, what the server was told,
// what is held. Types on a stream are independent of each other.
type typeState struct {
	typ     *Type
	stream  *stream
	rank    int
	entries map[string]*entry
	watched int // entries that are wanted by name
	joining map[*entry][]*Watch
	names   names // that are wanted by name, as last told or about to be

	changed []*entry // whose interest changed since the last message, each once

	// The wildcard.
	wild        []*Watch
	authority   string  // of the wildcard's members
	wildShared  bool    // the slice is in a notice
	explicit    int     // watches that want it spelled
	synced      bool    // its first state is complete
	absence     *Notice // how it was told that no answer came; nil if it was not
	wildAmbient bool
	wildTimer   uint32 // that runs for it; 0 if none

	version  string    // of the last accepted response; SotW
	accepted time.Time // when it came, in either variant; zero if none did

	busy *response // received and not finished yet
	last []*entry  // that the last response in state of the world held, by place; see [typeState.repeated]

	suspicion
	onStream
}

// onStream is what is known of a type on one incarnation of its stream.
type onStream struct {
	asked      bool      // a request was sent
	firstAt    time.Time // when the first one left; until then, when it was made
	left       bool      // it has
	named      bool      // a name was sent
	answered   bool      // a response came
	nonce      string    // of the newest response
	told       wildForm
	wildKnown  bool // the wildcard request has left
	owed       []answer
	fresh      []*entry  // named for the first time by the message with the writer
	starting   bool      // the message with the writer asks for the wildcard
	lastPure   time.Time // when only interest was sent; zero once the server has answered
	sendAt     time.Time // when something owed may be sent that may not be sent yet
	storm      storm
	largest    int      // request before the first response, in bytes
	unlisted   []*entry // members that the server was not told of
	sweepTimer uint32   // that runs for them; 0 if none
}

// wildForm is how a server was asked for everything.
type wildForm uint8

const (
	wildNone     wildForm = iota
	wildLegacy            // by a first request without names
	wildExplicit          // by the name `*`
)

// star is the explicit wildcard.
const star = "*"

// reset forgets an incarnation of the stream.
func (ts *typeState) reset() {
	ts.onStream = onStream{}
	ts.wildTimer = 0
	ts.names.set(star, false)
	for _, e := range ts.entries {
		e.timer = 0
		e.asked = false
		e.withheld = false
	}
}

// rank orders types that owe at the same time: make-before-break order, then the order in
// which they were first watched.
func rank(typeURL string) int {
	const prefix = "type.googleapis.com/envoy.config."
	switch rest, _ := strings.CutPrefix(typeURL, prefix); rest {
	case "cluster.v3.Cluster":
		return 0
	case "endpoint.v3.ClusterLoadAssignment":
		return 1
	case "listener.v3.Listener":
		return 2
	case "route.v3.RouteConfiguration":
		return 3
	}
	return 4
}

func (s *stream) typeOf(t *Type) *typeState {
	ts := s.types[t.URL]
	if ts == nil {
		ts = &typeState{typ: t, stream: s, rank: rank(t.URL), entries: map[string]*entry{}, joining: map[*entry][]*Watch{}}
		ts.nonce = s.ignored[t.URL]
		s.types[t.URL] = ts
		s.order = append(s.order, ts)
		slices.SortStableFunc(s.order, func(a, b *typeState) int { return a.rank - b.rank })
	}
	return ts
}

// wanted says whether anything of the type is.
func (ts *typeState) wanted() bool {
	return len(ts.wild) > 0 || ts.watched > 0
}

// inOrder lists the entries by name.
func (ts *typeState) inOrder() []*entry {
	es := make([]*entry, 0, len(ts.entries))
	for _, e := range ts.entries {
		es = append(es, e)
	}
	sortEntries(es)
	return es
}

func sortEntries(es []*entry) {
	slices.SortFunc(es, func(a, b *entry) int { return strings.Compare(a.name, b.name) })
}

// silent says that the server was told nothing of the type on this incarnation of the
// stream, so that nothing has to be taken back.
func (ts *typeState) silent() bool { return ts.stream.state != up || !ts.asked }

// note remembers that interest in an entry changed.
func (ts *typeState) note(e *entry, wanted bool) {
	if ts.silent() {
		ts.names.set(e.name, wanted)
		return
	}
	if !e.noted {
		e.noted = true
		ts.changed = append(ts.changed, e)
	}
}

// member says whether an entry is kept for the wildcard alone: the server spoke of it, or
// does so in the response being worked on.
func (ts *typeState) member(e *entry) bool {
	return len(ts.wild) > 0 && (e.known() || ts.busy != nil && e.seen == ts.busy.serial)
}

// prune drops everything that is not wanted; for types that are silent.
func (ts *typeState) prune() {
	for _, e := range ts.changed {
		e.noted = false
		ts.names.set(e.name, e.wanted())
	}
	ts.changed = nil
	for _, e := range ts.entries {
		if !e.wanted() && !ts.member(e) {
			ts.discard(e)
		}
	}
	if len(ts.wild) == 0 {
		ts.synced, ts.absence, ts.wildAmbient = false, nil, false
	}
}

// watch begins a watch: it joins what stands, hears what is known, and interest follows.
func (m *Machine) watch(now time.Time, w *Watch) {
	s := m.streamFor(int(w.Server), w.Type.URL)
	ts := s.typeOf(w.Type)
	w.alive = true
	if w.Wildcard {
		m.watchAll(ts, w)
	} else {
		m.watchName(ts, w)
	}
	m.wanted(now, s, +1)
}

func (m *Machine) watchName(ts *typeState, w *Watch) {
	e := ts.entries[w.Name]
	if e == nil {
		e = &entry{name: w.Name, ts: ts, status: StatusRequested}
		ts.entries[w.Name] = e
	}
	w.entry = e
	if !e.wanted() {
		ts.watched++
		ts.note(e, true)
	}
	if e.held() {
		m.join(e, w)
		return
	}
	e.watches = append(e.own(), w)
	m.tellKnown(e, []*Watch{w})
}

func (m *Machine) watchAll(ts *typeState, w *Watch) {
	ts.wild = append(ts.ownWild(), w)
	ts.authority = w.Authority
	if w.Explicit {
		ts.explicit++
	}
	m.replayAll(ts, w)
}

// unwatch ends a watch. What nobody wants any more is kept until the message that says so
// is sent, so that a watch that comes back before it finds everything as it was.
func (m *Machine) unwatch(now time.Time, w *Watch) {
	if !w.alive {
		return
	}
	w.alive = false
	s := m.streamFor(int(w.Server), w.Type.URL)
	ts := s.types[w.Type.URL]
	if w.Wildcard {
		ts.wild = without(ts.ownWild(), w)
		if w.Explicit {
			ts.explicit--
		}
	} else {
		e := w.entry
		e.watches = without(e.own(), w)
		if e.joins {
			e.setJoining(without(e.joining(), w))
		}
		if !e.wanted() {
			ts.watched--
			ts.note(e, false)
			if e.kept() {
				m.log(e, false, "a resource that the server had deleted is not watched any more")
			}
		}
	}
	m.wanted(now, s, -1)
	if ts.silent() {
		ts.forget(w.entry)
	}
}

// forget drops what nobody wants any more at once: there is nobody to tell.
func (ts *typeState) forget(e *entry) {
	switch {
	case e == nil:
		ts.prune()
	case !e.wanted() && !ts.member(e):
		ts.discard(e)
	}
}

// discard forgets an entry, and with it where the last response held what.
func (ts *typeState) discard(e *entry) {
	delete(ts.entries, e.name)
	ts.last = nil
}

func without(ws []*Watch, w *Watch) []*Watch {
	if i := slices.Index(ws, w); i >= 0 {
		return slices.Delete(ws, i, i+1)
	}
	return ws
}

// tellWild tells something of the wildcard itself. Watches that came late and are still
// being told what is held hear of it at the end of that.
func (m *Machine) tellWild(ts *typeState, n Notice) {
	to := ts.wildWatches()
	if slices.ContainsFunc(to, (*Watch).catchingUp) {
		to = slices.DeleteFunc(slices.Clone(to), (*Watch).catchingUp)
	}
	m.tellWildTo(ts, n, to)
}

func (m *Machine) tellWildTo(ts *typeState, n Notice, to []*Watch) {
	if len(to) > 0 {
		n.Server, n.TypeURL, n.Name, n.All = ts.stream.server, ts.typ.URL, star, to
		n.Stream, n.Authority = ts.stream.ref(), to[0].Authority
		m.fx.Notify = append(m.fx.Notify, n)
	}
}

// wildFault is how the wildcard's watches hear of trouble.
func (ts *typeState) wildFault(f *Fault) Notice {
	if ts.synced {
		return Notice{Kind: NoticeAmbient, Fault: f}
	}
	return Notice{Kind: NoticeFailed, Fault: f}
}

// wildWatches hands out the wildcard's watches for a notice.
func (ts *typeState) wildWatches() []*Watch {
	ts.wildShared = len(ts.wild) > 0
	return ts.wild
}

// ownWild returns the wildcard's watches for changing.
func (ts *typeState) ownWild() []*Watch {
	if ts.wildShared {
		ts.wild, ts.wildShared = slices.Clone(ts.wild), false
	}
	return ts.wild
}
