package machine

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// typeState is one type on one stream: what is wanted of it, what the server was told,
// what is held. Types on a stream are independent of each other.
type typeState struct {
	typ     *Type
	stream  *stream
	rank    int
	entries table
	held    int64 // bytes of the payloads of entries, those that several share once
	watched int   // entries that are wanted by name
	joining map[*entry][]*Watch
	names   names // that are wanted by name, globs among them, as last told or about to be

	spelled spellings

	changed []*entry // whose interest changed since the last message, each once
	moved   bool     // some of changed and fresh are maybe not the entries of their names; see [typeState.renew]

	star     *collection             // of old-style names
	globs    map[pattern]*collection // that are watched, or leaving
	plain    map[*chain]*collection  // of structured names that no glob covers; with it a chain's globs are found
	waiting  map[*collection]bool    // globs, with those that are not synced
	loose    loose
	aliases  aliases
	flaws    map[*entry][]error // of what is held; nil if nothing has any
	refusals refusals
	renewed  map[*entry]bool // refused with a response that called them new; see [response.renews]

	doubtful bool // it was said that the server seems not to know the wildcard by its name

	version  string    // of the last accepted response of this incarnation of the stream, or with ResumeVersion of any; SotW
	lapsed   bool      // since, a collection's member ran out of its time to live, or was seen never to be sent
	accepted time.Time // when it came, in either variant; zero if none did

	busy  *response // received and not finished yet
	drops int       // entries that went since the stream was made
	last  []*entry  // that the last response in state of the world held, by place; see [typeState.repeated]

	suspicion
	onStream
}

// onStream is what is known of a type on one incarnation of its stream.
type onStream struct {
	asked      bool      // a request was sent
	firstAt    time.Time // when the first one left; until then, when it was made
	left       bool      // it has
	resumes    bool      // the first request says what is held
	answered   bool      // a response came
	nonce      string    // of the newest response
	instead    *Instead  // what that holds; nil if there is none
	form       wildForm  // how the wildcard was asked for
	leftAt     time.Time // when nobody was seen to want the legacy wildcard any more; zero while somebody does
	renewAt    time.Time // when the stream is begun anew for the wildcard; zero if it is not
	complete   bool      // a response held all there is, in the legacy form
	beside     []*entry  // that are wanted beside a legacy wildcard that does not name them, and not answered yet
	owed       []answer
	fresh      []*entry        // named for the first time by the message with the writer
	freshNames map[string]bool // of fresh; nil until they are looked for
	freshSince uint32          // the last response when that message was made
	starting   bool            // the message with the writer asks for the wildcard
	lastPure   time.Time       // when only interest was sent; zero once the server has answered
	sendAt     time.Time       // when something owed may be sent that may not be sent yet
	storm      storm
	largest    int             // request before the first response, in bytes
	unlisted   []*entry        // members that the server was not told of
	sweepTimer uint32          // that runs for them; 0 if none
	unheard    []unheard       // names that were added, and what is known of them waited for
	late       map[*entry]bool // of other servers, asked for too late for the response that is out
	lateStar   bool            // the wildcard was asked for too late for it
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
	if ts.busy != nil && ts.busy.asked == nil {
		ts.busy.asked, ts.busy.named = ts.collectionsAsked(), ts.entriesAsked()
	}
	ts.onStream = onStream{}
	if !ts.stream.ResumeVersion {
		ts.version = ""
	}
	ts.names.set(star, nil, false)
	ts.star.known, ts.star.timer = false, 0
	for _, c := range ts.globs {
		c.known, c.timer = false, 0
	}
	for e := range ts.entries.all() {
		e.timer = 0
		e.asked = false
		e.withheld = false
	}
}

// collectionsAsked are those whose request has left.
func (ts *typeState) collectionsAsked() map[*collection]bool {
	cs := map[*collection]bool{}
	if ts.star.known {
		cs[ts.star] = true
	}
	for c := range ts.waiting {
		if c.known {
			cs[c] = true
		}
	}
	return cs
}

// entriesAsked are those that the server was asked for by name.
func (ts *typeState) entriesAsked() map[*entry]bool {
	es := map[*entry]bool{}
	for e := range ts.entries.all() {
		if e.asked {
			es[e] = true
		}
	}
	return es
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
		ts = &typeState{
			typ: t, stream: s, rank: rank(t.URL), joining: map[*entry][]*Watch{},
			globs: map[pattern]*collection{}, plain: map[*chain]*collection{}, waiting: map[*collection]bool{},
			renewed: map[*entry]bool{},
		}
		ts.star = &collection{ts: ts, name: star}
		ts.star.self = &entry{name: star, of: ts.star}
		ts.nonce = s.ignored[t.URL]
		s.types[t.URL] = ts
		s.order = append(s.order, ts)
		slices.SortStableFunc(s.order, func(a, b *typeState) int { return a.rank - b.rank })
	}
	return ts
}

