// Package hold lets all requests of a cluster share one hold of a view.
package hold

import (
	"sync"
	"sync/atomic"
)

// Shared is a hold that begins with the first request and, as long as anything else refers to the
// cluster, outlasts the last: requests take no lock then, and do not wait for the view. It is safe
// for concurrent use.
type Shared struct {
	take   func() (release func())
	active atomic.Int64 // requests
	held   atomic.Bool  // release is not nil
	alone  atomic.Bool  // nothing else refers to the cluster

	mu      sync.Mutex
	release func()
}

// New makes the hold of a cluster; take is called when it begins.
func New(take func() (release func())) *Shared { return &Shared{take: take} }

// Alone says whether nothing refers to a cluster but what holds it. A snapshot's cluster says what refers
// to it (ReferencedBy).
func Alone(by []string) bool {
	return len(by) == 1 && by[0] == "hold"
}

// Enter begins a request.
func (s *Shared) Enter() {
	s.active.Add(1)
	if s.held.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.release == nil {
		s.release = s.take()
	}
	s.held.Store(true)
}

// Leave ends a request.
func (s *Shared) Leave() {
	if s.active.Add(-1) == 0 && s.alone.Load() {
		s.rest()
	}
}

// SetAlone says whether nothing else refers to the cluster. Then the hold ends with the last
// request, or at once if none runs.
func (s *Shared) SetAlone(alone bool) {
	if s.alone.Store(alone); alone && s.active.Load() == 0 {
		s.rest()
	}
}

// rest ends the hold if no request runs.
func (s *Shared) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.release == nil {
		return
	}
	// A request that begins now either sees that nothing is held, or is seen here.
	if s.held.Store(false); s.active.Load() > 0 || !s.alone.Load() {
		s.held.Store(true)
		return
	}
	s.release()
	s.release = nil
}
