package machine

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

type streamState uint8

const (
	idle    streamState = iota // nobody wants it
	opening                    // asked for
	up
	waiting // for a backoff
)

// maxIgnored bounds how many types a stream remembers the nonce of without having asked
// for them.
const maxIgnored = 64

// maxIgnoredBytes is how long a type URL may be together with its nonce that are remembered so. A
// type that is asked for after a longer nonce is asked for without one.
const maxIgnoredBytes = 4 << 10

// stream is one stream for life; each time it is opened is an incarnation of its own.
type stream struct {
	*Server
	budget  *int // of the server
	index   int
	gen     int
	server  int
	url     string // "" if aggregated
	state   streamState
	types   map[string]*typeState
	order   []*typeState // in the order in which they are sent
	watches int          // that are alive
	chains  []*chain     // that may use it, as they were first used
	passed  int          // of them, whose active server comes after it

	// Of the agenda.
	touched bool
	due     time.Time // as it was last noted
	place   int       // in the queue, from 1; 0 if it is not there

	// Of this incarnation.
	node       []byte
	nodeSent   bool
	owedNode   map[string]bool // types that have to say it again, by URL; nil for none
	responded  bool
	standing   bool              // it was told that it stands
	writing    *typeState        // whose message is with the writer
	ignored    map[string]string // nonces of types that were not asked for
	clock      clock
	timers     []timer       // in order of at
	timersKept int           // when they were last looked through
	calmAt     time.Duration // on its clock, when silence counts as an answer; 0 for never
	calm       bool          // it did
	throttle   throttle

	// Of all incarnations.
	life       clock   // stands still while handlers hold up reading
	parked     []fetch // that came due meanwhile
	ttls       ttls
	graces     ttls // of what the server deleted and is kept for a while
	attributes attributes

	maxResource int // as [Config] has them
	maxHeld     int64
	barren      int // incarnations in a row that ended at once and brought nothing
	renewal     renewal

	// undelivered are the incarnations that a response came from of which handlers are
	// still told: one, unless the stream was given up under the first.
	undelivered []Ref
	reading     bool // the next response may be read, or is being read

	// fault is why the server cannot be reached; nil while it can, and until known. What
	// the watches were told of it may be older: while they are being told of one trouble
	// the next waits, and only the newest of those that wait is ever told. What was told of
	// since the server was well is not told again: attempts may fail by turns.
	fault   *Fault
	told    *Fault
	toldOf  []*Fault // since the server was well, the newest few
	telling bool
	// lingerUntil is set while nobody watches anything on a stream that stands.
	lingerUntil time.Time
}

func (s *stream) ref() Ref { return Ref{s.index, s.gen} }

// timer is a running does-not-exist timer, of an entry or else of a collection, or that of
// what a server was not told of. It is stale if its owner is gone or has another by now.
type timer struct {
	id    uint32
	at    time.Duration // on the stream's clock
	entry *entry
	of    *collection
	sweep *typeState
}

func (t timer) stale() bool {
	if e := t.entry; e != nil && !e.live() {
		return true
	}
	return *t.running() != t.id
}

// running is where the owner keeps the timer that runs.
func (t timer) running() *uint32 {
	switch {
	case t.entry != nil:
		return &t.entry.timer
	case t.of != nil:
		return &t.of.timer
	}
	return &t.sweep.sweepTimer
}

// timerAt is when the first timer runs out; zero for never.
func (s *stream) timerAt() time.Time {
	for len(s.timers) > 0 && s.timers[0].stale() {
		s.timers = s.timers[1:]
	}
	if s.state != up || len(s.timers) == 0 || !s.clock.since.IsZero() {
		return time.Time{}
	}
	return s.clock.when(s.timers[0].at)
}

// sweepAlone is how long is waited for members that a server was not told of where there
// are no does-not-exist timers: they have to end all the same.
const sweepAlone = 15 * time.Second

// startTimer gives an entry or a wildcard a full period (gRFC A57).
func (m *Machine) startTimer(now time.Time, s *stream, t timer) {
	period := m.timeout(s)
	switch {
	case period > 0:
	case t.sweep != nil:
		period = sweepAlone
	default:
		return
	}
	if m.lastTimer++; m.lastTimer == 0 {
		m.lastTimer++ // 0 is none
	}
	if len(s.timers) > 64+2*s.timersKept { // most may be over; those at the front alone go by themselves
		s.timers = slices.DeleteFunc(s.timers, timer.stale)
		s.timersKept = len(s.timers)
	}
	t.id, t.at = m.lastTimer, s.clock.at(now)+period
	*t.running() = t.id
	s.timers = append(s.timers, t)
}

