package route

import (
	"strings"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// Retry is a retry policy, as data for whoever retries.
type Retry struct {
	// On lists the conditions of retry_on, such as "5xx", "connect-failure" or "unavailable".
	On []string
	// Attempts is how often the request is sent at most, the first time included: one more than
	// num_retries, which is 1 by default, and at most 5 (gRFC A44).
	Attempts int
	// PerTry is how long an attempt may take; 0 is any time.
	PerTry time.Duration
	// PerTryIdle is how long an attempt may be idle; 0 is any time.
	PerTryIdle time.Duration
	// Base is the wait before the first retry, 25 ms by default; it doubles with each retry, up
	// to Max, 10 times Base by default. The actual wait is random below it.
	Base, Max time.Duration
	// StatusCodes are HTTP statuses that are retried besides what On says.
	StatusCodes []uint32
	// Proto has everything else. It must not be changed.
	Proto *routev3.RetryPolicy
}

const (
	maxAttempts = 5
	defaultBase = 25 * time.Millisecond
)

// VIEW-64: one retry by default, at most five attempts; 25 ms, up to ten times that.
func compileRetry(p *routev3.RetryPolicy, field string, f *faults) *Retry {
	r := &Retry{
		On:          strings.FieldsFunc(p.GetRetryOn(), func(c rune) bool { return c == ',' || c == ' ' }),
		Attempts:    2,
		PerTry:      p.GetPerTryTimeout().AsDuration(),
		PerTryIdle:  p.GetPerTryIdleTimeout().AsDuration(),
		Base:        defaultBase,
		StatusCodes: p.GetRetriableStatusCodes(),
		Proto:       p,
	}
	if n := p.GetNumRetries(); n != nil {
		r.Attempts = int(min(n.GetValue(), maxAttempts-1)) + 1
	}
	backoff := p.GetRetryBackOff()
	if backoff != nil {
		r.Base = backoff.GetBaseInterval().AsDuration()
		if r.Base <= 0 {
			f.addf(field+".retry_back_off.base_interval", "%v is not positive", r.Base)
		}
		r.Base = max(r.Base, time.Millisecond)
	}
	r.Max = 10 * r.Base
	if backoff.GetMaxInterval() != nil {
		r.Max = max(backoff.GetMaxInterval().AsDuration(), time.Millisecond)
		if r.Max < r.Base {
			f.addf(field+".retry_back_off.max_interval", "%v is below the base interval, %v", r.Max, r.Base)
		}
	}
	return r
}
