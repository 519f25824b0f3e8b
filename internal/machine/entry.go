package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Status of a resource, with the names and numbers of CSDS's ClientResourceStatus.
type Status uint8

// The statuses.
const (
	StatusUnknown Status = iota
	StatusRequested
	StatusDoesNotExist
	StatusAcked
	StatusNacked
	StatusReceivedError
	StatusTimeout
)

func (s Status) String() string {
	return [...]string{
		"UNKNOWN", "REQUESTED", "DOES_NOT_EXIST", "ACKED", "NACKED", "RECEIVED_ERROR", "TIMEOUT",
	}[s]
}

// ambient says which trouble the watches of a held value were last told of.
type ambient uint8

const (
	ambientNone   ambient = iota
	ambientOwn            // of the resource
	ambientServer         // of its server
)

// entry is one resource: who watches it, what is held and what is known of it. There may be
// a million, so what is rare or shared stands elsewhere.
type entry struct {
	name    string
	of      *collection
	watches []*Watch // but those that wait in typeState.joining

	raw     []byte // the accepted payload; nil if none is held
	version string
	updated int64  // when it was accepted, in Unix nanoseconds
	fault   *Fault // what is wrong with it; nil if nothing
	timer   uint32 // that runs for it; 0 if none
	seen    uint32 // the last response that spoke of it
	gen     uint16 // grows with each change of raw; it may come round

	from     uint16 // who said what is known: 0 for this server, or the number of another, from 1
	status   Status
	ambient  ambient
	reason   Reason // of the absence
	shared   bool   // watches is in a notice, or a watch's own
	joins    bool   // typeState.joining has watches of it
	asked    bool   // named on this incarnation of the stream
	noted    bool   // in typeState.changed
	locator  bool   // raw says where the resource is, and is not the resource
	orphan   bool   // told that its server is in trouble, with nothing held
	withheld bool   // held, and the server was not told the version; not heard of since
	pinned   bool   // wanted without watches: a glob, or a name that stands by
	// selfNamed says that raw came without a wrapper that names it.
	selfNamed bool
}

func (e *entry) wanted() bool { return len(e.watches) > 0 || e.joins || e.pinned }

func (e *entry) isGlob() bool { return e.of.self == e }

func (e *entry) held() bool { return e.raw != nil }

// foreign says that another server said what is known, and this one has not confirmed it.
func (e *entry) foreign() bool { return e.from != 0 }

// standsBy says that the entry is at a server that is not active.
func (e *entry) standsBy() bool { return e.pinned && (!e.isGlob() || e.of.standby) }

// kept says that the value is held against the server's word that it is gone.
func (e *entry) kept() bool { return e.held() && e.status == StatusDoesNotExist }

// known says that the server spoke of the resource in a way that a wildcard's watches
// were told of.
func (e *entry) known() bool {
	return e.held() || e.status == StatusNacked || e.status == StatusReceivedError
}

// authority of the name.
func (e *entry) authority() string {
	switch {
	case len(e.watches) > 0:
		return e.watches[0].Authority
	case e.joins:
		return e.joining()[0].Authority
	}
	return e.of.authority
}

// joining are watches that wait for the held value to be decoded.
func (e *entry) joining() []*Watch { return e.of.ts.joining[e] }

func (e *entry) setJoining(ws []*Watch) {
	if e.joins = len(ws) > 0; e.joins {
		e.of.ts.joining[e] = ws
	} else {
		delete(e.of.ts.joining, e)
	}
}

// own returns the watches for changing.
func (e *entry) own() []*Watch {
	if e.shared {
		e.watches, e.shared = slices.Clone(e.watches), false
	}
	return e.watches
}

// arrived ends the waiting of watches that joined: they will be told with the others.
func (e *entry) arrived() {
	if e.joins {
		e.watches = append(e.own(), e.joining()...)
		e.setJoining(nil)
	}
}

// notice begins what everyone interested in the entry is told.
func (m *Machine) notice(e *entry, kind NoticeKind) *Notice {
	return m.noticeTo(e, kind, e.handOut(), e.audience())
}

func (m *Machine) noticeTo(e *entry, kind NoticeKind, to, all []*Watch) *Notice {
	if len(to) == 0 && len(all) == 0 {
		return &Notice{}
	}
	m.fx.Notify = append(m.fx.Notify, Notice{
		Kind: kind, Server: e.server(), TypeURL: e.of.ts.typ.URL, Name: e.name,
		Authority: e.authority(), Version: e.version, Stream: e.of.ts.stream.ref(), To: to, All: all,
	})
	return &m.fx.Notify[len(m.fx.Notify)-1]
}

// audience is the watches that hear of an entry without naming it: nobody does of an alias.
func (e *entry) audience() []*Watch {
	if e.byAlias() {
		return nil // ALIAS-2
	}
	return e.covering()
}

