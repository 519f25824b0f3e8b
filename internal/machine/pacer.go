package machine

import "time"

// debt is what a type owes its server.
type debt uint8

const (
	oweNothing  debt = iota
	oweAnswer        // an ACK or a NACK, and nothing else
	oweInterest      // what is wanted has changed: a request that subscribes or unsubscribes
	oweBoth
)

// turn is a type that may speak now.
type turn struct {
	link   *link
	what   debt
	doubts int // of the type; see [quirk]
}

// Two requests of a type that only change interest are some time apart, unless the server
// has answered since: a millisecond, and in state of the world one more for each so many
// names, since each request restates them all.
const (
	pace        = time.Millisecond
	namesOfPace = 2048
)

// pace notes that a request which only changes interest left.
func (l *link) pace(now time.Time) {
	// STREAM-9: changes that come meanwhile go with the next request.
	l.paced = now.Add(pace)
	if !l.stream.Delta {
		l.paced = now.Add(pace * time.Duration(1+l.watched/namesOfPace))
	}
}

// notBefore is the earliest time at which a type may send what it owes, zero for at once, and how much it is doubted.
// It is the one place where it is decided how often the client speaks; the stream's rate limit comes on top.
func (l *link) notBefore(what debt) (at time.Time, doubts int) {
	if what == oweInterest {
		at = l.paced
	}
	for _, q := range l.stream.quirks {
		until, more := q.before(l, what)
		at, doubts = later(at, until), doubts+more
	}
	return at, doubts
}

// later is the later of two times.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// pauses are waits each of which is twice as long as the last, up to the longest.
type pauses struct {
	wait  time.Duration
	until time.Time
}

func (p *pauses) begin(now time.Time, first, most time.Duration) {
	// S-3, WILD-3: each is twice as long.
	p.wait = min(max(2*p.wait, first), most)
	p.until = now.Add(p.wait)
}
