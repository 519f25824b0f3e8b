package machine

import (
	"slices"
	"time"
)

// ringDue does what is due on a stream: the end of its linger, its alarms, and its end if the server takes no request.
func (m *Machine) ringDue(now time.Time, s *stream) {
	// STREAM-6: the linger time is over.
	if !s.lingerUntil.IsZero() && !now.Before(s.lingerUntil) {
		m.giveUp(now, s)
	}
	m.ringAlarms(now, s)
	if at := s.takeBy(); !at.IsZero() && !now.Before(at) {
		m.logServer(s, warning, "the server does not read; the stream is begun anew", "error", errDeaf.Error())
		m.down(now, s, Down{Ref: s.ref, Kind: FaultStream, Err: errDeaf})
	}
}

// open asks for a new incarnation.
func (m *Machine) open(s *stream) {
	s.ref.Gen++
	s.state = opening
	m.fx.Open = append(m.fx.Open, Open{s.ref, s.server, s.typ})
	// METRIC-1: connected, until something fails.
	if !s.dialed {
		s.dialed = true
		m.tellOf(s.ref, NoticeConnected, "")
	}
}

// connected notes that a server has responded, or that its silence counts as a response. The server is connected then,
// unless another of its streams that has watches is in trouble.
func (m *Machine) connected(s *stream) {
	fails := func(o *stream) bool { return o.Server == s.Server && o != s && o.watches > 0 && o.unreachable() }
	// METRIC-1: connected again, once none fails.
	if s.failed && !slices.ContainsFunc(m.streams, fails) {
		s.failed = false
		m.tellOf(s.ref, NoticeConnected, "")
	}
}

// Connected says whether a server is connected as gRFC A78 defines it: from the opening of its first stream on, except from
// a failure to the next response.
func (m *Machine) Connected(server int) bool { return !m.servers[server].failed }

// up: the server kept nothing, so every type with interest owes its first request (xDS
// protocol, "ACK/NACK and resource type instance version"); all nonces are forgotten.
func (m *Machine) up(now time.Time, s *stream, node []byte) {
	s.clock.stop(now) // readOn runs it, unless handlers still have a response of the incarnation before
	s.state, s.opened, s.node = up, s.clock.at(now), m.withParams(s, node)
	m.node = s.node
	if s.toldUp() {
		m.tellOf(s.ref, NoticeStreamUp, s.typ.url())
	}
	m.readOn(now, s)
}

// reset forgets an incarnation. The clock runs from now on: times to live go on while there is no stream.
func (s *stream) reset(now time.Time) {
	s.clock.run(now)
	for _, l := range s.links {
		l.reset()
	}
	for _, q := range s.quirks {
		q.forget()
	}
	s.incarnation = newIncarnation()
	s.alarms.tidy()
}

// delivered: handlers are done with a response.
func (m *Machine) delivered(now time.Time, r Ref) {
	s := m.streams[r.Stream]
	m.agenda.touch(s)
	s.undelivered = false
	m.readOn(now, s)
}

// down ends an incarnation that the server or its carrier has ended, and decides whether this is trouble with the server.
// It is none if a response came on the stream (gRFC A57), or if a quirk explains the end. A failure to connect is trouble
// even after a response: each poll that fails is one. With trouble sources fall back, and watches are told of it. Values
// that are held stay.
func (m *Machine) down(now time.Time, s *stream, ev Down) {
	// BACKOFF-2, S-5: only a response ends a sequence of failures.
	responded := s.responded
	// BACKOFF-3, S-4: after a response a short wait follows, whatever the status is.
	well := responded && ev.Kind == FaultStream
	end := &ending{
		Down: ev, stream: s,
		wait: Wait{Server: s.server, Served: responded, Short: well, Failed: true},
	}
	// STREAM-5: the end after a response is no trouble.
	if well {
		end.wait.Failed = false
	}
	for _, q := range s.quirks {
		q.ended(m, now, end)
	}
	fault := &Fault{Kind: ev.Kind, Err: end.Err, At: now}
	if wanted := m.endIncarnation(now, s, fault); !wanted && responded {
		m.fx.Close = append(m.fx.Close, s.ref)
		s.goIdle()
		return
	}
	s.state = waiting
	end.wait.Ref, end.wait.Fault = s.ref, fault
	m.fx.Wait = append(m.fx.Wait, end.wait)
	if !end.wait.Failed {
		return
	}
	if !fault.same(s.fault) {
		s.fault = fault
	}
	m.loadForFailed(s) // CACHE-3: the store may serve now
	// FALLBACK-1: trouble with the active server.
	// FALLBACK-4: watches that another server serves from now on are not told of this trouble.
	m.fallBack(now, s)
	m.tellTrouble(s)
	// METRIC-1: a failure is counted once.
	if !s.failed {
		s.failed = true
		m.tellOf(s.ref, NoticeDisconnected, "")
	}
}

