package main

import (
	"context"
	"errors"
	"time"
)

// networkFaults are those of TCP.
func networkFaults() []fault {
	return []fault{
		{name: "fin", do: func(ctx context.Context, w *world) error { w.proxy.Cut(); return w.live(ctx, aWhile) }},
		{name: "tcp-reset", do: func(ctx context.Context, w *world) error { w.proxy.Reset(); return w.live(ctx, aWhile) }},
		{name: "port-closed", out: true, do: portClosed},
		{name: "port-silent", out: true, do: portSilent},
		{name: "slow", do: slow},
		{name: "half-open", heavy: true, do: halfOpen},
		{name: "black-hole", heavy: true, do: blackHole},
	}
}

func portClosed(ctx context.Context, w *world) error {
	return w.between(ctx, aWhile,
		func() error {
			err := w.proxy.Refuse(true)
			w.cut()
			return err
		},
		func() error { return w.proxy.Refuse(false) },
	)
}

// portSilent accepts connections and says nothing, for longer than an attempt may take.
func portSilent(ctx context.Context, w *world) error {
	return w.between(ctx, 20*aWhile,
		func() error {
			w.cut()
			w.deaf = true
			w.proxy.Blackhole(true)
			return nil
		},
		func() error {
			w.proxy.Blackhole(false)
			return nil // the client's own bound ends what still hangs
		},
	)
}

// slow delays everything, and cuts in the middle of it.
func slow(ctx context.Context, w *world) error {
	return w.between(ctx, 3*aWhile,
		func() error { w.proxy.Delay(150 * time.Millisecond); return nil },
		func() error {
			w.cut()
			err := w.live(ctx, 3*aWhile)
			w.proxy.Delay(0)
			return err
		},
	)
}

// halfOpen loses the connections' bytes for a moment: they stand, and say nothing ever
// after. Only keepalive can tell.
func halfOpen(ctx context.Context, w *world) error {
	w.deaf = true
	w.proxy.Blackhole(true)
	w.proxy.Blackhole(false)
	return w.live(ctx, aWhile)
}

// blackHole swallows everything until keepalive has noticed, and longer.
func blackHole(ctx context.Context, w *world) error {
	w.deaf = true
	w.proxy.Blackhole(true)
	err := w.live(ctx, aWhile)
	err = errors.Join(err, pause(ctx, keepaliveTime+keepaliveTimeout+time.Second))
	w.proxy.Blackhole(false)
	return err
}
