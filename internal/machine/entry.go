package machine

import (
	"errors"
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
	ts      *typeState
	watches []*Watch // but those that wait in ts.joining

	raw     []byte // the accepted payload; nil if none is held
	version string
	updated int64  // when it was accepted, in Unix nanoseconds
	fault   *Fault // what is wrong with it; nil if nothing
	timer   uint32 // that runs for it; 0 if none
	gen     uint32 // grows with each change of raw
	seen    uint32 // the last response that spoke of it

	status   Status
	ambient  ambient
	reason   Reason // of the absence
	twice    bool   // the last response that spoke of it did so more than once
	shared   bool   // watches is in a notice
	joins    bool   // ts.joining has watches of it
	asked    bool   // named on this incarnation of the stream
	noted    bool   // in ts.changed
	orphan   bool   // told that its server is in trouble, with nothing held
	withheld bool   // held, and the server was not told the version; not heard of since
	same     bool   // the response being sorted holds raw
	// selfNamed says that raw came without a wrapper that names it.
	selfNamed bool
}

func (e *entry) wanted() bool { return len(e.watches) > 0 || e.joins }
func (e *entry) held() bool   { return e.raw != nil }

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
	return e.ts.authority
}

// joining are watches that wait for the held value to be decoded.
func (e *entry) joining() []*Watch { return e.ts.joining[e] }

