package engine

import (
	"time"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// count has the program count what gRFC A78 does.
func (e *Engine) count(n *machine.Notice) {
	if e.config.Metrics != nil {
		e.hook(n.Server, func() { e.config.Metrics(n) })
	}
}

// Gauges is what can be measured at any moment.
type Gauges struct {
	Connected map[int]bool // by server, of those that have a stream or wait for one
	Counts    machine.Counts
	Accepted  []machine.Accepted
	Throttled []machine.Throttled
	Blocked   []Blocked
}

// Gauges measures; it is empty after Close. The loop looks at a page of resources at a time, and goes on
// between. It counts authorities by their labels.
func (e *Engine) Gauges(label func(authority string) string) (g Gauges) {
	e.ask(func() {
		g = Gauges{Accepted: e.machine.Accepted(), Throttled: e.machine.Throttled()}
		g.Connected, g.Blocked = e.measureHealth()
	})
	var at machine.Listing
	g.Counts = machine.Counts{}
	for done := false; !done; {
		done = true // after Close
		e.ask(func() { done = e.machine.Count(&at, g.Counts, page, label) })
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