// restartTimers gives all that wait for an answer a full period again.
func (m *Machine) restartTimers(now time.Time) {
	m.agenda.touch(m.streams...)
	for _, s := range m.streams {
		s.ttls.restart(now)
		s.graces.restart(now)
		at := s.clock.at(now) + cmp.Or(max(m.timeout(s), 0), sweepAlone)
		for i := range s.timers {
			s.timers[i].at = at
		}
		for _, ts := range s.order {
			ts.listenAnew(now)
		}
		if s.calmAt > 0 {
			s.calmAt = s.clock.at(now) + hush
		}
	}
}

// expire does what time demands of a stream.
func (m *Machine) expire(now time.Time, s *stream) {
	if !s.lingerUntil.IsZero() && !now.Before(s.lingerUntil) {
		m.letGo(now, s)
	}
	var fired []timer
	for at := s.timerAt(); !at.IsZero() && !now.Before(at); at = s.timerAt() {
		fired = append(fired, s.timers[0])
		s.timers = s.timers[1:]
	}
	slices.SortStableFunc(fired, func(a, b timer) int { return strings.Compare(a.name(), b.name()) })
	for _, t := range fired {
		m.fire(now, s, t)
	}
	for _, e := range s.ttls.over(now) {
		m.lapse(e)
	}
	for _, e := range s.graces.over(now) {
		if e.kept() {
			m.gone(e, e.reason)
		}
	}
	if at := s.calmsAt(); !at.IsZero() && !now.Before(at) {
		m.calmDown(now, s)
	}
	if at := s.hushAt(); !at.IsZero() && !now.Before(at) {
		m.hushed(now, s)
	}
}

func (t timer) name() string {
	switch {
	case t.entry != nil:
		return t.entry.of.ts.typ.URL + "/" + t.entry.name
	case t.of != nil:
		return t.of.ts.typ.URL + "/" + t.of.name
	}
	return t.sweep.typ.URL + "/"
}

// open asks for a new incarnation.
func (m *Machine) open(s *stream) {
	s.gen++
	s.state, s.responded, s.reading = opening, false, false
	m.fx.Open = append(m.fx.Open, Open{s.ref(), s.server, s.url})
}

// up: the server kept nothing, so every type with interest owes its first request (xDS
// protocol, "ACK/NACK and resource type instance version"); all nonces are forgotten.
func (m *Machine) up(now time.Time, s *stream, node []byte) {
	s.state = up
	s.node, s.nodeSent, s.owedNode, s.responded, s.writing = m.describe(s, node), false, nil, false, nil
	s.ignored = nil
	s.clock = clock{start: now}
	s.stopClocks(now) // handlers may hold up reading from the beginning
	s.timers, s.timersKept, s.calmAt, s.calm = nil, 0, 0, false
	for _, ts := range s.order {
		ts.reset()
	}
	if s.standing = false; !s.Polled {
		m.tellUp(s)
	}
	m.readOn(now, s)
}

// tellUp tells that a stream stands. Of a server that is polled only an answer shows that.
func (m *Machine) tellUp(s *stream) {
	if !s.standing {
		s.standing = true
		m.fx.Notify = append(m.fx.Notify, Notice{Kind: NoticeStreamUp, Server: s.server, TypeURL: s.url, Stream: s.ref()})
	}
}

// tellDown tells that a stream is over, if it was told that it stood; fault is nil if the
// client ended it.
func (m *Machine) tellDown(s *stream, fault *Fault) {
	if s.standing {
		s.standing = false
		m.fx.Notify = append(m.fx.Notify, Notice{
			Kind: NoticeStreamDown, Server: s.server, TypeURL: s.url, Stream: s.ref(), Fault: fault,
		})
	}
}

// maxOwed is how many answers a delta stream may owe and still be read.
const maxOwed = 100

// readOn lets the next response be read: if handlers are done with the last one, that of an
// earlier incarnation too, and the server takes the answers to those before.
func (m *Machine) readOn(now time.Time, s *stream) {
	if s.state != up || s.reading || len(s.undelivered) > 0 || s.owes() > maxOwed {
		return
	}
	s.reading = true
	m.startClocks(now, s)
	m.fx.Read = append(m.fx.Read, s.ref())
}

// owes counts the answers that delta owes one by one.
func (s *stream) owes() (n int) {
	if !s.Delta {
		return 0
	}
	for _, ts := range s.order {
		n += len(ts.owed)
	}
	return n
}

