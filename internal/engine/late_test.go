package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

// The loop of a machine that is merely busy is not late, nor one that waits for nothing.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for ago, want := range map[time.Duration]time.Duration{-time.Second: 0, 0: 0, lateLimit: 0, time.Second: time.Second, time.Hour: time.Hour} {
			if got := late(time.Now().Add(-ago)); got != want {
				t.Errorf("%v after the deadline: %v late, want %v", ago, got, want)
			}
		}
		if got := late(time.Time{}); got != 0 {
			t.Errorf("without a deadline: %v late", got)
		}
	})
}
