package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// A store keeps accepted values for the next start of the program. What it had is told as stale, until a
// server speaks of it. A stale value is held, but said by no server: it is foreign to each, so that the
// rules for values of another server are its rules too.

// fromStore marks the origin of what no server has spoken of since the store was asked for it. Alone it
// says that the store has nothing; with a server, that this one said the value before the start.
const fromStore = 1 << 15

// recallAfter is how long a server may be silent about a type until the store is asked.
const recallAfter = time.Second

// Kept is what the store is to keep of a resource, or to forget.
type Kept struct {
	Source  int
	TypeURL string
	Name    string // canonical; of a collection `*` or the URL of a glob

	Raw        []byte // the accepted payload, not to be changed; nil if there is no such resource any more
	Version    string
	Server     int
	Updated    time.Time // when it was accepted
	Expires    time.Time // the end of its time to live; zero if it has none
	Locator    bool
	Attributes *wire.Attributes // not to be changed

	// Covers, of a collection, says which names it has. Its state is complete and told: what the store
	// has under such a name, and was not told to keep since the start, is gone.
	Covers func(name string) bool
}

// Load asks for what the store has of a type's resources.
type Load struct {
	Source  int
	TypeURL string
	Names   []string // that are looked for, those of collections too
	All     bool     // all that there is, since a collection is among them

	recall *recall
	subs   []*subscription
}

// Entry is a resource that the store has.
type Entry struct {
	Name    string // canonical
	Version string
	Raw     []byte
	Server  int // that said it; one of the source's
	Updated time.Time
	TTL     time.Duration // that is left; 0 if it has none
	Locator bool
	// Complete says that this is the name of a collection, and that its first state was complete.
	Complete   bool
	Attributes *wire.Attributes
}

// Loaded is the answer to a [Load].
type Loaded struct {
	*Load
	Entries []Entry
}

func (Loaded) event() {}

// recall is what is looked for in the store, of a type's resources at a source.
type recall struct {
	cache  *cache
	source *source
	timer  uint32
	under  map[*subscription]bool // that the store was asked for and has not answered
	asked  []*subscription        // of them, in this step
	stale  []*subscription        // members that were loaded; some maybe confirmed since
}

// stale says that the value, or the first state of a collection, is from the store.
func (sub *subscription) stale() bool { return sub.from > fromStore }

// recalled says that the store was asked, and no server has spoken since.
func (sub *subscription) recalled() bool { return sub.from&fromStore != 0 }

// stored says whether the store has to do with a subscription.
func (sub *subscription) stored() bool {
	return sub.of.cache.typ.Stored && sub.of.source != nil && sub.of.source.Stored
}

// lacking says that nothing is known of what is watched.
func (sub *subscription) lacking() bool {
	return sub.wanted() && sub.status == StatusRequested && !sub.usable() && sub.from == 0
}

// seeks says whether the store is being asked for a subscription: its watches wait for the answer.
func (sub *subscription) seeks() bool {
	r := sub.of.cache.recalls[sub.of.source]
	return r != nil && r.under[sub]
}

func (c *cache) recallOf(src *source) *recall {
	r := c.recalls[src]
	if r == nil {
		r = &recall{cache: c, source: src, under: map[*subscription]bool{}}
		if c.recalls == nil {
			c.recalls = map[*source]*recall{}
		}
		c.recalls[src] = r
	}
	return r
}

// failed says that no server of the source can be reached.
func (src *source) failed() bool {
	return !slices.ContainsFunc(src.streams, func(s *stream) bool { return !s.unreachable() })
}

// answered says whether a server has spoken of the type on a stream that it has.
func (r *recall) answered() bool {
	return slices.ContainsFunc(r.source.reached(), func(s *stream) bool {
		l := s.types[r.cache.typ.URL]
		return l != nil && l.answered
	})
}

// lack has the store asked for what is watched and not known, at once if no server can be reached, or
// after a second without an answer.
func (m *Machine) lack(now time.Time, sub *subscription) {
	if !sub.stored() || !sub.lacking() || sub.seeks() {
		return
	}
	// LKG-9: every server's attempt has failed, or a second has passed.
	switch r := sub.of.cache.recallOf(sub.of.source); {
	case r.source.failed():
		m.seekStored(r, sub)
	case r.timer == 0 && !r.answered():
		m.setAlarm(now, r.source.streams[0], r, recallAfter)
	}
}

func (r *recall) alarm() *uint32 { return &r.timer }

func (r *recall) order() (alarmKind, string, string) { return alarmStore, r.cache.typ.URL, "" }

// ring asks for all that is lacking, if no server has answered.
func (r *recall) ring(m *Machine, _ time.Time, _ *stream) {
	// LKG-8: only while nothing answered.
	if !r.answered() {
		m.seekLacking(r)
	}
}

// recallFailed asks the store for what is lacking at sources whose last server has failed.
func (m *Machine) recallFailed(s *stream) {
	for _, src := range s.sources {
		if src.Stored && src.watches > 0 && src.failed() {
			for _, c := range src.caches {
				if c.typ.Stored {
					m.seekLacking(c.recallOf(src))
				}
			}
		}
	}
}

