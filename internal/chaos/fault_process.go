package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// processFaults are those of processes: the server's, and the program's own.
func processFaults() []fault {
	return []fault{
		{name: "sigkill", out: true, do: killed},
		{name: "restart", do: restarted},
		{name: "sigstop", do: func(ctx context.Context, w *world) error { return stopped(ctx, w, time.Second) }},
		{name: "sigstop-long", heavy: true, do: func(ctx context.Context, w *world) error {
			return stopped(ctx, w, keepaliveTime+keepaliveTimeout+2*time.Second)
		}},
		{name: "sigstop-sigkill", do: stoppedThenKilled},
		{name: "clock", do: func(ctx context.Context, w *world) error { return suspended(ctx, w, time.Second) }},
		{name: "clock-long", heavy: true, do: func(ctx context.Context, w *world) error {
			return suspended(ctx, w, resourceTimeout+3*time.Second)
		}},
	}
}

// killed ends the server process by SIGKILL; another comes up, with what changed
// meanwhile.
func killed(ctx context.Context, w *world) error {
	return w.between(ctx, aWhile,
		func() error {
			w.away = true
			return w.child.kill()
		},
		w.startServer,
	)
}

// restarted has the server serve anew in the same process.
func restarted(ctx context.Context, w *world) error {
	return w.between(ctx, aWhile,
		func() error { return w.serve(w.serving) },
		func() error { return nil },
	)
}

// stopped stops the server process by SIGSTOP. Its connections stand, the kernel accepts
// more, and nobody answers.
func stopped(ctx context.Context, w *world, d time.Duration) error {
	w.away = true
	if err := w.child.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	err := w.live(ctx, aWhile)
	if err == nil {
		err = pause(ctx, d)
	}
	if e := w.child.signal(syscall.SIGCONT); e != nil {
		return e
	}
	w.away = false
	if err != nil {
		return err
	}
	return w.publish()
}

// stoppedThenKilled is a process that hangs and is killed for it.
func stoppedThenKilled(ctx context.Context, w *world) error {
	w.away = true
	return w.between(ctx, aWhile,
		func() error { return w.child.signal(syscall.SIGSTOP) },
		func() error {
			if err := w.child.kill(); err != nil {
				return err
			}
			if err := w.live(ctx, aWhile); err != nil {
				return err
			}
			return w.startServer()
		},
	)
}

// suspended stops this very process, as a laptop that is closed: its clock jumps, and
// everything that was to happen meanwhile happens at once. The server goes on.
func suspended(ctx context.Context, w *world, d time.Duration) error {
	return w.between(ctx, aWhile,
		func() error {
			// Requests go out whose answers come while nobody is there, or later still.
			w.proxy.Delay(time.Duration(w.rng.IntN(2)) * 200 * time.Millisecond)
			defer w.proxy.Delay(0)
			if err := w.live(ctx, aWhile); err != nil {
				return err
			}
			before := time.Now() // on a busy machine some of the time is over when the order is given
			if err := w.order(order{Op: opWake, After: d}); err != nil {
				return err
			}
			if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
				return err
			}
			return jumped(ctx, before, d)
		},
		func() error { return nil },
	)
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
