package engine

import (
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// MaxWait is the cap of the default backoff, and what a backoff that says Stop waits.
const MaxWait = 30 * time.Second

// NewBackoff is the default backoff: exponential with jitter and without end.
func NewBackoff(initial, most time.Duration) func() backoff.BackOff {
	return func() backoff.BackOff {
		return backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(initial),
			backoff.WithMultiplier(1.6),
			backoff.WithRandomizationFactor(0.5),
			backoff.WithMaxInterval(most),
			backoff.WithMaxElapsedTime(0),
		)
	}
}

// retry is the waiting of one stream between its incarnations.
type retry struct {
	policy  backoff.BackOff
	initial time.Duration
	last    time.Duration // the current interval
	waiting bool
	at      time.Time
	ref     machine.Ref
}

func (e *Engine) newRetry(server int) *retry {
	maker := e.config.Servers[server].Backoff
	first := maker()
	initial := first.NextBackOff()
	first.Reset()
	return &retry{policy: first, initial: initial}
}

// wait chooses how long to wait. A failure grows the interval. A stream that had delivered
// a response is followed by a short random wait, lest all clients of a server that
// restarts come back in the same moment; the growth starts over only if the stream lived
// for longer than the current interval.
func (e *Engine) wait(w machine.Wait) {
	r := e.retries[w.Stream]
	if r == nil {
		r = e.newRetry(w.Server)
		e.retries[w.Stream] = r
	}
	now := time.Now()
	var d time.Duration
	if w.Responded {
		if s := e.streams[w.Stream]; s != nil && now.Sub(s.opened) > r.last {
			r.policy.Reset()
			r.last = 0
		}
		d = time.Duration(rand.Int64N(int64(max(r.initial, 1))))
	} else {
		d = r.policy.NextBackOff()
		if d == backoff.Stop {
			d = MaxWait
		}
		r.last = d
	}
	r.waiting, r.at, r.ref = true, now.Add(d), w.Ref
	e.config.Logger.Debug("waiting before the next attempt", "server", e.config.Servers[w.Server].URI, "wait", d)
}

// due ends the waits that are over.
func (e *Engine) due(now time.Time) (events []machine.Event) {
	for _, r := range e.retries {
		if r.waiting && !now.Before(r.at) {
			r.waiting = false
			events = append(events, machine.Retry{Ref: r.ref})
		}
	}
	return events
}

func (e *Engine) resetBackoff() {
	for _, r := range e.retries {
		r.policy.Reset()
		r.last = 0
		if r.waiting {
			r.waiting = false
			e.again = append(e.again, machine.Retry{Ref: r.ref})
		}
	}
}