func (m *Machine) seekLacking(r *recall) {
	if star := r.cache.star; star.source == r.source && star.self.lacking() && !r.under[star.self] {
		m.seekStored(r, star.self)
	}
	for sub := range r.cache.of(r.source) {
		if sub.lacking() && !r.under[sub] {
			m.seekStored(r, sub)
		}
	}
}

// seekStored has the store asked for a subscription at the end of the step.
func (m *Machine) seekStored(r *recall, sub *subscription) {
	if len(r.asked) == 0 {
		m.recalls = append(m.recalls, r)
	}
	r.under[sub] = true
	r.asked = append(r.asked, sub)
}

// load asks the store for what this step looks for.
func (m *Machine) load() {
	for _, r := range m.recalls {
		ld := &Load{Source: r.source.index, TypeURL: r.cache.typ.URL, recall: r, subs: r.asked}
		for _, sub := range r.asked {
			ld.Names = append(ld.Names, sub.name)
			ld.All = ld.All || sub.isCollection()
		}
		r.asked = nil
		m.fx.Load = append(m.fx.Load, ld)
	}
	m.recalls = nil
}

// recollection is an answer of the store at work.
type recollection struct {
	*Load
	complete map[string]*Entry // of collections
	tasks    []*Task           // that are not done with, in order
	refused  int               // entries
	why      error             // the first of them is
}

// loaded has decoded what the store has and is still lacking.
func (m *Machine) loaded(now time.Time, ev Loaded) {
	rc := &recollection{Load: ev.Load, complete: map[string]*Entry{}}
	for i := range ev.Entries {
		e := &ev.Entries[i]
		if e.Complete {
			rc.complete[e.Name] = e
		} else if sub := rc.recall.place(e.Name); sub != nil {
			sub.from = fromStore
			rc.add(sub, e)
		}
	}
	m.fx.Decode = append(m.fx.Decode, rc.tasks...)
	m.recollect(now, rc)
}

// place finds or makes the subscription of what the store has; nil if it is not looked for.
func (r *recall) place(name string) *subscription {
	c := r.cache
	of := c.globOf(name)
	if of == nil && c.star.source == r.source {
		of = c.star
	}
	sub := c.subs.get(name)
	switch {
	case sub == nil && (of == nil || of.source != r.source || !of.wanted() || !r.under[of.self]):
		return nil
	case sub == nil:
		sub = &subscription{name: name, status: StatusRequested}
		c.subs.put(sub)
		of.adopt(sub)
		return sub
	case sub.isCollection(), sub.of.source != r.source, sub.status != StatusRequested, sub.held(), sub.from != 0:
		return nil
	case r.under[sub], of != nil && of.source == r.source && r.under[of.self]:
		return sub
	}
	return nil
}

// add has an entry decoded. Those of one server, which a decoder is told, are together.
func (rc *recollection) add(sub *subscription, e *Entry) {
	n := len(rc.tasks) - 1
	if n < 0 || len(rc.tasks[n].Items) == chunk || rc.tasks[n].Server != e.Server {
		rc.tasks = append(rc.tasks, &Task{Server: e.Server, Type: rc.recall.cache.typ, stored: rc})
		n++
	}
	t := rc.tasks[n]
	// LKG-3: what was kept is decoded and validated as a response is.
	t.Items = append(t.Items, Item{Raw: e.Raw, Attributes: e.Attributes, Locator: e.Locator, sub: sub})
	t.entries = append(t.entries, e)
}

// decodedStored takes back a task.
func (m *Machine) decodedStored(now time.Time, ev Decoded) {
	ev.Task.results = ev.Results
	m.recollect(now, ev.Task.stored)
}

// recollect takes what is decoded into the state, in order, and with the last of it ends the waiting.
func (m *Machine) recollect(now time.Time, rc *recollection) {
	for len(rc.tasks) > 0 && rc.tasks[0].results != nil {
		t := rc.tasks[0]
		rc.tasks = rc.tasks[1:]
		for i := range t.Items {
			m.takeStored(now, rc, t.entries[i], &t.Items[i], t.results[i])
		}
	}
	if len(rc.tasks) > 0 {
		return
	}
	for _, sub := range rc.subs {
		delete(rc.recall.under, sub)
		if !sub.gone && sub.wanted() && sub.status == StatusRequested && !sub.usable() {
			m.foundNothing(rc, sub)
		}
	}
	if rc.refused > 0 {
		m.fx.Log = append(m.fx.Log, Log{
			Warn: true, Server: rc.recall.source.stream().server, TypeURL: rc.TypeURL,
			Text:  "stored resources cannot be used; they are passed over",
			Attrs: []any{"count", rc.refused, "error", rc.why.Error()},
		})
	}
}