// delivered: handlers are done with a response.
func (m *Machine) delivered(now time.Time, r Ref) {
	s := m.streams[r.Stream]
	m.agenda.touch(s)
	s.dropUndelivered(r)
	m.readOn(now, s)
}

func (s *stream) dropUndelivered(r Ref) {
	if i := slices.Index(s.undelivered, r); i >= 0 {
		s.undelivered = slices.Delete(s.undelivered, i, i+1)
	}
}

// down: values that are held stay. A stream that had delivered a response ended normally
// (gRFC A57), unless that was a failure to connect, as a failed poll is, to a server that had
// answered others. So did one whose end is due to a type that the server does not know;
// otherwise the server is in trouble and everyone on it hears so.
func (m *Machine) down(now time.Time, s *stream, ev Down) {
	fault := &Fault{Kind: ev.Kind, Err: ev.Err, At: now}
	well := s.responded && ev.Kind == FaultStream // or the end is due to one type
	calm := s.calm && ev.Kind == FaultStream && !s.lacks()
	if s.state == up {
		var large bool
		if fault.Err, large = m.exhausted(s, ev); !large {
			well = m.blame(now, s, ev.Err) || well
		}
		m.tellDown(s, fault)
	}
	for _, ts := range s.order {
		ts.reset()
	}
	s.timers, s.writing = nil, nil
	m.startClocks(now, s)
	s.lingerUntil = time.Time{}
	if !s.prune() && s.responded {
		s.rest()
		return
	}
	s.state = waiting
	much := m.tooMuch(s, ev)
	m.fx.Wait = append(m.fx.Wait, Wait{
		Ref: s.ref(), Server: s.server, Fault: fault,
		Well:   (well || calm && s.clock.at(now) >= calmLife) && !much,
		Served: s.responded && (!well || much && s.clock.at(now) >= calmLife),
		Calm:   calm || well && much,
	})
	if s.responded && s.troubled() {
		m.recovered(s) // by a response that is still being worked on
	}
	s.responded = false
	if well || calm {
		return
	}
	if !fault.same(s.fault) {
		s.fault = fault
	}
	m.fallBack(now, s)
	m.tellTrouble(s)
}

// tooMuch says that a server which had answered ends the stream since too much is asked of it, and
// logs it: the waits grow, or it would be asked for the same at once, for ever.
func (m *Machine) tooMuch(s *stream, ev Down) bool {
	if ev.Code != codeResourceExhausted {
		return false
	}
	if s.responded {
		m.fx.Log = append(m.fx.Log, Log{
			Warn: true, Server: s.server, TypeURL: s.url, Attrs: []any{"error", ev.Err.Error()},
			Text: "the server ends the stream since too much is asked of it; the waits before the next grow",
		})
	}
	return true
}

// retry ends a wait. Without watches the next attempt is left to the next watch.
func (m *Machine) retry(s *stream) {
	if s.watches > 0 {
		m.open(s)
		return
	}
	m.fx.Close = append(m.fx.Close, s.ref())
	s.rest()
}

// restart begins a stream anew whose server would not say again what it was asked for: it was
// told that something is held which went to another server, or it does not hear of names that
// are added (see hush), or of the wildcard (see outdated).
func (m *Machine) restart(now time.Time, s *stream) {
	m.startClocks(now, s)
	m.fx.Close = append(m.fx.Close, s.ref())
	m.tellDown(s, nil)
	if s.responded && s.troubled() {
		m.recovered(s) // by a response that is still being worked on
	}
	for _, ts := range s.order {
		ts.reset()
	}
	s.timers, s.writing = nil, nil
	s.prune()
	m.open(s)
}

// rest is the state of a stream that nobody wants.
func (s *stream) rest() {
	s.state, s.gen = idle, s.gen+1
	s.fault, s.told, s.toldOf = nil, nil, nil
	s.barren = 0
}

// prune forgets types without interest, and says whether any is left.
func (s *stream) prune() bool {
	for _, ts := range s.order {
		ts.prune()
	}
	if s.watches > 0 {
		return true
	}
	s.types, s.order, s.attributes = map[string]*typeState{}, nil, nil
	s.ttls, s.graces = ttls{clock: &s.life}, ttls{clock: &s.life}
	return false
}