func (e *entry) setJoining(ws []*Watch) {
	if e.joins = len(ws) > 0; e.joins {
		e.ts.joining[e] = ws
	} else {
		delete(e.ts.joining, e)
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
	return m.noticeTo(e, kind, e.handOut(), e.ts.wildWatches())
}

func (m *Machine) noticeTo(e *entry, kind NoticeKind, to, all []*Watch) *Notice {
	if len(to) == 0 && len(all) == 0 {
		return &Notice{}
	}
	m.fx.Notify = append(m.fx.Notify, Notice{
		Kind: kind, Server: e.ts.stream.server, TypeURL: e.ts.typ.URL, Name: e.name,
		Authority: e.authority(), Version: e.version, Stream: e.ts.stream.ref(), To: to, All: all,
	})
	return &m.fx.Notify[len(m.fx.Notify)-1]
}

// accept takes a new value.
func (m *Machine) accept(now time.Time, e *entry, r Result, version string) {
	m.returned(e)
	e.raw, e.version, e.updated = r.Raw, version, now.UnixNano()
	if e.raw == nil {
		e.raw = []byte{} // an empty message is one
	}
	e.status, e.fault = StatusAcked, nil
	e.ambient, e.orphan, e.timer = ambientNone, false, 0
	e.gen++
	e.arrived()
	n := m.notice(e, NoticeUpdated)
	n.Value, n.Raw = r.Value, r.Raw
}

// returned tells the operator that a resource is back whose deletion was ignored.
func (m *Machine) returned(e *entry) {
	if e.kept() {
		m.log(e, false, "a resource that the server had deleted is back")
	}
}

// confirm notes that a held value was sent again unchanged.
func (m *Machine) confirm(e *entry, version string) {
	m.returned(e)
	e.version, e.status, e.timer = version, StatusAcked, 0
	if e.fault != nil {
		e.fault = nil
		switch e.ambient {
		case ambientOwn:
			m.tellAmbient(e, nil, ambientNone)
		case ambientServer: // those of the wildcard were not told of the server
			m.noticeTo(e, NoticeAmbient, nil, e.ts.wildWatches())
		case ambientNone:
		}
	}
}

// reject notes that a resource was refused; fault.Kind is FaultRejected.
func (m *Machine) reject(e *entry, f *Fault) {
	m.spoil(e, f, StatusNacked, e.ts.stream.FailOnDataErrors)
}

// spoil notes a fault of the resource itself. With drop a held value goes. The same fault
// again is told to nobody.
func (m *Machine) spoil(e *entry, f *Fault, status Status, drop bool) {
	e.timer = 0
	again := f.same(e.fault) && e.status == status && !e.orphan
	e.status, e.fault = status, f
	if e.held() && drop {
		e.drop()
		again = false
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

// drop lets go of the value.
func (e *entry) drop() {
	e.raw, e.version = nil, ""
	e.ambient = ambientNone
	e.gen++
	e.arrived()
}

// remove takes the server's word that there is no such resource. Known absence is told
// once.
func (m *Machine) remove(now time.Time, e *entry, reason Reason) {
	e.timer = 0
	s := e.ts.stream
	if e.held() && (s.KeepDeleted || m.config.KeepDeleted) {
		m.keep(now, e, reason)
		return
	}
	told := e.status == StatusDoesNotExist && !e.held() && !e.orphan
	e.drop()
	e.status, e.fault, e.orphan, e.reason = StatusDoesNotExist, nil, false, reason
	if !told {
		m.notice(e, NoticeDoesNotExist).Reason = reason
	}
	if !e.wanted() && !e.noted {
		delete(e.ts.entries, e.name) // a wildcard's member
	}
}

var errDeleted = errors.New("the server deleted the resource; the last value is kept")

// keep ignores a deletion (gRFC A53): the operator is told once, the program as of any
// other error of a held resource.
func (m *Machine) keep(now time.Time, e *entry, reason Reason) {
	if e.status != StatusDoesNotExist {
		m.log(e, true, "the server deleted a resource ("+reason.String()+"); as configured, the last value is kept")
	}
	m.spoil(e, &Fault{Kind: FaultData, Err: errDeleted, At: now}, StatusDoesNotExist, false)
}

func (m *Machine) log(e *entry, warn bool, text string) {
	m.fx.Log = append(m.fx.Log, Log{
		Warn: warn, Server: e.ts.stream.server, TypeURL: e.ts.typ.URL, Name: e.name, Text: text,
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
	m.noticeTo(e, kind, e.handOut(), nil).Fault = f
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
		m.noticeTo(e, NoticeDoesNotExist, to, nil).Reason = e.reason
	case StatusNacked, StatusReceivedError, StatusTimeout:
		m.noticeTo(e, NoticeFailed, to, nil).Fault = e.fault
	}
	if f := e.ts.trouble(); f != nil {
		e.orphan = true
		m.noticeTo(e, NoticeFailed, to, nil).Fault = f
	}
}

// fire: the server did not answer in time. That is news for the watches of the name only:
// a wildcard's have members, and this is none.
func (m *Machine) fire(now time.Time, s *stream, t timer) {
	e := t.entry
	switch {
	case t.sweep:
		m.sweep(now, t.wild)
		return
	case e == nil:
		m.fireWild(now, s, t.wild)
		return
	}
	e.timer = 0
	if e.held() {
		m.silence(now, e)
		return
	}
	status, f := StatusDoesNotExist, (*Fault)(nil)
	if s.TransientTimeout > 0 {
		status, f = StatusTimeout, &Fault{Kind: FaultTimeout, Err: errNoAnswer, At: now}
	}
	told := e.status == status && !e.orphan
	e.status, e.fault, e.orphan, e.reason = status, f, false, ReasonTimeout
	switch {
	case told:
	case f != nil:
		m.noticeTo(e, NoticeFailed, e.handOut(), nil).Fault = f
	default:
		m.noticeTo(e, NoticeDoesNotExist, e.handOut(), nil).Reason = ReasonTimeout
	}
}

var errNoAnswer = errors.New("the server did not answer in time")

func (m *Machine) fireWild(now time.Time, s *stream, ts *typeState) {
	ts.wildTimer = 0
	if ts.synced || ts.absence != nil {
		return
	}
	ts.absence = &Notice{Kind: NoticeDoesNotExist, Reason: ReasonTimeout}
	if s.TransientTimeout > 0 {
		ts.absence = &Notice{Kind: NoticeFailed, Fault: &Fault{Kind: FaultTimeout, Err: errNoAnswer, At: now}}
	}
	m.tellWild(ts, *ts.absence)
}
