package engine

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/xdswatch/xdswatch/internal/machine"
)

const (
	// MaxWait is the longest wait of the default backoff, before its jitter, and what a backoff
	// that says Stop waits.
	MaxWait = 30 * time.Second
	// FirstWait is the first wait of the default backoff, before its jitter.
	FirstWait = 500 * time.Millisecond
)

// NewBackoff is the default backoff: exponential with jitter and without end.
func NewBackoff(initial, most time.Duration) func() backoff.BackOff {
	return func() backoff.BackOff {
		return backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(initial),
			backoff.WithMultiplier(1.6),
			backoff.WithRandomizationFactor(0.5),
			backoff.WithMaxInterval(most),
			// BACKOFF-1: it has a cap and no end.
			backoff.WithMaxElapsedTime(0),
		)
	}
}

// polling is the waiting between polls that failed: what is waited between others, a delay
// and as much again at random. A delay shorter than the first wait is a long poll's; what
// follows on its failures grows.
type polling struct {
	backoff.BackOff
	delay, initial time.Duration
}

// NewPolling is the default backoff of a server that is polled.
func NewPolling(delay, initial, most time.Duration) func() backoff.BackOff {
	grows := NewBackoff(initial, most)
	return func() backoff.BackOff { return polling{grows(), min(max(delay, 1), math.MaxInt64/2), initial} }
}

func (p polling) NextBackOff() time.Duration {
	// REST-3: a failed poll waits like another.
	wait := p.delay + rand.N(p.delay)
	if p.delay >= p.initial {
		return wait
	}
	return max(wait, p.BackOff.NextBackOff())
}

// retry is the waiting of one stream between its incarnations. It lives as long as the
// engine, so that watches that come and go do not shorten the waits.
type retry struct {
	make     func() backoff.BackOff
	complain func(text string, attrs ...any)
	policy   backoff.BackOff // nil until it is asked
	initial  time.Duration   // the first interval; 0 until it is known
	last     time.Duration   // the current interval
	waiting  bool
	at       time.Time
	ref      machine.Ref
}

// waits are the waits of the streams; owned by the loop.
type waits struct {
	of   map[int]*retry // by machine stream
	next time.Time      // when the first ends, or earlier; zero if there is none
}

// begin begins a wait.
func (q *waits) begin(r *retry, at time.Time, ref machine.Ref) {
	r.waiting, r.at, r.ref = true, at, ref
	q.note(at)
}

// note notes when a wait ends.
func (q *waits) note(at time.Time) {
	if q.next.IsZero() || at.Before(q.next) {
		q.next = at
	}
}

// ask runs f on the policy. If that is nil, or does not return, the default takes its place.
func (r *retry) ask(f func(backoff.BackOff)) {
	failed := false
	Apart(func() {
		if r.policy == nil {
			r.policy = r.make()
		}
		f(r.policy)
	}, func(p any) {
		failed = true
		cause := "it ended its goroutine (runtime.Goexit)"
		if p != nil {
			cause = fmt.Sprint(p)
		}
		r.complain("the backoff policy cannot be used, the default is", "error", brief(cause), "stack", Stack(debug.Stack()))
	})
	if failed {
		r.policy = NewBackoff(FirstWait, MaxWait)()
		f(r.policy)
	}
}

// next is the next interval. A policy that gives up is not obeyed.
func (r *retry) next() (d time.Duration) {
	r.ask(func(b backoff.BackOff) { d = b.NextBackOff() })
	if d == backoff.Stop {
		d = MaxWait
	}
	return max(d, 0)
}

// reset starts the growth over.
func (r *retry) reset() {
	r.ask(backoff.BackOff.Reset)
	r.last = 0
}

// first is the policy's first interval.
func (r *retry) first() time.Duration {
	var x *backoff.ExponentialBackOff
	r.ask(func(b backoff.BackOff) { x, _ = b.(*backoff.ExponentialBackOff) })
	if x != nil {
		return x.InitialInterval // what it gives is random
	}
	if r.initial == 0 {
		r.initial = r.next()
		r.ask(backoff.BackOff.Reset)
	}
	return r.initial
}

// grow is the wait after a failure.
func (r *retry) grow() time.Duration {
	r.last = r.next()
	if r.initial == 0 {
		r.initial = r.last
	}
	return r.last
}

// pause is the wait after a stream that was no failure: short and random, lest all clients of
// a server that restarts come back in the same moment.
func (r *retry) pause() time.Duration {
	return time.Duration(rand.Int64N(int64(max(r.first(), 1))))
}

// rested starts the growth over if nobody wanted the stream for longer than the current
// interval. What is wanted is opened when the wait ends.
func (r *retry) rested(now time.Time) {
	if r != nil && now.Sub(r.at) > r.last {
		r.reset()
	}
}

// lived starts the growth over if a stream whose server was not at fault, or had answered on it,
// lived for longer than the current interval.
func (r *retry) lived(d time.Duration) {
	if d > r.last {
		r.reset()
	}
}

// wait ends an incarnation of a stream, if it has not ended, and starts the waiting for the next.
func (e *Engine) wait(w machine.Wait) {
	if s := e.stream(w.Ref); s != nil {
		s.abandon()
	}
	server := e.server(w.Server)
	if w.Failed {
		e.lines.failure(w.Fault, server.URI)
	}
	r := e.waits.of[w.Stream]
	if r == nil {
		r = &retry{make: server.Backoff, complain: func(text string, attrs ...any) {
			e.complain(text, server.URI, "", attrs...)
		}}
		e.waits.of[w.Stream] = r
	}
	now := time.Now()
	// BACKOFF-2: the waits begin anew.
	if w.Served {
		r.lived(now.Sub(e.streams[w.Stream].opened))
	}
	var d time.Duration
	if w.Short {
		// BACKOFF-3: a short random pause.
		d = r.pause()
	} else {
		d = r.grow()
	}
	e.waits.begin(r, now.Add(d), w.Ref)
	e.logger.Debug("waiting before the next attempt", "server", server.URI, "wait", d)
}

// due ends the waits that are over.
func (q *waits) due(now time.Time) (events []machine.Event) {
	if q.next.IsZero() || now.Before(q.next) {
		return nil
	}
	return q.end(func(at time.Time) bool { return !now.Before(at) })
}

// reset ends all waits now, and starts their growth over.
func (q *waits) reset() []machine.Event {
	for _, i := range slices.Sorted(maps.Keys(q.of)) {
		q.of[i].reset()
	}
	return q.end(func(time.Time) bool { return true })
}

// end ends the waits that would end at some times, those of the first streams first.
func (q *waits) end(which func(at time.Time) bool) (events []machine.Event) {
	q.next = time.Time{}
	var over []machine.Ref
	for _, r := range q.of {
		switch {
		case !r.waiting:
		case which(r.at):
			r.waiting = false
			over = append(over, r.ref)
		default:
			q.note(r.at)
		}
	}
	slices.SortFunc(over, func(a, b machine.Ref) int { return cmp.Compare(a.Stream, b.Stream) })
	for _, ref := range over {
		events = append(events, machine.Retry{Ref: ref})
	}
	return events
}