// covering are the watches of its collection, and those of the wildcard, which hears of all that
// its server says.
func (e *entry) covering() []*Watch {
	all := e.of.watching()
	if star := e.of.ts.star; e.of != star && len(star.watches) > 0 {
		all = slices.Concat(all, star.watches)
	}
	return all
}

// blame says that the notice is because of trouble; if that is with the server, it is with
// the active one, whoever said what is held.
func (n *Notice) blame(e *entry, f *Fault) {
	if n.Fault = f; f != nil && (f.Kind == FaultConnection || f.Kind == FaultStream) {
		n.Server, n.Fault = e.of.ts.stream.server, e.of.chain.joined(f)
	}
}

// server that said what is known.
func (e *entry) server() int {
	if e.foreign() {
		return int(e.from) - 1
	}
	return e.of.ts.stream.server
}

// hold keeps a payload in place of the one that is held. One that is shared with another entry is
// counted there.
func (e *entry) hold(raw []byte, shared bool) {
	e.uncount()
	e.raw = raw
	e.count(shared)
}

// count counts what is held of an entry; shared says that it is counted with another.
func (e *entry) count(shared bool) {
	ts := e.of.ts
	switch {
	case !shared:
		ts.held += int64(len(e.raw))
	case ts.aliases.shared == nil:
		ts.aliases.shared = map[*entry]bool{e: true}
	default:
		ts.aliases.shared[e] = true
	}
}

// uncount takes back what is counted of an entry.
func (e *entry) uncount() {
	e.of.ts.held -= e.counted()
	delete(e.of.ts.aliases.shared, e)
}

// counted is how many bytes are counted of an entry.
func (e *entry) counted() int64 {
	if e.of.ts.aliases.shared[e] {
		return 0
	}
	return int64(len(e.raw))
}

// overfills says that too much would be held if an entry took a payload of so many bytes.
func (resp *response) overfills(i int, e *entry, size int) error {
	s, a := resp.ts.stream, resp.byIndex[i]
	if s.maxHeld <= 0 || a != nil && a.task != nil { // it is shared
		return nil
	}
	held := resp.grows + int64(size)
	for _, ts := range s.order {
		held += ts.held
	}
	held -= e.counted()
	if held <= s.maxHeld {
		return nil
	}
	return fmt.Errorf("the resource has %d bytes; with it more than %d bytes of the server's resources would be held (Config.MaxHeldSize)", size, s.maxHeld)
}

// accept takes a new value, whose payload may be shared with another entry.
func (m *Machine) accept(now time.Time, e *entry, raw []byte, value any, version string, shared bool) {
	m.returned(e)
	if e.turns() && !e.byAlias() { // ALIAS-2: what is an alias from now on leaves its collection
		n := m.noticeTo(e, NoticeDoesNotExist, nil, e.covering())
		n.Version, n.Reason = "", ReasonRemoved
	}
	if raw == nil {
		raw = []byte{} // an empty message is one
	}
	e.hold(raw, shared)
	e.version, e.updated = version, now.UnixNano()
	e.status, e.fault = StatusAcked, nil
	e.ambient, e.orphan, e.from, e.timer = ambientNone, false, 0, 0
	e.gen++
	delete(e.of.ts.renewed, e)
	delete(e.of.ts.aliases.given, e)
	e.arrived()
	n := m.notice(e, NoticeUpdated)
	n.Value, n.Raw, n.Attributes = value, raw, e.attributes()
	if f := e.of.ts.stream.knownTrouble(); f != nil {
		m.tellFault(e, f)
	}
}

// returned tells the operator that a resource is back whose deletion was ignored.
func (m *Machine) returned(e *entry) {
	if e.kept() {
		e.of.ts.stream.graces.clear(e)
		m.log(e, false, "a resource that the server had deleted is back")
	}
}

// confirm notes that a held value was sent again unchanged.
func (m *Machine) confirm(e *entry, version string) {
	m.returned(e)
	delete(e.of.ts.aliases.given, e)
	e.version, e.from = version, 0
	m.absolve(e)
}

// absolve ends what was wrong with a held value.
func (m *Machine) absolve(e *entry) {
	e.status = StatusAcked
	if e.fault != nil {
		e.fault = nil
		switch e.ambient {
		case ambientOwn:
			m.tellAmbient(e, nil, ambientNone)
		case ambientServer: // those of the wildcard were not told of the server
			m.noticeTo(e, NoticeAmbient, nil, e.audience())
		case ambientNone:
		}
	}
}

// reject notes that a resource was refused; fault.Kind is FaultRejected.
func (m *Machine) reject(e *entry, f *Fault) {
	if e.isGlob() {
		m.failGlob(f.At, e.of, f, false)
		return
	}
	m.spoil(e, f, StatusNacked, e.of.ts.stream.FailOnDataErrors)
}

