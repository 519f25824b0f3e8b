package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/internal/machine"
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

// What came due while the loop itself was at work makes it no later: else a server that keeps it at work would keep
// the timers of others from ringing.
func TestBusyIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{machine: machine.New(machine.Config{}), decoders: decoders{idle: []*worker{{since: time.Now()}}}}
		timer := time.NewTimer(time.Hour)
		time.Sleep(time.Minute)
		due := e.arm(timer)
		if <-timer.C; late(due) != 0 {
			t.Errorf("%v late after a minute of work", late(due))
		}
		due = e.arm(timer)
		if time.Sleep(time.Second); late(due) != time.Second {
			t.Errorf("%v late, want a second", late(due))
		}
	})
}
