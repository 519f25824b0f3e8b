package machine

import (
	"slices"
	"time"
)

// calmLife is how long a stream has to live without a response for the waits between streams to
// begin anew.
const calmLife = 15 * time.Second

// calmsAt is when the silence of a hush counts as an answer; zero for never. A server that was
// told on a new stream what is held, and has nothing new, need not say anything for as long as
// the stream lives: go-control-plane's is so in delta, and those that compare versions are.
func (s *stream) calmsAt() time.Time {
	if s.state != up || s.calmAt == 0 || s.calm || s.responded || !s.clock.since.IsZero() {
		return time.Time{}
	}
	return s.clock.when(s.calmAt)
}

// calmDown takes silence for an answer, unless one is owed.
func (m *Machine) calmDown(now time.Time, s *stream) {
	if s.lacks() {
		s.calmAt = s.clock.at(now) + hush
		return
	}
	s.calm = true
	m.fx.Calm = append(m.fx.Calm, s.ref())
	m.recovered(s)
}

// lacks says whether something is watched here of which nothing is known.
func (s *stream) lacks() bool {
	return slices.ContainsFunc(s.chains, func(ch *chain) bool { return ch.watches > 0 && ch.stream() == s && ch.lacks() })
}
