// Package machine is the xDS protocol as a function: events go in, effects come out, and
// nothing else happens. It owns interest, versions, nonces, the cache and every timer, of
// all servers; it never reads a clock, starts a goroutine, does I/O or looks into a
// resource.
//
// State says what is owed, not what is queued: what a stream has to be told follows from
// what is wanted and what it was told, whenever its writer is free.
package machine

import "time"

// New makes a machine without servers and without interest.
func New(c Config) *Machine {
	return &Machine{config: c, working: map[sourceKey]*source{}, caches: map[cacheKey]*cache{}, slots: map[slot]*stream{}}
}

// Step takes what happened, in order, and returns what is to be done. The effects are the
// caller's own. Whatever may change what a stream owes, or when, touches the stream; only touched streams are
// looked at.
func (m *Machine) Step(now time.Time, events ...Event) Effects {
	m.fx = Effects{}
	if m.stepped.IsZero() {
		m.stepped = now
	}
	for _, ev := range events {
		m.handle(now, ev)
	}
	m.stepped = now
	m.siftOn(now)
	for streams := m.agenda.due(now); len(streams) > 0; streams = m.agenda.takeTouched() {
		for _, s := range streams {
			m.ringDue(now, s)
			for _, l := range s.links {
				m.sweepLater(now, l)
			}
			again := m.send(now, s)
			m.agenda.put(s, sooner(again, s.deadline()))
		}
	}
	return m.fx
}

func (m *Machine) handle(now time.Time, ev Event) {
	switch ev := ev.(type) {
	case Start:
		m.watch(now, ev.Watch)
	case Stop:
		m.unwatch(now, ev.Watch)
	case Up:
		if s := m.touch(ev.Ref); s != nil && s.state == opening {
			m.up(now, s, ev.Node)
		}
	case Down:
		if s := m.touch(ev.Ref); s != nil && (s.state == opening || s.state == up) {
			m.down(now, s, ev)
		}
	case Written:
		if s := m.touch(ev.Ref); s != nil && s.writing != nil {
			m.written(now, s.writing)
			s.writing = nil
		}
	case Received:
		if s := m.touch(ev.Ref); s != nil && s.state == up {
			m.received(now, s, ev.Response)
		}
	case Decoded:
		ev.Task.results = ev.Results
		ev.Task.owner.decoded(m, now)
	case Guarded:
		m.guarded(now, ev)
	case Loaded:
		m.agenda.touch(ev.source.streams...)
		m.loaded(now, ev)
	case Delivered:
		m.delivered(now, ev.Ref)
	case Heard:
		s := m.streams[ev.Stream]
		s.telling = false
		m.tellTrouble(s)
	case ParamsChanged:
		m.changeParams(ev)
	case Retry:
		if s := m.touch(ev.Ref); s != nil {
			m.retry(s)
		}
	case Tick:
		if ev.Late > 0 {
			m.stalled(now, ev.Late)
		}
		m.late = ev.Late > 0
	}
}

// Deadline is when Step wants to run next though nothing happens; ok is false for never.
func (m *Machine) Deadline() (at time.Time, ok bool) {
	if at = m.agenda.next(); len(m.sifting) > 0 {
		at = m.stepped // at once
	}
	return at, !at.IsZero()
}

// streamFor finds or makes the stream that carries a type of a server.
func (m *Machine) streamFor(server, scope int, t *Type) *stream {
	// STREAM-2, CFG-3, FALLBACK-2: all that resolves to the server, in one scope, shares the stream.
	key := slot{server: server, scope: scope}
	if !m.servers[server].PerType {
		t = nil
	}
	key.url = t.url()
	s := m.slots[key]
	if s == nil {
		s = &stream{
			ref: Ref{Stream: len(m.streams)}, server: server, typ: t, agenda: &m.agenda,
			Server: m.servers[server], clock: clock{start: m.stepped}, incarnation: newIncarnation(),
		}
		s.quirks = newQuirks(s)
		m.slots[key] = s
		m.streams = append(m.streams, s)
	}
	return s
}

// newQuirks makes those of a stream. Their order counts when a stream ends: exhausted has the last word on the wait.
func newQuirks(s *stream) []quirk {
	return []quirk{
		&suspects{stream: s, of: byType[suspicion]{}},
		&calmness{stream: s},
		&aside{stream: s, named: map[*subscription]*unsaid{}},
		&exhausted{largest: map[*link]int{}},
		&storms{of: byType[storm]{}},
		&hushes{of: byType[unheard]{}, left: nameHashes{}, until: map[*subscription]time.Duration{}},
		&unasked{of: nameHashes{}},
	}
}
