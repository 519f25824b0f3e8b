package machine

import (
	"fmt"
	"time"
)

// Servers limit how large a request may be; gRPC's default is 4 MiB. Names and versions of
// everything that is held may pass it, and then no stream would ever come to stand. Such a
// server's first requests are kept under a budget. Delta names what does not fit in
// requests that follow, and leaves versions out.
const bigRequest = 1 << 20

// tooLarge looks for first requests that are too large for the server of a stream.
type tooLarge struct {
	noQuirk
	largest map[*link]int // request before the first response, in bytes
}

func (q *tooLarge) forget() { clear(q.largest) }

func (q *tooLarge) requested(_ time.Time, l *link, _ debt, size int) {
	if l.firstResponse == 0 {
		q.largest[l] = max(q.largest[l], size)
	}
}

// ended lowers the budget after a request that may have been too large, and says so.
func (q *tooLarge) ended(m *Machine, _ time.Time, end *ending) {
	s, size := end.stream, 0
	for l, n := range q.largest {
		if l.firstResponse == 0 {
			size = max(size, n)
		}
	}
	if !end.stood || end.Code != codeResourceExhausted || size <= bigRequest {
		return
	}
	end.explained = true
	before := s.budget
	if !s.Delta {
		s.budget = size // it cannot be kept
		const text = "a request may be too large for the server, and state of the world cannot split it"
		if before == 0 {
			m.logServer(s, warning, text, "bytes", size)
		}
		end.Err = fmt.Errorf("%s: %w", text, end.Err)
		return
	}
	if before == 0 {
		before = size
	}
	s.budget = min(before, size) / 2
	m.logServer(s, warning, "a request may be too large for the server; first requests are kept under a limit", "bytes", size, "limit", s.budget)
}