// spoil notes a fault of the resource itself. With drop a held value goes. The same fault
// again is told to nobody.
func (m *Machine) spoil(e *entry, f *Fault, status Status, drop bool) {
	e.timer = 0
	again := f.same(e.fault) && !e.orphan
	e.status, e.fault = status, f
	if e.held() && drop {
		e.drop()
		again = false
	}
	if !e.held() {
		e.from = 0
	}
	if again {
		return
	}
	if e.held() {
		m.tellAmbient(e, f, ambientOwn)
		return
	}
	e.orphan = false
	m.notice(e, NoticeFailed).Fault = f
}

// setFlaws notes what is wrong with parts of the value, so that it is told each time that
// the same comes again.
func (ts *typeState) setFlaws(e *entry, flaws []error) {
	switch {
	case len(flaws) == 0:
		delete(ts.flaws, e)
	case ts.flaws == nil:
		ts.flaws = map[*entry][]error{e: flaws}
	default:
		ts.flaws[e] = flaws
	}
}

// drop lets go of the value.
func (e *entry) drop() {
	e.hold(nil, false)
	e.version, e.from = "", 0
	e.of.ts.stream.strip(e)
	delete(e.of.ts.flaws, e)
	e.ambient = ambientNone
	e.gen++
	e.arrived()
}

// remove takes the server's word that there is no such resource. Known absence is told
// once.
func (m *Machine) remove(now time.Time, e *entry, reason Reason) {
	if e.isGlob() {
		m.empty(now, e.of, reason)
		return
	}
	e.timer = 0
	if e.held() && e.of.ts.keepFor() != 0 {
		m.keep(now, e, reason)
		return
	}
	m.gone(e, reason)
}

// keepFor is how long what a server deletes is held all the same: 0 for not at all, negative for
// good (gRFC A53).
func (ts *typeState) keepFor() time.Duration {
	if ts.stream.KeepDeleted {
		return -1
	}
	return ts.typ.Keep
}

// keepsDeleted says whether what a server deletes is held for good.
func (ts *typeState) keepsDeleted() bool { return ts.keepFor() < 0 }

// lapse ends a resource whose time to live ran out, as if the server had deleted it; that
// it may be told to keep what is deleted does not matter, since the time is of its making.
func (m *Machine) lapse(e *entry) {
	e.of.ts.lapsed = e.of.ts.lapsed || e.of.wanted()
	m.gone(e, ReasonTTL)
}

// gone notes that there is no such resource.
func (m *Machine) gone(e *entry, reason Reason) {
	told := e.status == StatusDoesNotExist && !e.held() && !e.orphan
	var all []*Watch // of collections, which were told of it
	if e.known() {
		all = e.audience()
	}
	e.of.ts.aliases.unlink(e)
	e.drop()
	e.status, e.fault, e.orphan, e.reason = StatusDoesNotExist, nil, false, reason
	if !told {
		m.noticeTo(e, NoticeDoesNotExist, e.handOut(), all).Reason = reason
	}
	if !e.wanted() && !e.noted {
		e.of.ts.drop(e) // a collection's member
	}
}

// empty takes the server's word that a glob has no members (xRFC TP1), but those that the
// same response holds.
func (m *Machine) empty(now time.Time, c *collection, reason Reason) {
	for _, e := range c.inOrder() {
		if e.known() && e.seen != c.seen {
			m.remove(now, e, reason)
		}
	}
}

// ErrDeletionKept is that a deletion is ignored, for good or for a while.
var ErrDeletionKept = errors.New("the server deleted the resource; the last value is kept")

// keep ignores a deletion (gRFC A53), or puts it off: the operator is told once, the program as
// of any other error of a held resource.
func (m *Machine) keep(now time.Time, e *entry, reason Reason) {
	err, grace := ErrDeletionKept, e.of.ts.keepFor()
	if grace > 0 {
		err = fmt.Errorf("%w for %v, unless the resource returns", err, grace)
	}
	if e.status != StatusDoesNotExist {
		m.log(e, false, "the server deleted a resource ("+reason.String()+"); as configured, the last value is kept")
		if e.reason = reason; grace > 0 {
			e.of.ts.stream.graces.set(now, e, grace)
		}
	}
	m.spoil(e, &Fault{Kind: FaultData, Err: err, At: now}, StatusDoesNotExist, false)
}

func (m *Machine) log(e *entry, warn bool, text string) {
	m.fx.Log = append(m.fx.Log, Log{
		Warn: warn, Server: e.of.ts.stream.server, TypeURL: e.of.ts.typ.URL, Name: e.name, Text: text,
	})
}

