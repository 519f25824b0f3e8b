package machine

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// chunk is how many payloads make a task at most, and so how many are delivered together;
// chunkBytes is what they have together, but for the last of them.
const (
	chunk      = 512
	chunkBytes = 4 << 20
)

// releasable is how many bytes of a response have to be new for its frame to be released.
const releasable = 1 << 20

// Codes of google.rpc.Status that have a meaning here.
const (
	codeInvalidArgument   = 3
	codeNotFound          = 5
	codePermissionDenied  = 7
	codeResourceExhausted = 8
)

// response is one that is being worked on.
type response struct {
	*wire.Response
	ref    Ref
	ts     *typeState
	serial uint32

	tasks   []*Task
	results [][]Result // of the tasks, as they come in
	missing int        // tasks that are not back
	next    int        // the first task that is not committed

	lines    []string        // what is wrong with it, for the NACK: as many as that has room for
	told     int             // bytes of lines
	bodies   bool            // an entry has a resource
	nameless bool            // an entry's name could not be read
	twice    []*entry        // that it names more than once
	repeats  map[*entry]bool // the same
	bare     []*entry        // that it says do not exist, by an entry without a body
	removed  []*entry        // the same, by delta's list
	failed   []failed        // that it has an error for, and nothing else
	ending   map[*entry]bool // that it says are removed (false) or have an error (true); nil without errors
	aliased  []*aliased
	byIndex  map[int]*aliased  // the same
	mentions map[mention]int   // of resources that have aliases
	spelled  map[*entry]string // what it spells otherwise than canonically
	passed   bool              // an error was passed over

	removes  int      // names that it lists as removed
	unsifted [][]byte // of them, where they are many: those that were not looked at yet
	siftSum  uint64   // of those that were, for fingerprint

	foreign      int           // structured names that the server does not answer for
	firstForeign string        // of them
	heard        []*collection // that it speaks of, or of something in them
	healed       []healed      // of them, that had an error before
	changed      bool          // something in it was new
	missed       bool          // something in it was not wanted any more when it was decoded
	first        bool          // of the type on its stream
	resumes      bool          // it spoke of something whose version was withheld
	spoken       int           // of how many entries it speaks
	whole        bool          // of all that there were when it came

	before   int   // bytes of payloads that stand before those of the last task
	fresh    int   // bytes of payloads that have to be decoded
	grows    int64 // by how much they are more than what is held in their place
	released bool  // its frame is
	drops    int   // that the type had when the entries were found

	valid, invalid int // entries, as [Exchange] counts them

	form  wildForm             // how the wildcard was asked for when it came
	asked map[*collection]bool // whose request had left, as the stream ended; nil before
	named map[*entry]bool      // that were asked for then

	later []sorted  // what waits for the judgement of a guard
	then  *Received // a response of the type that has to wait for this one
}

// healed is a collection that a response speaks of, and the error that it had.
type healed struct {
	*collection
	fault *Fault
}

// on says whether a response of this incarnation is being worked on, or waits for it.
func (resp *response) on(r Ref) bool {
	return resp != nil && (resp.ref == r || resp.then != nil && resp.then.Ref == r)
}

var hashSeed = maphash.MakeSeed()

// hashOf is never 0.
func hashOf(payload []byte) uint64 { return maphash.Bytes(hashSeed, payload) | 1 }

// hashOfEntry is of a payload and the metadata that may be refused with it. It tells the
// bytes of a locator from the same bytes of a resource.
func hashOfEntry(payload []byte, locator bool, a *wire.Attributes) uint64 {
	hash := hashOf(payload)
	if a != nil && len(a.Metadata) > 0 {
		hash = (hash + hashOf(a.Metadata)) | 1
	}
	if locator {
		hash ^= 1 << 63
	}
	return hash
}

var (
	errTwice    = errors.New("the response names the resource more than once")
	errNameless = errors.New("the resource has no name")
	errNoBody   = errors.New("the entry holds no resource")
	errGlob     = errors.New("the name is that of a collection")
)

// received takes a response. Reading stands still from here to Delivered.
func (m *Machine) received(now time.Time, s *stream, r *wire.Response) {
	s.stopClocks(now)
	s.responded, s.reading, s.barren = true, false, 0
	s.undelivered = append(s.undelivered, s.ref())
	m.tellUp(s)
	m.take(now, s, r)
}

