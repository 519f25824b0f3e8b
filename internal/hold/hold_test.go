package hold

import (
	"sync"
	"sync/atomic"
	"testing"
)

// What is held, how often it was taken, and the hold.
func counted() (*Shared, *atomic.Int64, *atomic.Int64) {
	var held, taken atomic.Int64
	return New(func() func() {
		taken.Add(1)
		held.Add(1)
		return func() { held.Add(-1) }
	}), &held, &taken
}

// A hold goes on while others refer to the cluster, and ends with the last request when none does.
//
// spec: VIEW-14
func TestShared(t *testing.T) {
	s, held, taken := counted()
	want := func(h, n int64) {
		t.Helper()
		if held.Load() != h || taken.Load() != n {
			t.Errorf("held %d, taken %d times, want %d and %d", held.Load(), taken.Load(), h, n)
		}
	}
	s.SetAlone(true)
	want(0, 0)
	s.SetAlone(false)
	s.Enter()
	want(1, 1)
	s.Leave()
	s.Enter()
	s.Enter()
	want(1, 1)
	s.SetAlone(true)
	s.Leave()
	want(1, 1)
	s.Leave()
	want(0, 1)
	s.Enter()
	want(1, 2)
	s.Leave()
	want(0, 2)
	s.SetAlone(false)
	s.Enter()
	s.Leave()
	want(1, 3)
	s.SetAlone(true)
	want(0, 3)
}

// Whatever comes at one moment, a request that runs is held.
//
// spec: VIEW-14
func TestSharedRace(t *testing.T) {
	s, held, _ := counted()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5000 {
				s.Enter()
				if held.Load() < 1 {
					t.Error("a request runs and nothing is held")
				}
				s.Leave()
			}
		})
	}
	for i := range 5000 {
		s.SetAlone(i%2 == 0)
	}
	wg.Wait()
	s.SetAlone(true)
	if held.Load() != 0 {
		t.Errorf("held %d times at the end", held.Load())
	}
}
