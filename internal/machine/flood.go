package machine

import (
	"fmt"
	"time"
)

// In delta the client owes a reply to each response. A server may read slowly, or not at all, and still send. So the client
// stops reading when it owes too many.
const (
	maxOwed     = 100     // replies that the client itself holds back
	maxOwedSize = 1 << 20 // bytes of those that wait for a server to take one
)

// repliesOwed counts the replies that are owed one by one in delta, and their bytes.
func (s *stream) repliesOwed() (n, size int) {
	if !s.Delta {
		return 0, 0
	}
	for _, l := range s.links {
		n += len(l.replies)
		for i := range l.replies {
			size += l.replies[i].size()
		}
	}
	return n, size
}

// errDeaf ends a stream on which client and server would wait for each other for ever.
var errDeaf = fmt.Errorf("the server took no request for %v, and its responses wait for more than %d bytes of answers", takeTimeout, maxOwedSize)

// readOn has the next response read, if handlers are done with the last one, which may be of an earlier incarnation, and
// if not too many replies are owed.
func (m *Machine) readOn(now time.Time, s *stream) {
	// FC-1: handlers still have the last one.
	if s.state != up || s.undelivered {
		return
	}
	// S-2: a flood is read no faster than it is answered.
	if n, size := s.repliesOwed(); size > maxOwedSize || n > maxOwed && s.repliesHeldBack(now) > maxOwed {
		s.heldBack = now
		return
	}
	s.heldBack = time.Time{}
	s.clock.run(now)
	m.fx.Read = append(m.fx.Read, s.ref)
}

// repliesHeldBack counts the replies that the client itself does not send yet. Others wait for the server to take one.
func (s *stream) repliesHeldBack(now time.Time) (n int) {
	throttled := now.Before(s.Rate.ready(&s.throttle))
	for _, l := range s.links {
		if at, _ := l.notBefore(debt{reply: true}); throttled || now.Before(at) {
			n += len(l.replies)
		}
	}
	return n
}
