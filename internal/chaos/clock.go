package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// suspended stops this very process, as a laptop that is closed: its clock jumps, and
// everything that was to happen meanwhile happens at once. The server goes on.
func suspended(d time.Duration) action {
	return func(ctx context.Context, s *site, _ int) error {
		defer s.proxy.Delay(0)
		before := time.Now() // on a busy machine some of the time is over when the order is given
		if err := s.order(order{Op: opWake, After: d}); err != nil {
			return err
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
			return err
		}
		return jumped(ctx, before, d)
	}
}

// jumped waits for the clock to jump, which the signal makes it do in a moment.
func jumped(ctx context.Context, last time.Time, d time.Duration) error {
	for range 100 {
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
		now := time.Now()
		if now.Sub(last) > d/2 {
			return nil
		}
		last = now
	}
	return fmt.Errorf("the process was not stopped for %v", d)
}

// clockStep is more than what is left of a token, and than how long certificates are good
// already.
const clockStep = 90 * time.Minute

// began tells the time by the monotonic clock, whatever the wall clock is set to.
var began = time.Now()

// setClock sets the machine's clock to the time, or to some time off.
func setClock(offset time.Duration) error {
	tv := syscall.NsecToTimeval(began.Add(time.Since(began) + offset).UnixNano())
	if err := syscall.Settimeofday(&tv); err != nil {
		return fmt.Errorf("set the clock: %w", err)
	}
	return nil
}

func clockOff(offset time.Duration) action {
	return func(_ context.Context, s *site, _ int) error {
		s.log.add("the clock is %v off", offset)
		return setClock(offset)
	}
}
