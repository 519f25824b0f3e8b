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
	link   *link
	serial uint32

	tasks   []*Task
	results [][]Result // of the tasks, as they come in
	missing int        // tasks that are not back
	next    int        // the first task that is not committed

	lines    []string               // what is wrong with it, for the NACK: as many as that has room for
	told     int                    // bytes of lines
	bodies   bool                   // an entry has a resource
	nameless bool                   // an entry's name could not be read
	twice    []*subscription        // that it names more than once
	repeats  map[*subscription]bool // the same
	bare     []*subscription        // that it says do not exist, by an entry without a body
	removed  []*subscription        // the same, by delta's list
	failed   []failed               // that it has an error for, and nothing else
	ending   map[*subscription]bool // that it says are removed (false) or have an error (true); nil without errors
	aliased  []*aliased
	byIndex  map[int]*aliased         // the same
	mentions map[mention]int          // of resources that have aliases
	spelled  map[*subscription]string // what it spells otherwise than canonically
	passed   bool                     // an error was passed over

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

	valid, invalid int // entries, as [Exchange] counts them

	form        wildForm               // how the wildcard was requested when it came
	collections map[*collection]bool   // whose request had left, as the stream ended; nil before
	names       map[*subscription]bool // that were subscribed to then, in time for it

	later []sorted     // what waits for the judgement of a guard
	plan  []conclusion // that is judged; nil where there is no guard
	then  *Received    // a response of the type that has to wait for this one
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
	// FC-1: timers stand still.
	s.clock.hold(now)
	s.responded, s.reading = true, false
	s.undelivered = append(s.undelivered, s.ref())
	m.tellUp(s)
	m.take(now, s, r)
}

// take works on a response, or puts it off until another of its type is done with.
func (m *Machine) take(now time.Time, s *stream, r *wire.Response) {
	if r.TypeURL == "" {
		r.TypeURL = s.untyped(r)
	}
	l := s.types[r.TypeURL]
	if l != nil && l.busy != nil {
		if old := l.busy.then; old != nil {
			s.dropUndelivered(old.Ref)
		}
		l.busy.then = &Received{s.ref(), r} // link.busy is of an incarnation that is over
		return
	}
	if l != nil && l.requested {
		m.revert(now, l)
	}
	n := Notice{
		Kind: NoticeResponse, Server: s.server, TypeURL: r.TypeURL, Version: r.Version, Stream: s.ref(),
		Ignored:  l == nil || !l.requested,
		Exchange: &Exchange{Nonce: r.Nonce, ControlPlane: r.ControlPlane, Resources: len(r.Resources), Size: r.Size},
	}
	m.fx.Notify = append(m.fx.Notify, n)
	if n.Ignored {
		for _, q := range s.quirks {
			q.received(m, now, nil)
		}
		m.ignore(s, l, r)
		return
	}
	switch {
	case s.writing != l:
	case l.left:
		// A collection that is complete too early is better than one whose answer was missed.
		l.overtaken = true
	default:
		m.written(now, l) // nothing was subscribed to before it, so it has left
	}
	m.serial++
	resp := &response{Response: r, ref: s.ref(), link: l, serial: m.serial, form: l.form, first: !l.answered}
	l.nonce, l.answered, l.pacer = r.Nonce, true, pacer{}
	for _, q := range s.quirks {
		q.received(m, now, l)
	}
	resp.bodies = slices.ContainsFunc(r.Resources, func(r wire.Resource) bool { return r.HasBody })
	l.busy = resp
	m.sift(now, resp)
}

