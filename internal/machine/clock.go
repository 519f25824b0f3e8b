package machine

import (
	"iter"
	"time"
)

// clock is a stream's own time, in all its incarnations. It stands still while the client does not read the stream (a
// response is decoded, judged or handled, or too many replies are owed), and while the program itself does not run: the
// server is not silent then, since the client would not hear it.
type clock struct {
	start      time.Time
	stoppedFor time.Duration // the sum of the times for which it stood still
	stoppedAt  time.Time     // zero unless it stands still now
}

func (c *clock) at(now time.Time) time.Duration {
	if !c.stoppedAt.IsZero() {
		now = c.stoppedAt
	}
	return now.Sub(c.start) - c.stoppedFor
}

// when is the time at which the clock shows d, if it goes on.
func (c *clock) when(d time.Duration) time.Time { return c.start.Add(c.stoppedFor + d) }

func (c *clock) stopped() bool { return !c.stoppedAt.IsZero() }

// still is for how long it has stood still; 0 if it does not.
func (c *clock) still(now time.Time) time.Duration {
	if !c.stopped() {
		return 0
	}
	return now.Sub(c.stoppedAt)
}

func (c *clock) stop(now time.Time) {
	if !c.stopped() {
		c.stoppedAt = now
	}
}

func (c *clock) run(now time.Time) {
	if c.stopped() {
		c.stoppedFor += now.Sub(c.stoppedAt)
		c.stoppedAt = time.Time{}
	}
}

// waiter is what an alarm is set for: a resource or a collection that the server has to answer for, a time to live, a watch
// with a FetchTimeout, or another wait.
type waiter interface {
	// alarm is the timer of the waiter.
	alarm() *timer
	// ring is called when the alarm's time is over. The alarm is not set any more.
	ring(m *Machine, now time.Time)
}

// timer is the number of the alarm that is set for its owner; 0 for none. An alarm of another number is void.
type timer uint32

func (t *timer) alarm() *timer { return t }

// alarm is a time on a stream's clock that something waits for.
type alarm struct {
	at     time.Duration
	number timer
	waiter waiter
}

// before orders alarms by time, and those of one moment as they were set. Their numbers may have begun again at 1.
func (a alarm) before(b alarm) bool {
	return a.at < b.at || a.at == b.at && int32(a.number-b.number) < 0
}

func (a alarm) void() bool { return *a.waiter.alarm() != a.number }

// setAlarm has a waiter wait for a time on a stream's clock, in place of what it waited for.
func (m *Machine) setAlarm(now time.Time, s *stream, w waiter, wait time.Duration) {
	m.lastAlarm = max(m.lastAlarm+1, 1) // 0 is none
	*w.alarm() = m.lastAlarm
	s.alarms.put(alarm{s.clock.at(now) + min(wait, longest), m.lastAlarm, w})
}

// nextAlarm is when the first rings; zero for never.
func (s *stream) nextAlarm() time.Time {
	a, ok := s.alarms.first()
	if !ok || s.clock.stopped() {
		return time.Time{}
	}
	return s.clock.when(a.at)
}

// waiters yields what waits for alarms, and until when.
func (s *stream) waiters() iter.Seq2[waiter, time.Duration] {
	return func(yield func(waiter, time.Duration) bool) {
		for _, a := range s.alarms.heap {
			if !a.void() && !yield(a.waiter, a.at) {
				return
			}
		}
	}
}

// ringAlarms rings the alarms whose time is over. A ring may stop other alarms, and may set new ones that ring later.
func (m *Machine) ringAlarms(now time.Time, s *stream) {
	for at := s.nextAlarm(); !at.IsZero() && !now.Before(at); at = s.nextAlarm() {
		a := s.alarms.pop()
		*a.waiter.alarm() = 0
		a.waiter.ring(m, now)
	}
}

// stalled takes from the clocks the time for which the program itself did not run: at least from the deadline for which it is
// late. It takes as much time again, so that what the server sent meanwhile is read before an alarm rings. Not twice in a
// row: in a program that is late each time no alarm would ring.
func (m *Machine) stalled(now time.Time, late time.Duration) {
	lost := late
	if !m.late {
		lost = min(2*late, now.Sub(m.stepped))
	}
	for _, s := range m.streams {
		if !s.clock.stopped() {
			s.clock.stoppedFor += lost
		}
		if !s.heldBack.IsZero() {
			s.heldBack = s.heldBack.Add(lost)
		}
	}
}
