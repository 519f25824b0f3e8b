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

// failed says what went wrong in a world, and how it came to it.
func (p plan) failed(sequence, last []string, err error) error {
	replay := fmt.Sprintf("-seed %d -worlds 1 -rounds %d", p.seed, p.rounds)
	if p.variant.spares > 0 {
		replay += " -fallback"
	}
	if len(p.only) > 0 {
		replay += " -only " + strings.Join(p.only, ",")
	}
	return fmt.Errorf("last events:\n%s\nseed %d, %v\nfaults: %s\n%w\nagain: go run ./internal/chaos %s",
		strings.Join(last, "\n"), p.seed, p.variant, strings.Join(sequence, " "), err, replay)
}

// run does a plan, and notes faults in progress.
func run(ctx context.Context, p plan, progress io.Writer) (result, error) {
	w, err := newWorld(p.seed, p.variant)
	if err != nil {
		return result{}, p.failed(nil, nil, err)
	}
	defer w.close()
	var sequence []string
	err = w.oneClient(ctx, p, func(name string) {
		sequence = append(sequence, name)
		fmt.Fprintf(progress, "  %s\n", name)
	})
	if err != nil {
		return result{}, p.failed(sequence, w.log.last(), err)
	}
	return result{len(sequence), w.program.came.Load()}, nil
}

// oneClient is the life of a client, with what it must not leave behind.
func (w *world) oneClient(ctx context.Context, p plan, begin func(string)) error {
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
