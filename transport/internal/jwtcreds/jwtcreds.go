// Package jwtcreds is the "jwt_token_file" call credential of a bootstrap (gRFC A97): a
// bearer token from a file that something else keeps fresh.
package jwtcreds

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// skew is taken off a token's life for unequal clocks and the server's work.
	skew = 30 * time.Second
	// ahead is how long before the end of its cached life a token is read anew.
	ahead = time.Minute

	// The waits of gRPC's connection backoff, which gRFC A97 asks for, but for its cap of
	// 120 s: that would outlast the wait between two attempts at a management server.
	backoffBase   = time.Second
	backoffGrowth = 1.6
	backoffMax    = 30 * time.Second
	backoffJitter = 0.2
)

// New makes a call credential that sends the token in the file. It reads nothing: the
// first call does. It asks for a secure connection. Safe for concurrent use.
func New(file string) *Creds { return &Creds{file: file, load: load} }

// Creds is a call credential; see [New].
type Creds struct {
	file string
	load func(file string) (token string, expiry time.Time, err error)

	mu      sync.Mutex
	token   string
	expiry  time.Time // when token must not be used from the cache any more
	reading *reading  // nil unless a read is under way
	failed  error     // of the last read; nil after a good one
	fails   int       // reads that went wrong in a row
	retryAt time.Time // no read starts before; meaningful while failed is not nil
}

// reading is one read of the file, shared by the calls that wait for it.
type reading struct {
	done  chan struct{} // closed when token and err are set
	token string
	err   error
}

// RequireTransportSecurity is true: a token that others can read is theirs too.
func (c *Creds) RequireTransportSecurity() bool { return true }

// GetRequestMetadata returns the authorization header. It waits for the file only where
// no usable token is known. Its errors are status errors: UNAVAILABLE for a file that
// cannot be read, UNAUTHENTICATED for one whose token is malformed or expired, and that
// of ctx if it ends first.
func (c *Creds) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, r, err := c.current()
	if err != nil {
		return nil, err
	}
	if r != nil {
		select {
		case <-r.done:
			token, err = r.token, r.err
		case <-ctx.Done():
			err = fromContext(ctx, c.file)
		}
		if err != nil {
			return nil, err
		}
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// current returns the cached token, or the read to wait for, or the error of the last
// read while its backoff runs. It starts a read where one is due.
func (c *Creds) current() (string, *reading, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := time.Until(c.expiry)
	backingOff := c.failed != nil && time.Now().Before(c.retryAt)
	// BOOT-4: a token is read anew before it expires, and after a failure once the backoff is over.
	if left <= ahead && c.reading == nil && !backingOff {
		c.reading = &reading{done: make(chan struct{})}
		go c.read(c.reading)
	}
	switch {
	case left > 0:
		return c.token, nil, nil
	case c.reading != nil:
		return "", c.reading, nil
	default:
		return "", nil, c.failed
	}
}

// read runs in a goroutine of its own, which lives no longer than the file takes.
func (c *Creds) read(r *reading) {
	token, expiry, err := c.load(c.file)
	c.mu.Lock()
	defer c.mu.Unlock()
	r.token, r.err = token, err
	c.reading, c.failed = nil, err
	if err == nil {
		c.keepLocked(token, expiry)
	} else {
		c.retryAt = time.Now().Add(wait(c.fails))
		c.fails++
	}
	close(r.done)
}

func (c *Creds) keepLocked(token string, expiry time.Time) {
	c.token, c.expiry, c.fails, c.failed = token, expiry.Add(-skew), 0, nil
}

// Look reads the file again, and says why it cannot be used while a token that was read earlier can;
// nil if it can be used. It blocks as long as the file does, or until ctx ends.
func (c *Creds) Look(ctx context.Context) map[string]error {
	var token string
	var expiry time.Time
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		token, expiry, err = c.load(c.file)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.keepLocked(token, expiry)
	case !time.Now().Before(c.expiry):
		return nil
	}
	return map[string]error{c.file: err}
}

// wait is the backoff after a failure that had n others before it.
func wait(n int) time.Duration {
	d := float64(backoffBase)
	for ; n > 0 && d < float64(backoffMax); n-- {
		d *= backoffGrowth
	}
	d = min(d, float64(backoffMax))
	return time.Duration(d * (1 + backoffJitter*(2*rand.Float64()-1)))
}
