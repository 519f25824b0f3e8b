package engine

import (
	"time"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// Metrics are hooks for what gRFC A78 counts. All are set.
type Metrics struct {
	// Connected hears of a server that becomes connected or not.
	Connected func(server int, connected bool)
	// Updates hears of how many entries of a response were good and how many were invalid.
	Updates func(server int, typeURL string, valid, invalid int)
}

// health is whether a server is connected (gRFC A78, grpc.xds_client.connected).
type health struct {
	failed  bool         // and since it failed there was no response
	failing map[int]bool // machine streams; nil until the first was asked for
}

// created: a server counts as connected from its first stream on.
func (e *Engine) created(s *server) {
	// METRIC-1: connected, until something fails.
	if s.health.failing == nil {
		s.health.failing = map[int]bool{}
		e.connected(s, true)
	}
}

// streamEnded takes the end of a stream: one that could not be had, or brought no response, is a
// failure of its server (gRFC A57, A88).
func (e *Engine) streamEnded(w machine.Wait) {
	s := e.server(w.Server)
	switch w.Health {
	case machine.HealthSame:
		return
	case machine.HealthGood:
		e.heard(s, w.Stream)
		return
	case machine.HealthFailed:
	}
	e.lines.failure(w.Fault, s.URI)
	s.health.failing[w.Stream] = true
	// METRIC-1: a failure is counted once.
	if !s.health.failed {
		s.health.failed = true
		e.connected(s, false)
	}
}

// heard takes a response on a stream. The server is connected again unless another of its streams, which
// somebody wants, fails still.
func (e *Engine) heard(s *server, stream int) {
	h := &s.health
	if !h.failed {
		return
	}
	delete(h.failing, stream)
	for i := range h.failing {
		if e.machine.Wanted(i) {
			return
		}
		delete(h.failing, i)
	}
	// METRIC-1: connected again, once none fails.
	h.failed = false
	e.connected(s, true)
}

func (e *Engine) connected(s *server, is bool) {
	if m := e.config.Metrics; m != nil {
		e.hook(s.number, func() { m.Connected(s.number, is) })
	}
}

func (e *Engine) countUpdates(n *machine.Notice) {
	m := e.config.Metrics
	if m == nil || n.Valid+n.Invalid == 0 {
		return
	}
	server, typeURL, valid, invalid := n.Server, n.TypeURL, n.Valid, n.Invalid
	// METRIC-1: updates, valid and not.
	e.hook(server, func() { m.Updates(server, typeURL, valid, invalid) })
}

// Gauges is what can be measured at any moment.
type Gauges struct {
	Connected map[int]bool // by server, of those that have a stream or wait for one
	Counts    []machine.Count
	Accepted  []machine.Accepted
	Throttled []machine.Throttled
	Blocked   []Blocked
}

// Gauges measures; it is empty after Close. The loop looks at a page of resources at a time, and goes on
// between.
func (e *Engine) Gauges() (g Gauges) {
	e.ask(func() {
		g = Gauges{Accepted: e.machine.Accepted(), Throttled: e.machine.Throttled()}
		g.Connected, g.Blocked = e.measureHealth()
	})
	var at machine.Listing
	for done := false; !done; {
		done = true // after Close
		e.ask(func() { g.Counts, done = e.machine.Count(&at, g.Counts, page) })
	}
	return g
}

// Health is what Gauges has without looking at resources.
func (e *Engine) Health() (connected map[int]bool, blocked []Blocked) {
	e.ask(func() { connected, blocked = e.measureHealth() })
	return connected, blocked
}

// measureHealth is called by the loop.
func (e *Engine) measureHealth() (connected map[int]bool, blocked []Blocked) {
	connected = map[int]bool{}
	for _, s := range e.streams {
		connected[s.server.number] = !s.server.health.failed
	}
	return connected, e.blocked(time.Now())
}
