package machine

import (
	"math"
	"time"
)

// Rate bounds how often something is sent on a stream, answers included: a bucket of
// tokens, of which each message takes one (envoy.config.core.v3.RateLimitSettings). The
// zero value is no bound.
type Rate struct {
	Tokens int64         // that the bucket holds; at least 1
	Every  time.Duration // a token comes; 0 means no bound
}

// throttle is the bucket of a stream, for life: a server that ends its streams is not asked
// more often for it.
type throttle struct {
	full     time.Time // when the bucket is
	waits    bool      // something is due that has no token
	pending  int       // types of which it is
	enforced int       // messages that had to wait
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