// wanted says whether anything of the type is.
func (ts *typeState) wanted() bool {
	return ts.star.wanted() || ts.watched > 0
}

// entriesOf yields the entries of a chain, some maybe twice, or for nil all of the type. Only
// for the one chain that has the old-style names are those of others looked at.
func (ts *typeState) entriesOf(only *chain) iter.Seq[*entry] {
	if only != nil && only != ts.star.chain {
		return ts.membersOf(only)
	}
	return func(yield func(*entry) bool) {
		for e := range ts.entries.all() {
			if (only == nil || e.of.chain == only) && !yield(e) {
				return
			}
		}
	}
}

// membersOf is entriesOf for a chain that has no old-style names.
func (ts *typeState) membersOf(ch *chain) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, c := range ts.collectionsOf(ch) {
			for _, e := range c.members {
				if c.has(e) && !yield(e) {
					return
				}
			}
		}
	}
}

// inOrder lists the entries of a chain by name, or for nil all of the type.
func (ts *typeState) inOrder(only *chain) []*entry {
	var es []*entry
	if only == nil {
		es = make([]*entry, 0, ts.entries.len())
	}
	es = slices.AppendSeq(es, ts.entriesOf(only))
	sortEntries(es)
	return slices.Compact(es)
}

func sortEntries(es []*entry) {
	slices.SortFunc(es, func(a, b *entry) int { return strings.Compare(a.name, b.name) })
}

// silent says that the server was told nothing of the type on this incarnation of the
// stream, so that nothing has to be taken back.
func (ts *typeState) silent() bool { return !ts.asked }

// note remembers that interest in an entry changed.
func (ts *typeState) note(e *entry, wanted bool) {
	if ts.silent() {
		ts.name(e, wanted)
		return
	}
	if !e.noted {
		e.noted = true
		ts.changed = append(ts.changed, e)
	}
}

// name has requests name an entry from now on, or not.
func (ts *typeState) name(e *entry, wanted bool) {
	ts.names.set(ts.onWire(e.name), ts.params(e.of), wanted)
}

// params are what the names of a collection are asked for with; nil for none.
func (ts *typeState) params(c *collection) *wire.Params {
	if c.chain == nil || ts.stream.NoParams {
		return nil
	}
	return c.chain.Params
}

// member says whether an entry is kept for its collection alone.
func (ts *typeState) member(e *entry) bool {
	return e.of.wanted() && ts.spoken(e)
}

// spoken says whether the server spoke of an entry, or does so in the response being worked
// on.
func (ts *typeState) spoken(e *entry) bool {
	return !e.byAlias() && (e.known() || ts.busy != nil && e.seen == ts.busy.serial)
}

// prune drops everything that is not wanted; for types that are silent.
func (ts *typeState) prune() {
	ts.renew()
	for _, e := range ts.changed {
		e.noted = false
		ts.name(e, e.wanted())
	}
	ts.changed = nil
	for e := range ts.entries.all() {
		ts.forget(e)
	}
	ts.dropSpellings()
	if !ts.star.wanted() {
		ts.star.forgetState()
	}
}

// watch begins a watch: it joins what stands, hears what is known, and interest follows.
func (m *Machine) watch(now time.Time, w *Watch) {
	ch := m.chainOf(int(w.Source), w.Type.URL)
	if ch.watches++; ch.watches == 1 {
		m.begin(now, ch)
	}
	m.agenda.touch(ch.streams...)
	s := ch.stream()
	ts := s.typeOf(w.Type)
	w.alive = true
	ts.spell(w.Name, w.Spelling)
	held := m.attach(ts.collectionOf(ch, w), w)
	m.await(now, w)
	m.wanted(now, s, +1)
	m.standBy(now, ch, w)
	w.owed++ // until it is told of what is held, of nothing else
	// What others lack was looked at when the server failed.
	told := s.unreachable() && w.unanswered() && m.fallBackChain(now, ch) && ch.stream().unreachable()
	w.owed--
	switch {
	case w.Wildcard:
		m.replayAll(w)
	case held:
		m.join(w.entry)
	case !told:
		m.tellKnown(w.entry, []*Watch{w})
	}
	m.beginFetch(now, w)
}

// attach lets a watch join its entry or collection, and says whether it has to wait for a
// value that is held.
func (m *Machine) attach(c *collection, w *Watch) (held bool) {
	if w.Wildcard {
		c.watches = append(c.own(), w)
		if w.entry = c.self; len(c.watches) == 1 {
			c.explicit = w.Explicit // the first watch chooses the form
		}
		c.ts.leftAt = time.Time{}
		c.pin()
		return false
	}
	ts := c.ts
	e := ts.entryOf(c, w.Name)
	w.entry = e
	if !e.wanted() {
		ts.watched++
		ts.note(e, true)
	}
	if e.held() {
		e.setJoining(append(e.joining(), w))
		return true
	}
	if len(e.watches) == 0 {
		e.watches, e.shared = w.list(), true
	} else {
		e.watches = append(e.own(), w)
	}
	return false
}

