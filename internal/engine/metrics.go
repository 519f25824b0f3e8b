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

// connected hears of a server that becomes connected or not.
func (e *Engine) connected(server int, is bool) {
	if m := e.config.Metrics; m != nil {
		e.hook(server, func() { m.Connected(server, is) })
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
		connected[s.server.number] = e.machine.Connected(s.server.number)
	}
	return connected, e.blocked(time.Now())
}
