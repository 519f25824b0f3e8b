package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// The client's clocks. Keepalive is as short as gRPC lets it be.
const (
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 2 * time.Second
	connectTimeout   = time.Second
	resourceTimeout  = 15 * time.Second
)

// plan is what is done in one world.
type plan struct {
	seed    uint64
	variant variant
	only    []string // names of faults; all but those that have to be asked for if empty
	rounds  int      // how often it is seen that all is well again
}

// result counts what was done.
type result struct {
	faults  int
	streams int64 // that came up
}

// failure is what went wrong in a world, and how it came to it.
type failure struct {
	plan     plan
	sequence []string // of faults
	last     []string // events
	err      error
}

func (f *failure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %v\nfaults: %s\nlast events:\n", f.plan.seed, f.plan.variant, strings.Join(f.sequence, " "))
	for _, line := range f.last {
		fmt.Fprintln(&b, line)
	}
	fmt.Fprintf(&b, "seed %d, %v, after %s: %v\n", f.plan.seed, f.plan.variant, f.sequence[max(0, len(f.sequence)-1):], f.err)
	replay := fmt.Sprintf("go run ./internal/chaos -seed %d -worlds 1 -rounds %d", f.plan.seed, f.plan.rounds)
	if f.plan.variant.spares > 0 {
		replay += " -fallback"
	}
	if len(f.plan.only) > 0 {
		replay += " -only " + strings.Join(f.plan.only, ",")
	}
	fmt.Fprintf(&b, "again: %s\n", replay)
	return b.String()
}

func (f *failure) Unwrap() error { return f.err }

// run does a plan, and notes faults in progress. The error is a *failure.
func run(ctx context.Context, p plan, progress io.Writer) (result, error) {
	w, err := newWorld(p.seed, p.variant)
	if err != nil {
		return result{}, &failure{plan: p, err: err}
	}
	defer w.close()
	var sequence []string
	err = w.live(ctx, p, func(name string) {
		sequence = append(sequence, name)
		fmt.Fprintf(progress, "  %s\n", name)
	})
	if err != nil {
		return result{}, &failure{plan: p, sequence: sequence, last: w.log.last(), err: err}
	}
	return result{len(sequence), w.program.came.Load()}, nil
}

// live is the life of a client, with what it must not leave behind.
func (w *world) live(ctx context.Context, p plan, begin func(string)) error {
	before := w.use()
	config, err := w.config()
	if err != nil {
		return err
	}
	if w.shelves, err = newShelves(w.files.dir); err != nil {
		return err
	}
	if len(w.sites) == 1 { // spare servers have no fault for it
		config.Store = w.shelves.kept
	}
	if w.program, err = newProgram(config, w.model); err != nil {
		return err
	}
	if err := w.rounds(ctx, p, begin); err != nil {
		_ = w.program.close() // the failure is what counts
		return err
	}
	if err := w.program.close(); err != nil {
		return err
	}
	w.cutAll() // those that were silenced do not notice their end
	if err := w.checkUse(ctx, before, 0); err != nil {
		return fmt.Errorf("after the end of the client: %w", err)
	}
	return nil
}

// rounds breaks things, and sees each time that all is well afterwards.
func (w *world) rounds(ctx context.Context, p plan, begin func(string)) error {
	first := w.sites[0]
	first.truth.slim()
	for n := 0; n < 10 || len(w.program.subs) == 0; n++ { // so that there is a connection
		if err := w.program.step(w.rng); err != nil {
			return err
		}
	}
	if err := first.settle(ctx); err != nil {
		return fmt.Errorf("before any fault: %w", err)
	}
	heap := w.weigh()
	before := w.use()
	if err := w.faults(ctx, p, before, begin); err != nil {
		return err
	}
	first.truth.slim()
	if err := first.settle(ctx); err != nil {
		return err
	}
	return eventually(ctx, leakPatience, func() error { return heap.outgrown(w.weigh(), lifeSlack) })
}
