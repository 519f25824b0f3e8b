package machine

import (
	"fmt"
	"time"
)

// Servers end the stream with RESOURCE_EXHAUSTED where too much is asked of them. The waits grow then although the stream
// had worked, or the client would ask for the same at once, for ever.
//
// A request may have been too large: servers limit its size, gRPC's default is 4 MiB. A first request with the names and
// versions of everything that is held may be larger, and then each stream would end with it. Such a server's first requests are
// kept under a budget. In delta names that do not fit follow in later requests, and versions are left out.
const bigRequest = 1 << 20

// exhausted looks at streams that end with RESOURCE_EXHAUSTED.
type exhausted struct {
	noQuirk
	largest map[*link]int // request of each type, in bytes
}

func (q *exhausted) forget() { clear(q.largest) }

func (q *exhausted) requested(_ time.Time, l *link, _ debt, size int) {
	q.largest[l] = max(q.largest[l], size)
}

func (q *exhausted) ended(m *Machine, now time.Time, end *ending) {
	if end.Code != codeResourceExhausted {
		return
	}
	s, w, size := end.stream, &end.wait, 0
	for l, n := range q.largest {
		if l.firstResponse == 0 { // one that was answered was not too large
			size = max(size, n)
		}
	}
	if size > bigRequest {
		end.Err = m.limitRequests(s, size, end.Err)
	}
	if s.responded {
		m.logServer(s, warning, "the server ends the stream since too much is asked of it; the waits before the next grow", "error", end.Err.Error())
	}
	w.Served = s.responded && (!w.Short || s.livedLong(now))
	w.Short = false
}

// limitRequests lowers the budget after a request that may have been too large, and says so.
func (m *Machine) limitRequests(s *stream, size int, err error) error {
	before := s.budget
	if !s.Delta {
		s.budget = size // it cannot be kept
		const text = "a request may be too large for the server, and state of the world cannot split it"
		if before == 0 {
			m.logServer(s, warning, text, "bytes", size)
		}
		return fmt.Errorf("%s: %w", text, err)
	}
	if before == 0 {
		before = size
	}
	s.budget = min(before, size) / 2
	m.logServer(s, warning, "a request may be too large for the server; first requests are kept under a limit", "bytes", size, "limit", s.budget)
	return err
}