// take works on a response, or puts it off until another of its type is done with.
func (m *Machine) take(now time.Time, s *stream, r *wire.Response) {
	if r.TypeURL == "" {
		r.TypeURL = s.untyped(r)
	}
	ts := s.types[r.TypeURL]
	if ts != nil && ts.busy != nil {
		if old := ts.busy.then; old != nil {
			s.dropUndelivered(old.Ref)
		}
		ts.busy.then = &Received{s.ref(), r} // ts.busy is of an incarnation that is over
		return
	}
	if ts != nil && ts.asked {
		m.revert(now, s, ts)
	}
	n := Notice{
		Kind: NoticeResponse, Server: s.server, TypeURL: r.TypeURL, Version: r.Version, Stream: s.ref(),
		Ignored:  ts == nil || !ts.asked,
		Exchange: &Exchange{Nonce: r.Nonce, ControlPlane: r.ControlPlane, Resources: len(r.Resources), Size: r.Size},
	}
	m.fx.Notify = append(m.fx.Notify, n)
	if n.Ignored {
		m.ignore(s, ts, r)
		return
	}
	switch {
	case s.writing != ts:
	case ts.left:
		ts.overtaken()
	default:
		m.written(now, ts) // nothing was asked for before it, so it has left
	}
	m.serial++
	resp := &response{Response: r, ref: s.ref(), ts: ts, serial: m.serial, form: ts.form, first: !ts.answered}
	ts.nonce, ts.answered, ts.lastPure = r.Nonce, true, time.Time{}
	m.acquit(ts)
	resp.bodies = slices.ContainsFunc(r.Resources, func(r wire.Resource) bool { return r.HasBody })
	ts.busy = resp
	m.sift(now, resp)
}

// work finds what a response speaks of, sorts what it says and has decoded what is new in it.
func (m *Machine) work(now time.Time, resp *response) {
	ts := resp.ts
	resp.retire()
	m.found = m.found[:0]
	for i := range resp.Resources {
		m.found = append(m.found, m.find(resp, i))
	}
	resp.note(now, m.found)
	m.logForeign(resp)
	resp.findAliases(m.found)
	resp.whole, resp.drops = resp.spoken == ts.entries.len(), ts.drops
	resp.findRemoved()
	m.findErrors(resp)
	for i, e := range m.found {
		switch {
		case e == nil:
		case resp.repeats[e]:
			resp.invalid++
		default:
			m.sort(now, resp, i, e)
		}
	}
	ts.remember(&m.found)
	for _, a := range resp.aliased {
		for _, e := range a.keys {
			if !resp.repeats[e] {
				m.sort(now, resp, a.index, e)
			}
		}
	}
	if resp.fresh > releasable && resp.fresh > resp.Size/2 {
		resp.released = true
		m.fx.Release = append(m.fx.Release, resp.ref)
	}
	resp.results, resp.missing = make([][]Result, len(resp.tasks)), len(resp.tasks)
	m.fx.Decode = append(m.fx.Decode, resp.tasks...)
	m.proceed(now, resp)
}

// overtaken: a response may be the answer to the message with the writer, with Written late,
// or to one before. A collection that is ready too early is better than one whose answer was
// missed.
func (ts *typeState) overtaken() {
	if ts.starting {
		ts.starting, ts.star.known = false, true
	}
	for _, e := range ts.fresh {
		if e.isGlob() {
			e.of.known = true
		}
	}
}

// ignore passes over a response of a type that was not asked for on this stream: it is
// neither ACKed nor NACKed, but its nonce counts if the type is asked for later.
func (m *Machine) ignore(s *stream, ts *typeState, r *wire.Response) {
	switch {
	case len(r.TypeURL)+len(r.Nonce) > maxIgnoredBytes: // H-9
		delete(s.ignored, r.TypeURL)
		if ts != nil {
			ts.nonce = ""
		}
	case ts != nil:
		ts.nonce = r.Nonce
	case s.ignored == nil:
		s.ignored = map[string]string{r.TypeURL: r.Nonce}
	case len(s.ignored) < maxIgnored || s.ignored[r.TypeURL] != "":
		s.ignored[r.TypeURL] = r.Nonce
	}
	if s.troubled() {
		m.recovered(s)
	}
	m.fx.Consumed = append(m.fx.Consumed, s.ref())
}