// takeStored holds a value that was loaded, if no server has spoken of it meanwhile.
func (m *Machine) takeStored(now time.Time, rc *recollection, e *Entry, it *Item, r Result) {
	sub := it.sub
	if sub.gone || sub.from != fromStore || sub.status != StatusRequested || sub.held() {
		return
	}
	if err := m.refuseStored(sub, it, r); err != nil {
		if rc.refused++; rc.why == nil {
			rc.why = err
		}
		if !sub.wanted() && !sub.noted {
			sub.of.cache.drop(sub)
		}
		return
	}
	sub.hold(it.Raw, given{})
	if sub.raw == nil {
		sub.raw = []byte{}
	}
	sub.version, sub.updated, sub.locator = e.Version, e.Updated.UnixNano(), it.Locator
	// LKG-4: no server says it: no version of it goes to one, and no ACK.
	sub.from = fromStore | uint16(e.Server+1)
	sub.gen++
	sub.describe(e.Attributes)
	// LKG-6: the time to live goes on.
	if e.TTL > 0 {
		m.lease(now, sub.stream(), leaseKey{sub, alarmTTL}, e.TTL)
	}
	rc.recall.stale = append(rc.recall.stale, sub)
	n := m.noticeTo(sub, NoticeUpdated, sub.handOut(), sub.audience())
	n.Value, n.Raw, n.Attributes = r.Value, sub.raw, sub.attributes()
	m.tellStoredFault(sub)
}

// refuseStored says why a loaded value is not held.
func (m *Machine) refuseStored(sub *subscription, it *Item, r Result) error {
	s, size := sub.stream(), len(it.Raw)
	switch {
	case r.Err != nil:
		return fmt.Errorf("%s: %w", sub.name, r.Err)
	case s.maxResource > 0 && size > s.maxResource, s.maxHeld > 0 && s.held+int64(size) > s.maxHeld:
		return fmt.Errorf("%s: the resource has %d bytes, over a limit (Config.MaxResourceSize, Config.MaxHeldSize)", sub.name, size)
	}
	return nil
}

// foundNothing ends the waiting for what the store does not have, and tells a collection that this is all.
func (m *Machine) foundNothing(rc *recollection, sub *subscription) {
	sub.from = fromStore
	if e := rc.complete[sub.name]; e != nil && sub.isCollection() {
		sub.from |= uint16(e.Server + 1)
		m.noticeTo(sub, NoticeSynced, sub.handOut(), nil)
	}
	m.tellStoredFault(sub)
}

// tellStoredFault tells of trouble that watches were not told of while the store was asked.
func (m *Machine) tellStoredFault(sub *subscription) {
	if f := sub.link().trouble(); f != nil {
		m.tellFault(sub, f)
	}
}

// store has the store keep what was accepted.
func (m *Machine) store(sub *subscription, expires time.Time) {
	// LKG-1: what is accepted, and only that.
	if sub.stored() && sub.held() {
		// LKG-2: the source stands for authority and parameters.
		m.fx.Keep = append(m.fx.Keep, Kept{
			Source: sub.of.source.index, TypeURL: sub.of.cache.typ.URL, Name: sub.name, Raw: sub.raw, Version: sub.version,
			Server: sub.server(), Updated: time.Unix(0, sub.updated), Expires: expires, Locator: sub.locator,
			Attributes: sub.attributes(),
		})
	}
}

// unstore has the store forget what a server says is gone.
func (m *Machine) unstore(sub *subscription) {
	// LKG-5: explicit absence removes.
	if sub.stored() {
		m.fx.Keep = append(m.fx.Keep, Kept{Source: sub.of.source.index, TypeURL: sub.of.cache.typ.URL, Name: sub.name})
	}
}

// withholdStale gives the server a period to speak of the members that only the store speaks of, once it
// has told their collection's first state.
func (l *link) withholdStale() {
	for src, r := range l.recalls {
		if len(r.stale) == 0 || src.stream() != l.stream {
			continue
		}
		r.stale = slices.DeleteFunc(r.stale, func(sub *subscription) bool { return sub.gone || !sub.stale() })
		for _, sub := range r.stale {
			// LKG-9: members that the first state lacks, in both variants.
			if !sub.wanted() && !sub.withheld && sub.of.self != nil && sub.of.self.complete {
				l.withhold(sub)
			}
		}
	}
}

// settleStored has the store forget what collections whose state is complete do not have.
func (m *Machine) settleStored(l *link) {
	l.unsettled = false
	for _, c := range l.collections(nil) {
		if c.self != nil && c.self.complete && c.self.stored() {
			m.fx.Keep = append(m.fx.Keep, Kept{
				Source: c.source.index, TypeURL: l.typ.URL, Name: c.name, Updated: m.stepped, Server: l.stream.server, Covers: c.covers(),
			})
		}
	}
}

// covers says which names of its source the collection has.
func (c *collection) covers() func(string) bool {
	if !c.isGlob() {
		return func(string) bool { return true }
	}
	pattern := c.pattern
	return func(name string) bool {
		p, segment, ok := split(name)
		return ok && segment != star && p == pattern
	}
}