// letGo ends a stream that nobody needs any more. Where the server had not spoken yet a
// pause follows, lest a program that watches and stops dials without end.
func (m *Machine) letGo(now time.Time, s *stream) {
	m.startClocks(now, s)
	began := !m.retract(s.ref())
	if began {
		m.fx.Close = append(m.fx.Close, s.ref())
	}
	if s.state == up {
		m.tellDown(s, nil)
	}
	s.lingerUntil = time.Time{}
	s.timers, s.writing = nil, nil
	s.prune()
	if !began || s.responded {
		s.rest()
		return
	}
	s.state, s.gen = waiting, s.gen+1
	m.fx.Wait = append(m.fx.Wait, Wait{Ref: s.ref(), Server: s.server, Abandoned: true})
}

// retract takes a stream back that this step asked for, and says whether it did.
func (m *Machine) retract(r Ref) bool {
	n := len(m.fx.Open)
	m.fx.Open = slices.DeleteFunc(m.fx.Open, func(o Open) bool { return o.Ref == r })
	return len(m.fx.Open) < n
}

// wanted counts watches: the first opens the stream, the last starts its lingering. A wait
// goes on without watches: who comes back hears at once what is wrong, and dials no sooner.
func (m *Machine) wanted(now time.Time, s *stream, by int) {
	s.watches += by
	switch {
	case by == 0:
	case s.watches == 0 && (s.state == up || s.state == opening):
		s.lingerUntil = now.Add(m.config.Linger)
	case s.watches == 0:
		s.prune()
	case s.watches > 0:
		s.lingerUntil = time.Time{}
		if s.state == idle {
			m.open(s)
		}
	}
}

// maxToldOf is how many troubles of a server are remembered as told.
const maxToldOf = 4

// tellTrouble tells what is wrong with the server, or that nothing is any more, if that is
// news and nobody is being told of older trouble. So what waits for a handler that is slow
// does not grow with the attempts to reach the server.
func (m *Machine) tellTrouble(s *stream) {
	if s.telling || s.fault == s.told || slices.ContainsFunc(s.toldOf, s.fault.same) {
		return
	}
	from := len(m.fx.Notify)
	if s.told = s.fault; s.fault != nil {
		s.toldOf = append(s.toldOf[max(0, len(s.toldOf)+1-maxToldOf):], s.fault)
		m.tellAll(s)
	} else {
		m.tellClear(s)
	}
	for i := range m.fx.Notify[from:] {
		m.fx.Notify[from+i].Trouble = true
	}
	s.telling = len(m.fx.Notify) > from
}

// tellAll tells everyone on a stream of its fault: those who hold a value that something
// is wrong (gRFC A88: ambient), the others that there is none.
func (m *Machine) tellAll(s *stream) {
	for _, ts := range s.order {
		m.tellType(ts, s.fault, nil)
	}
}

// tellType tells everyone on a type of trouble, or those of one chain.
func (m *Machine) tellType(ts *typeState, f *Fault, only *chain) {
	for _, e := range ts.inOrder(only) {
		if !e.pinned {
			m.tellFault(e, f)
		}
	}
	for _, c := range ts.collectionsOf(only) {
		if len(c.watches) > 0 {
			c.ambient, c.orphan = c.synced, !c.synced
			m.tellCollection(c, c.faultNotice(f))
		}
	}
}

// troubled says whether a response is news of the server.
func (s *stream) troubled() bool { return s.fault != nil || s.told != nil }

// knownTrouble is the trouble with the server that watches were told of and that is not over; nil for
// none.
func (s *stream) knownTrouble() *Fault {
	if s.told == nil || s.told.Err == errMoved || !s.unreachable() {
		return nil
	}
	return s.told
}

// unreachable says that the server is in trouble and has not spoken since: a response that
// is being worked on has not ended the trouble yet, but it will.
func (s *stream) unreachable() bool { return s.fault != nil && !s.responded }

// works says that the server has spoken on this incarnation, or has nothing to say, and nothing
// is wrong with it.
func (s *stream) works() bool { return s.state == up && (s.responded || s.calm) && s.fault == nil }

// recovered: the first response after trouble clears what was told of it.
func (m *Machine) recovered(s *stream) {
	s.fault, s.toldOf = nil, nil
	m.tellTrouble(s)
}

func (m *Machine) tellClear(s *stream) {
	for _, ts := range s.order {
		m.tellTypeClear(ts, nil)
	}
}

// tellTypeClear tells everyone on a type that the server is well, or those of one chain.
func (m *Machine) tellTypeClear(ts *typeState, only *chain) {
	for _, e := range ts.inOrder(only) {
		m.reassure(e)
	}
	for _, c := range ts.collectionsOf(only) {
		if c.ambient {
			c.ambient = false
			m.tellCollection(c, Notice{Kind: NoticeAmbient})
		}
	}
}