// await starts the timer of what was asked for while it stood by.
func (m *Machine) await(now time.Time, w *Watch) {
	e := w.entry
	c, ts := e.of, e.of.ts
	switch {
	case w.Wildcard:
		if c.known && !c.synced && c.absence == nil && c.timer == 0 {
			m.startTimer(now, ts.stream, timer{of: c})
		}
	case e.asked && e.timer == 0 && e.status == StatusRequested && !ts.leaving(e):
		m.awaitAsked(now, e)
	}
}

// entryOf finds or makes the entry of a name.
func (ts *typeState) entryOf(c *collection, name string) *entry {
	e := ts.entries.get(name)
	switch {
	case e == nil:
		e = &entry{name: name, status: StatusRequested}
		ts.entries.put(e)
		c.adopt(e)
	case e.of != c && !e.wanted():
		c.adopt(e)
	}
	return e
}

// unwatch ends a watch. What nobody wants any more is kept until the message that says so
// is sent, so that a watch that comes back before it finds everything as it was.
func (m *Machine) unwatch(now time.Time, w *Watch) {
	if !w.alive {
		return
	}
	w.alive = false
	e := w.entry
	c, ts := e.of, e.of.ts
	m.agenda.touch(c.chain.streams...)
	c.chain.watches--
	if w.Wildcard {
		c.watches = without(c.own(), w)
		c.pin()
	} else {
		m.detach(e, w)
	}
	m.wanted(now, ts.stream, -1)
	if w.Wildcard && !c.wanted() || !w.Wildcard && !e.wanted() {
		m.standDown(now, w)
	}
	if e == ts.star.self && !c.wanted() && !ts.silent() && ts.form == wildNone {
		ts.leaveWild() // what came along from another server
	}
	switch {
	case !ts.silent():
	case e == ts.star.self:
		ts.prune()
	default:
		ts.forget(e)
	}
}

// detach takes a watch off its entry.
func (m *Machine) detach(e *entry, w *Watch) {
	e.watches = without(e.own(), w)
	if e.joins {
		e.setJoining(without(e.joining(), w))
	}
	if e.wanted() {
		return
	}
	e.of.ts.watched--
	e.of.ts.note(e, false)
	if e.kept() {
		m.log(e, false, "a resource that the server had deleted is not watched any more")
	}
}

// drop forgets an entry, and with it where the last response held what.
func (ts *typeState) drop(e *entry) {
	ts.entries.drop(e.name)
	e.uncount()
	ts.drops++
	ts.last = nil
	e.of.lose()
	ts.aliases.unlink(e)
	delete(ts.flaws, e)
	delete(ts.spelled.given, e)
	delete(ts.renewed, e)
	ts.stream.strip(e)
}

// forget drops what nobody wants any more.
func (ts *typeState) forget(e *entry) {
	left := e.of == ts.star && ts.form == wildLegacy && ts.outdated() && ts.spoken(e) // the wildcard may come back, and is not told anew
	if e.wanted() || ts.member(e) || left || !e.live() || ts.leaveToStar(e) {
		return
	}
	ts.drop(e)
	delete(ts.late, e)
	if e.of.self == e {
		ts.leave(e.of)
	}
}

func without[T comparable](ws []T, w T) []T {
	if i := slices.Index(ws, w); i >= 0 {
		return slices.Delete(ws, i, i+1)
	}
	return ws
}

// untyped is the type of a response that does not say it; "" if that cannot be told. Streams
// of one type need not say it. Delta responses once had no field for it: there an entry
// tells, or what was asked for.
func (s *stream) untyped(r *wire.Response) string {
	if s.url != "" || !s.Delta {
		return s.url
	}
	for i := range r.Resources {
		if ts := s.types[string(r.Resources[i].TypeURL)]; ts != nil && ts.asked {
			return ts.typ.URL
		}
	}
	var asked, fit []string
	for _, ts := range s.order {
		if ts.asked {
			asked = append(asked, ts.typ.URL)
			if ts.knows(r.Removed) {
				fit = append(fit, ts.typ.URL)
			}
		}
	}
	for _, urls := range [][]string{asked, fit} {
		if len(urls) == 1 {
			return urls[0]
		}
	}
	return ""
}

// knows says whether all names are of resources that were asked for or are held.
func (ts *typeState) knows(names [][]byte) bool {
	return !slices.ContainsFunc(names, func(name []byte) bool {
		e, _ := ts.lookup(name)
		return e == nil
	})
}