// tellAmbient tells that a held value has trouble, or with nil that it has none.
func (m *Machine) tellAmbient(e *entry, f *Fault, a ambient) {
	if f == nil {
		a = ambientNone
	}
	e.ambient = a
	m.notice(e, NoticeAmbient).Fault = f
}

// tellFault tells of trouble with the server. Watches of the wildcard hear of it once, and
// not for each resource.
func (m *Machine) tellFault(e *entry, f *Fault) {
	kind := NoticeFailed
	if e.held() {
		kind, e.ambient = NoticeAmbient, ambientServer
	} else {
		e.orphan = true
	}
	m.noticeTo(e, kind, e.handOut(), nil).blame(e, f)
}

// reassure takes back what was told of trouble with the server.
func (m *Machine) reassure(e *entry) {
	if e.ambient != ambientServer {
		return
	}
	e.ambient = ambientNone
	if e.fault != nil {
		e.ambient = ambientOwn
	}
	m.noticeTo(e, NoticeAmbient, e.handOut(), nil).Fault = e.fault
}

// handOut returns the watches for a notice.
func (e *entry) handOut() []*Watch {
	e.shared = len(e.watches) > 0
	return e.watches
}

// tellKnown tells a watch that came late what is known of a resource that is not held.
func (m *Machine) tellKnown(e *entry, to []*Watch) {
	switch e.status {
	case StatusDoesNotExist:
		m.noticeTo(e, NoticeDoesNotExist, to, nil).absent(e)
		if e.reason == ReasonTimeout && !e.orphan { // which is newer than any trouble
			return
		}
	case StatusNacked, StatusReceivedError, StatusTimeout:
		n := m.noticeTo(e, NoticeFailed, to, nil)
		n.Fault = e.fault
		n.absent(e)
	}
	if f := e.of.ts.trouble(); f != nil {
		e.orphan = true
		m.noticeTo(e, NoticeFailed, to, nil).blame(e, f)
	}
}

// fire: the server did not answer in time. That is news for the watches of the name only:
// a wildcard's have members, and this is none.
func (m *Machine) fire(now time.Time, s *stream, t timer) {
	e := t.entry
	switch {
	case t.sweep != nil:
		m.sweep(now, t.sweep)
		return
	case e == nil:
		m.fireCollection(now, s, t.of)
		return
	}
	e.timer = 0
	if e.held() {
		m.silence(now, e)
		return
	}
	if patient(e.watches) {
		return // E-3: the watches wait for ever
	}
	status, f := StatusDoesNotExist, (*Fault)(nil)
	if s.TransientTimeout > 0 {
		status, f = StatusTimeout, &Fault{Kind: FaultTimeout, Err: ErrNoAnswer, At: now}
	}
	told := e.status == status && !e.orphan
	e.status, e.fault, e.orphan, e.reason, e.from = status, f, false, ReasonTimeout, 0
	switch {
	case told:
	case f != nil:
		n := m.noticeTo(e, NoticeFailed, e.handOut(), nil)
		n.Fault = f
		n.absent(e)
	default:
		m.noticeTo(e, NoticeDoesNotExist, e.handOut(), nil).absent(e)
	}
}

// absent says why there is no resource, and where the server did not answer what came instead.
func (n *Notice) absent(e *entry) {
	if e.status == StatusDoesNotExist {
		n.Reason = e.reason
	}
	if e.status == StatusTimeout || n.Reason == ReasonTimeout {
		n.Instead = e.of.ts.instead
	}
}

// ErrNoAnswer is the error of a [FaultTimeout] of a resource or a collection.
var ErrNoAnswer = errors.New("the server did not answer in time")

func (m *Machine) fireCollection(now time.Time, s *stream, c *collection) {
	c.timer = 0
	if c.absence != nil && !c.orphan {
		return
	}
	if c.needsNoMore() {
		m.synced(c, c.ts.version)
		return
	}
	if c == c.ts.star && c.ts.form == wildExplicit {
		m.doubtStar(c.ts)
	}
	if patient(c.watches) {
		return // E-3
	}
	n := Notice{Kind: NoticeDoesNotExist, Reason: ReasonTimeout}
	if s.TransientTimeout > 0 {
		n = Notice{Kind: NoticeFailed, Fault: &Fault{Kind: FaultTimeout, Err: ErrNoAnswer, At: now}}
	}
	m.lack(c, n)
}

// lack tells why a collection has no first state, once for each reason.
func (m *Machine) lack(c *collection, n Notice) {
	if c.absence != nil && !c.orphan && n.Fault.same(c.absence.Fault) {
		return
	}
	if n.Kind == NoticeDoesNotExist || n.Fault.Kind == FaultTimeout {
		n.Instead = c.ts.instead
	}
	c.absence, c.orphan, c.timer = &n, false, 0
	m.tellCollection(c, n)
}
