package machine

import (
	"container/heap"
	"time"
)

// clock is a stream's own time: it stands still while a response is being handled, since
// the server's silence then is the program's.
type clock struct {
	start time.Time
	held  time.Duration // in all
	since time.Time     // zero unless held now
}

func (c *clock) at(now time.Time) time.Duration {
	if !c.since.IsZero() {
		now = c.since
	}
	return now.Sub(c.start) - c.held
}

// when is the time at which the clock shows d, if it goes on.
func (c *clock) when(d time.Duration) time.Time { return c.start.Add(c.held + d) }

// stood is for how long the clock stood still, ever.
func (c *clock) stood(now time.Time) time.Duration {
	if c.since.IsZero() {
		return c.held
	}
	return c.held + now.Sub(c.since)
}

func (c *clock) hold(now time.Time) {
	if c.since.IsZero() {
		c.since = now
	}
}

func (c *clock) release(now time.Time) {
	if !c.since.IsZero() {
		c.held += now.Sub(c.since)
		c.since = time.Time{}
	}
}

// stopClocks has a stream's clocks stand still, since its silence is the program's from now on.
func (s *stream) stopClocks(now time.Time) {
	s.clock.hold(now)
	s.life.hold(now)
}

// startClocks lets them go on, with the fetches that came due meanwhile.
func (m *Machine) startClocks(now time.Time, s *stream) {
	s.clock.release(now)
	s.life.release(now)
	for _, f := range s.parked {
		heap.Push(&m.fetches, f)
	}
	s.parked = nil
}