// retry ends a wait: the client opens the stream again. Without watches the next watch opens it.
func (m *Machine) retry(s *stream) {
	if s.watches > 0 {
		m.open(s)
		return
	}
	m.fx.Close = append(m.fx.Close, s.ref)
	s.goIdle()
}

// renewStream ends a stream that the server has not ended. A stream that is wanted is opened again at once. The client does
// so where the server would not send on the old stream what is needed: another server is active now (activate); requests
// named the subscriptions before (closeIfNamed, answeredUnwanted); the server ignores names that are added ([hushes]), or a
// wildcard that begins or ends (outdated); or it says nothing of a type (passesOver). A stream that nobody wants stays
// closed.
func (m *Machine) renewStream(now time.Time, s *stream) {
	m.fx.Close = append(m.fx.Close, s.ref)
	if m.endIncarnation(now, s, nil) {
		m.open(s)
	} else {
		s.goIdle()
	}
}

// giveUp closes a stream on which nobody has watched anything for the linger time. If the server had not responded on
// it, a wait follows, so that a program that watches and stops in a loop does not dial more often.
func (m *Machine) giveUp(now time.Time, s *stream) {
	responded := s.responded
	if m.renewStream(now, s); !responded {
		s.state = waiting
		m.fx.Wait = append(m.fx.Wait, Wait{Ref: s.ref, Server: s.server, Short: true})
	}
}

// endIncarnation tells the program that a stream is over, and forgets the incarnation (reset, forgetTypes). The result says
// whether the stream is still wanted.
func (m *Machine) endIncarnation(now time.Time, s *stream, fault *Fault) (wanted bool) {
	if s.toldUp() {
		m.tellOf(s.ref, NoticeStreamDown, s.typ.url()).Fault = fault
	}
	s.lingerUntil = time.Time{}
	responded := s.responded
	s.reset(now)
	if wanted = m.forgetTypes(s); responded {
		m.recovered(s) // the work on the response may not be finished, and then this was not yet done
	}
	return wanted
}

// goIdle forgets the troubles of a stream that nobody wants.
func (s *stream) goIdle() {
	s.state = idle
	s.trouble = trouble{telling: s.telling}
}

// forgetTypes drops the subscriptions that nobody wants, of the sources whose active server has the stream, and all types
// of the stream if it has no watches. The result says whether it has any.
func (m *Machine) forgetTypes(s *stream) bool {
	for _, src := range s.sources {
		if src.stream() == s {
			for _, sh := range src.shares {
				sh.dropUnwanted()
			}
		}
	}
	if s.watches > 0 {
		return true
	}
	for _, l := range s.links {
		l.cache = newCache(l.cache.typ) // a response that is still being worked on means nothing
	}
	s.links = nil
	s.quirks = newQuirks(s)
	return false
}

// watchesChanged counts the watches of a stream: the first opens it, and with the end of the last it begins to linger. A wait
// between streams goes on without watches: a watch that begins meanwhile is told the trouble at once, and waits for the rest.
func (m *Machine) watchesChanged(now time.Time, s *stream, by int) {
	s.watches += by
	switch {
	case s.watches == 0 && (s.state == up || s.state == opening):
		// STREAM-6: the stream lingers.
		s.lingerUntil = now.Add(max(m.config.Linger, 1)) // never in the step that opens it
	case s.watches == 0:
		m.forgetTypes(s)
	default:
		s.lingerUntil = time.Time{}
		// STREAM-2: the first watch opens it.
		if s.state == idle {
			m.open(s)
		}
	}
}