// work finds what a response speaks of, sorts what it says and has decoded what is new in it.
func (m *Machine) work(now time.Time, resp *response) {
	l := resp.link
	resp.retire()
	m.found = m.found[:0]
	for i := range resp.Resources {
		m.found = append(m.found, m.find(resp, i))
	}
	resp.note(now, m.found)
	m.logForeign(resp)
	resp.findAliases(m.found)
	resp.whole = resp.spoken == l.subs.len()
	resp.findRemoved()
	m.findErrors(resp)
	for i, sub := range m.found {
		switch {
		case sub == nil:
		case resp.repeats[sub]:
			resp.invalid++
		default:
			m.sort(now, resp, i, sub)
		}
	}
	l.remember(&m.found)
	for _, a := range resp.aliased {
		for _, sub := range a.keys {
			if !resp.repeats[sub] {
				m.sort(now, resp, a.index, sub)
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

// ignore passes over a response of a type that was not requested on this stream: it is
// neither ACKed nor NACKed, but its nonce counts if the type is requested later.
func (m *Machine) ignore(s *stream, l *link, r *wire.Response) {
	switch {
	case len(r.TypeURL)+len(r.Nonce) > maxIgnoredBytes: // H-9
		delete(s.ignored, r.TypeURL)
		if l != nil {
			l.nonce = ""
		}
	case l != nil:
		l.nonce = r.Nonce
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
	sub   *subscription
	finding
}

// sort has an entry of a response decoded, or does what it means. With a guard that waits
// for the judgement.
func (m *Machine) sort(now time.Time, resp *response, i int, sub *subscription) {
	switch it := (sorted{i, sub, resp.assess(i, sub)}); {
	case it.kind == isNew:
		resp.decode(i, sub)
	case it.kind == isBare:
		resp.bare = append(resp.bare, sub)
	case resp.link.typ.Guarded:
		resp.later = append(resp.later, it)
	default:
		m.conclude(now, resp, it)
	}
}

// assess compares an entry of a response with what is known, and changes nothing.
func (resp *response) assess(i int, sub *subscription) finding {
	r := &resp.Resources[i]
	switch err := resp.link.faultOf(r); {
	case sub.isCollection():
		return finding{kind: isInvalid, err: errGlob}
	case err != nil:
		return finding{kind: isInvalid, err: err}
	case resp.oversize(r) != nil:
		return finding{kind: isInvalid, err: resp.oversize(r)}
	case r.HasBody:
		return resp.compare(i, sub)
	case resp.heartbeat(r, sub):
		return finding{kind: isBeat}
	case resp.link.stream.Delta:
		return finding{kind: isBare}
	}
	return finding{kind: isInvalid, err: errNoBody}
}

// oversize says that a payload is larger than any may be.
func (resp *response) oversize(r *wire.Resource) error {
	most := resp.link.stream.maxResource
	if most <= 0 || len(r.Payload) <= most {
		return nil
	}
	return fmt.Errorf("the resource has %d bytes, over the limit of %d (Config.MaxResourceSize)", len(r.Payload), most)
}

// compare compares a payload with what is held, and with what was refused.
func (resp *response) compare(i int, sub *subscription) finding {
	if resp.renews(i, sub) {
		return finding{kind: isNew}
	}
	r := &resp.Resources[i]
	locator := resp.link.redirects(r)
	// WATCH-4: what is unchanged is not decoded.
	if resp.holds(i, sub, locator) && !sub.turns() {
		return finding{kind: isHeld}
	}
	if f := sub.fault; f != nil && f.refused != 0 && f.refused == resp.hashOf(i, locator) {
		return finding{isInvalid, f.Err, f.refused}
	}
	if err := resp.overfills(i, sub, len(r.Payload)); err != nil {
		return finding{kind: isInvalid, err: err}
	}
	return finding{kind: isNew}
}

// conclude does what an entry of a response means that needs no decoding.
func (m *Machine) conclude(now time.Time, resp *response, it sorted) {
	sub, r := it.sub, &resp.Resources[it.index]
	switch it.kind {
	case isHeld:
		resp.taken(it.index, sub, resp.link.flaws[sub])
		resp.describe(it.index, sub)
		m.confirm(sub, resp.versionOf(r))
		resp.giveAs(sub)
		m.receivedTTL(now, sub, r)
	case isBeat:
		resp.valid++
		// TTL-3: a heartbeat sets the time anew.
		m.receivedTTL(now, sub, r)
	case isInvalid:
		m.refuse(now, resp, it.index, sub, it.err, it.hash)
	case isNew, isBare:
	}
}

// decode has a payload decoded, once for all names of a resource.
func (resp *response) decode(i int, sub *subscription) {
	resp.changed = true
	a := resp.byIndex[i]
	if a != nil && a.task != nil {
		it := &a.task.Items[a.item]
		it.also = append(it.also, sub)
		return
	}
	if len(resp.tasks) == 0 || len(resp.lastTask().Items) == chunk || resp.fresh-resp.before >= chunkBytes {
		resp.before = resp.fresh
		left := min(chunk, len(resp.Resources)-i)
		resp.tasks = append(resp.tasks, &Task{
			Server: resp.link.stream.server, Type: resp.link.typ, response: resp, index: len(resp.tasks),
			Items: make([]Item, 0, left),
		})
	}
	resp.fresh += len(resp.Resources[i].Payload)
	resp.grows += int64(len(resp.Resources[i].Payload)) - sub.counted()
	t := resp.lastTask()
	t.Items = append(t.Items, resp.itemOf(i, sub))
	if a != nil {
		a.task, a.item = t, len(t.Items)-1
	}
}

// renews says that an entry of a response is new though its bytes may not be: the response
// says so, or one did that a guard refused.
func (resp *response) renews(i int, sub *subscription) bool {
	return resp.Renewed[i] || resp.link.renewed[sub]
}

// holds says that what an entry of a response holds is what was accepted, but for aliases.
func (resp *response) holds(i int, sub *subscription, locator bool) bool {
	if !sub.held() || sub.locator != locator || !resp.equals(i, sub) {
		return false
	}
	was, said := sub.attributes(), resp.Resources[i].Attributes
	// TYPE-5: what stands beside the value counts.
	return was == said || said.Same(was)
}

// itemOf is what is to be decoded of an entry of a response.
func (resp *response) itemOf(i int, sub *subscription) Item {
	r := &resp.Resources[i]
	it := Item{Raw: r.Payload, Locator: resp.link.redirects(r), Attributes: r.Attributes, sub: sub, index: i}
	if sub.held() && sub.locator == it.Locator && !resp.renews(i, sub) && !sub.turns() {
		it.Old, it.OldAttributes = sub.raw, sub.attributes()
	}
	return it
}

func (resp *response) lastTask() *Task { return resp.tasks[len(resp.tasks)-1] }

// heartbeat says that an entry without a resource is one of what is held.
func (resp *response) heartbeat(r *wire.Resource, sub *subscription) bool {
	const virtualHost = "type.googleapis.com/envoy.config.route.v3.VirtualHost"
	version := resp.versionOf(r)
	// DELTA-12: only at the accepted version.
	return sub.held() && !sub.foreign() && version != "" && version == sub.version && resp.link.typ.URL != virtualHost
}

// versionOf is the version of an entry: delta's own, else the response's.
func (resp *response) versionOf(r *wire.Resource) string {
	if resp.link.stream.Delta {
		return string(r.Version)
	}
	return resp.Version
}

// refuse notes that an entry is invalid.
func (m *Machine) refuse(now time.Time, resp *response, i int, sub *subscription, err error, hash uint64) {
	resp.invalid++
	resp.line(i, sub.name, err)
	f := &Fault{Kind: FaultRejected, Err: err, At: now, Version: resp.Version, refused: hash}
	if resp.link.stream.Delta && i < len(resp.Resources) {
		f.Version = string(resp.Resources[i].Version)
	}
	if i < len(resp.Resources) {
		resp.link.refusals.add(f, resp.Resources[i].Payload)
	}
	m.reject(sub, f)
}

// taken notes that an entry is used, but for its flaws.
func (resp *response) taken(i int, sub *subscription, flaws []error) {
	if len(flaws) == 0 {
		resp.valid++
		return
	}
	resp.invalid++
	for _, err := range flaws {
		resp.line(i, sub.name, err)
	}
}

// namedTwice makes a name invalid that a response holds more than once.
func (resp *response) namedTwice(i int, sub *subscription) {
	if !resp.repeats[sub] {
		if resp.repeats == nil {
			resp.repeats = map[*subscription]bool{}
		}
		resp.repeats[sub] = true
		resp.twice = append(resp.twice, sub)
	}
	resp.line(i, sub.name, errTwice)
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
