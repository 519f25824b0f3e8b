package main

import (
	"context"
	"slices"
)

// fault is a way to break what stands between client and server. It breaks, lets the
// program live with it, and mends: when it returns, nothing stands in the client's way.
type fault struct {
	name  string
	heavy bool               // takes longer than gRPC's shortest keepalive
	clock bool               // sets the machine's clock
	out   bool               // until it is mended the server cannot be reached
	needs func(variant) bool // nil if every world has what it breaks
	do    func(context.Context, *world) error
}

// faults is all there are.
func faults() []fault {
	return slices.Concat(streamFaults(), networkFaults(), processFaults(), clockFaults(), nameFaults(), secretFaults(), fleetFaults())
}

// pick lists the faults that a world can have, of those named; of all, without the heavy
// ones, if none is named. Those that set the clock have to be allowed.
func pick(p plan) (out []fault) {
	for _, f := range faults() {
		named := slices.Contains(p.only, f.name)
		switch {
		case f.needs != nil && !f.needs(p.variant), f.clock && !p.clock:
		case len(p.only) > 0 && !named, len(p.only) == 0 && f.heavy && !p.heavy:
		default:
			out = append(out, f)
		}
	}
	return out
}

// aWhile gives a fault the time to hit the program at work, and what follows.
const aWhile = 12 // steps

// cut breaks the connections, one way or another.
func (w *world) cut() {
	how := w.rng.IntN(2)
	w.log.add("cut %d", how)
	if how == 0 {
		w.proxy.Cut()
	} else {
		w.proxy.Reset()
	}
}

// between does one thing, lives, and does another.
func (w *world) between(ctx context.Context, steps int, first, last func() error) error {
	if err := first(); err != nil {
		return err
	}
	if err := w.live(ctx, steps); err != nil {
		return err
	}
	return last()
}
