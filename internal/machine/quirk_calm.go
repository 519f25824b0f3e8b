package machine

import (
	"slices"
	"time"
)

// A server that was told on a new stream what is held, and has nothing new, may be silent for as long as the stream lives:
// go-control-plane's is in delta, and servers that compare versions are. Its silence counts as an answer after a while.
const calmAfter = 2 * time.Second

// calmness finds out whether a stream's silence counts as an answer.
type calmness struct {
	noQuirk
	stream *stream
	timer
}

func (q *calmness) forget() { q.timer = 0 }

// written begins the wait with the first request that says what is held.
func (q *calmness) written(m *Machine, now time.Time, l *link, first bool, _ []*subscription) {
	if first && (l.claimsHeld || l.claimsEmpty()) && q.timer == 0 && !q.stream.calm && !q.stream.responded && !q.stream.stateless() {
		m.setAlarm(now, q.stream, q, calmAfter)
	}
}

// claimsEmpty says that a first request in delta lists no version, since by the server's word nothing exists: a
// collection is complete without members, or the server deleted a resource that is kept.
func (l *link) claimsEmpty() (empty bool) {
	if !l.stream.Delta {
		return false
	}
	for sub := range l.owned() {
		switch {
		case sub.keptDeleted(), sub.isCollection() && sub.of.complete:
			empty = true
		case sub.held():
			return false
		}
	}
	return empty
}

// received: a server that responds is not silent.
func (q *calmness) received(*Machine, time.Time, *link) { q.timer = 0 }

// ring takes silence for an answer, unless the server owes one.
func (q *calmness) ring(m *Machine, now time.Time) {
	s := q.stream
	if s.lacks() {
		m.setAlarm(now, s, q, calmAfter)
		return
	}
	// S-10, S-33: what is held stays.
	s.calm = true
	m.connected(s)
	m.recovered(s)
}

// ended: the end of a stream on which the server was calm is no trouble.
func (*calmness) ended(_ *Machine, now time.Time, end *ending) {
	s := end.stream
	if !s.calm || end.Kind != FaultStream || s.lacks() {
		return
	}
	end.wait.Failed = false
	if s.livedLong(now) {
		end.wait.Served, end.wait.Short = true, true
	}
}

// lacks says whether a source whose active server has the stream lacks something.
func (s *stream) lacks() bool {
	return slices.ContainsFunc(s.sources, func(src *source) bool { return src.stream() == s && src.lacks() })
}