// finding is what becomes of an entry of a response.
type finding struct {
	kind findingKind
	err  error  // why it is invalid
	hash uint64 // of a payload that was refused before; else 0
}

type findingKind uint8

const (
	isNew  findingKind = iota + 1 // it has to be decoded
	isHeld                        // what is held came again
	isBeat                        // of what is held
	isBare                        // there is no such resource
	isInvalid
)

// sorted is an entry of a response of which more is known than what it names.
type sorted struct {
	index int
	entry *entry
	finding
}

// sort has an entry of a response decoded, or does what it means. With a guard that waits
// for the judgement.
func (m *Machine) sort(now time.Time, resp *response, i int, e *entry) {
	switch it := (sorted{i, e, resp.assess(i, e)}); {
	case it.kind == isNew:
		resp.decode(i, e)
	case resp.ts.typ.Guarded:
		resp.later = append(resp.later, it)
	default:
		m.conclude(now, resp, it)
	}
}

// assess compares an entry of a response with what is known, and changes nothing.
func (resp *response) assess(i int, e *entry) finding {
	r := &resp.Resources[i]
	switch err := resp.ts.faultOf(r); {
	case e.isGlob():
		return finding{kind: isInvalid, err: errGlob}
	case err != nil:
		return finding{kind: isInvalid, err: err}
	case resp.oversize(r) != nil:
		return finding{kind: isInvalid, err: resp.oversize(r)}
	case r.HasBody:
		return resp.compare(i, e)
	case resp.heartbeat(r, e):
		return finding{kind: isBeat}
	case resp.ts.stream.Delta:
		return finding{kind: isBare}
	}
	return finding{kind: isInvalid, err: errNoBody}
}

// oversize says that a payload is larger than any may be.
func (resp *response) oversize(r *wire.Resource) error {
	most := resp.ts.stream.maxResource
	if most <= 0 || len(r.Payload) <= most {
		return nil
	}
	return fmt.Errorf("the resource has %d bytes, over the limit of %d (Config.MaxResourceSize)", len(r.Payload), most)
}

// compare compares a payload with what is held, and with what was refused.
func (resp *response) compare(i int, e *entry) finding {
	if resp.renews(i, e) {
		return finding{kind: isNew}
	}
	r := &resp.Resources[i]
	locator := resp.ts.redirects(r)
	if resp.holds(i, e, locator) && !e.turns() {
		return finding{kind: isHeld}
	}
	if f := e.fault; f != nil && f.refused != 0 && f.refused == resp.hashOf(i, locator) {
		return finding{isInvalid, f.Err, f.refused}
	}
	if err := resp.overfills(i, e, len(r.Payload)); err != nil {
		return finding{kind: isInvalid, err: err}
	}
	return finding{kind: isNew}
}

// conclude does what an entry of a response means that needs no decoding.
func (m *Machine) conclude(now time.Time, resp *response, it sorted) {
	e, r := it.entry, &resp.Resources[it.index]
	switch it.kind {
	case isHeld:
		resp.taken(it.index, e, resp.ts.flaws[e])
		resp.describe(it.index, e)
		m.confirm(e, resp.versionOf(r))
		resp.giveAs(e)
		resp.ts.stream.ttls.received(now, e, r)
	case isBeat:
		resp.valid++
		resp.ts.stream.ttls.received(now, e, r)
	case isBare:
		resp.bare = append(resp.bare, e)
	case isInvalid:
		m.refuse(now, resp, it.index, e, it.err, it.hash)
	case isNew:
	}
}

