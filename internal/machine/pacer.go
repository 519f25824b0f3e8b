package machine

import (
	"math"
	"time"
)

// debt is what a type owes its server; the zero value is nothing.
type debt struct {
	reply    bool // an ACK or a NACK
	interest bool // what the server is to know has changed: names, the form of the wildcard, or the node's parameters
}

// turn is a type that may send a request now.
type turn struct {
	link   *link
	what   debt
	doubts int // of the type; see [quirk]
}

// Two requests of a type that only change interest are some time apart, unless the server
// has answered since: a millisecond, and in state of the world one more for each so many
// names, since each request restates them all.
const (
	minPace     = time.Millisecond
	namesOfPace = 2048
)

// pace notes that a request which only changes interest left.
func (l *link) pace(now time.Time) {
	// STREAM-9: changes that come meanwhile go with the next request.
	l.paced = now.Add(minPace)
	if !l.stream.Delta {
		l.paced = now.Add(minPace * time.Duration(1+l.watched/namesOfPace))
	}
}

// notBefore is the earliest time at which a type may send what it owes, zero for at once, and how much it is doubted.
// It is the one place where it is decided how often the client speaks on a stream; the stream's rate limit comes on top.
// New streams have waits of their own: [Machine.restartAt] and [unheard].
func (l *link) notBefore(what debt) (at time.Time, doubts int) {
	if !what.reply {
		at = l.paced
	}
	for _, q := range l.stream.quirks {
		until, more := q.earliest(l, what)
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

// Rate bounds how often something is sent on a stream, replies included: a bucket of
// tokens, of which each message takes one (envoy.config.core.v3.RateLimitSettings). The
// zero value is no bound.
type Rate struct {
	Tokens int64         // that the bucket holds; at least 1
	Every  time.Duration // a token comes; 0 means no bound
}

// throttle is the bucket of a stream, for life: a server that ends its streams is not asked
// more often for it.
type throttle struct {
	full     time.Time // when the bucket is full again
	waits    bool      // a message waits for a token, and is counted in enforced
	pending  int       // types that have a message which waits for a token
	enforced int       // messages that had to wait, ever
}

// ready is when there is a token.
func (r Rate) ready(t *throttle) time.Time {
	// RATE-1: no bound unless one is configured.
	if r.Every <= 0 {
		return time.Time{}
	}
	spare := time.Duration(math.MaxInt64)
	if more := max(r.Tokens, 1) - 1; more <= math.MaxInt64/int64(r.Every) {
		spare = time.Duration(more) * r.Every
	}
	return t.full.Add(-spare)
}

// spend takes a token, which is there.
func (r Rate) spend(now time.Time, t *throttle) {
	if t.full.Before(now) {
		t.full = now
	}
	t.full = t.full.Add(r.Every)
	t.waits, t.pending = false, 0
}

// noteWaiting counts the types that wait for a token. Their requests are composed only when it comes, so that later
// changes go with them.
func (t *throttle) noteWaiting(waiting int) {
	if t.pending = waiting; waiting > 0 && !t.waits {
		t.waits = true
		t.enforced++
	}
}
