package main

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// clockFaults are those of the wall clock. Only one may happen at a time.
func clockFaults() []fault {
	one := func(v variant) bool { return v.spares == 0 }
	return []fault{{name: "wall-clock", clock: true, needs: one, do: wallClockStepped}}
}

// clockStep is more than what is left of a token, and than how long certificates are good
// already.
const clockStep = 90 * time.Minute

// wallClockStepped sets the wall clock forward, back, and right again, and breaks
// connections each time: whatever is judged by that clock is judged anew.
func wallClockStepped(ctx context.Context, w *world) (err error) {
	c := newWallClock()
	defer func() {
		if e := c.set(0); e != nil {
			err = e
		}
	}()
	for _, offset := range []time.Duration{clockStep, -clockStep, 0} {
		if err := c.set(offset); err != nil {
			return err
		}
		w.log.add("the clock is %v off", offset)
		if err := w.live(ctx, aWhile); err != nil {
			return err
		}
		w.cut()
		if err := w.live(ctx, 2*aWhile); err != nil {
			return err
		}
	}
	return nil
}

// wallClock knows what time it is by the monotonic clock.
type wallClock struct{ start time.Time }

func newWallClock() wallClock { return wallClock{time.Now()} }

// set sets the machine's clock to the time, or to some time off.
func (c wallClock) set(offset time.Duration) error {
	tv := syscall.NsecToTimeval(c.start.Add(time.Since(c.start) + offset).UnixNano())
	if err := syscall.Settimeofday(&tv); err != nil {
		return fmt.Errorf("set the clock: %w", err)
	}
	return nil
}