// decode has a payload decoded, once for all names of a resource.
func (resp *response) decode(i int, e *entry) {
	resp.changed = true
	a := resp.byIndex[i]
	if a != nil && a.task != nil {
		it := &a.task.Items[a.item]
		it.also = append(it.also, e)
		return
	}
	if len(resp.tasks) == 0 || len(resp.lastTask().Items) == chunk || resp.fresh-resp.before >= chunkBytes {
		resp.before = resp.fresh
		left := min(chunk, len(resp.Resources)-i)
		resp.tasks = append(resp.tasks, &Task{
			Server: resp.ts.stream.server, Type: resp.ts.typ, response: resp, index: len(resp.tasks),
			Items: make([]Item, 0, left),
		})
	}
	resp.fresh += len(resp.Resources[i].Payload)
	resp.grows += int64(len(resp.Resources[i].Payload)) - e.counted()
	t := resp.lastTask()
	t.Items = append(t.Items, resp.itemOf(i, e))
	if a != nil {
		a.task, a.item = t, len(t.Items)-1
	}
}

// renews says that an entry of a response is new though its bytes may not be: the response
// says so, or one did that a guard refused.
func (resp *response) renews(i int, e *entry) bool { return resp.Renewed[i] || resp.ts.renewed[e] }

// holds says that what an entry of a response holds is what was accepted, but for aliases.
func (resp *response) holds(i int, e *entry, locator bool) bool {
	if !e.held() || e.locator != locator || !resp.equals(i, e) {
		return false
	}
	was, said := e.attributes(), resp.Resources[i].Attributes
	return was == said || said.Same(was)
}

// itemOf is what is to be decoded of an entry of a response.
func (resp *response) itemOf(i int, e *entry) Item {
	r := &resp.Resources[i]
	it := Item{Raw: r.Payload, Locator: resp.ts.redirects(r), Attributes: r.Attributes, entry: e, index: i}
	if e.held() && e.locator == it.Locator && !resp.renews(i, e) && !e.turns() {
		it.Old, it.OldAttributes = e.raw, e.attributes()
	}
	return it
}

func (resp *response) lastTask() *Task { return resp.tasks[len(resp.tasks)-1] }

// heartbeat says that an entry without a resource is one of what is held.
func (resp *response) heartbeat(r *wire.Resource, e *entry) bool {
	const virtualHost = "type.googleapis.com/envoy.config.route.v3.VirtualHost"
	version := resp.versionOf(r)
	return e.held() && !e.foreign() && version != "" && version == e.version && resp.ts.typ.URL != virtualHost
}

// versionOf is the version of an entry: delta's own, else the response's.
func (resp *response) versionOf(r *wire.Resource) string {
	if resp.ts.stream.Delta {
		return string(r.Version)
	}
	return resp.Version
}

// refuse notes that an entry is invalid.
func (m *Machine) refuse(now time.Time, resp *response, i int, e *entry, err error, hash uint64) {
	resp.invalid++
	resp.line(i, e.name, err)
	f := &Fault{Kind: FaultRejected, Err: err, At: now, Version: resp.Version, refused: hash}
	if resp.ts.stream.Delta && i < len(resp.Resources) {
		f.Version = string(resp.Resources[i].Version)
	}
	if i < len(resp.Resources) {
		resp.ts.refusals.add(f, resp.Resources[i].Payload)
	}
	m.reject(e, f)
}

// taken notes that an entry is used, but for its flaws.
func (resp *response) taken(i int, e *entry, flaws []error) {
	if len(flaws) == 0 {
		resp.valid++
		return
	}
	resp.invalid++
	for _, err := range flaws {
		resp.line(i, e.name, err)
	}
}

// namedTwice makes a name invalid that a response holds more than once.
func (resp *response) namedTwice(i int, e *entry) {
	if !resp.repeats[e] {
		if resp.repeats == nil {
			resp.repeats = map[*entry]bool{}
		}
		resp.repeats[e] = true
		resp.twice = append(resp.twice, e)
	}
	resp.line(i, e.name, errTwice)
}

// line adds what is wrong with an entry of the response. What the NACK has no room for is
// not kept: there may be a million.
func (resp *response) line(i int, name string, err error) {
	if resp.told > maxMessage {
		return
	}
	line := fmt.Sprintf("%s: %v", name, err)
	switch {
	case i >= 0 && name == "":
		line = fmt.Sprintf("resource index %d: %v", i, err)
	case i >= 0:
		line = fmt.Sprintf("resource index %d: %s", i, line)
	}
	resp.lines = append(resp.lines, line)
	resp.told += len(line)
}
