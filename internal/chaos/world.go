package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// world is servers and the ways to them, with a program that lives among them. It is driven
// by one goroutine.
type world struct {
	variant variant
	rng     *rand.Rand
	log     *journal
	model   *model
	program *program // nil between two programs
	files   *pki

	sites []*site // in order of priority
	*site         // that faults are about
	// yield, if it is not nil, lets others live; it returns false if the fault is to end.
	yield func() bool
	fleet *fleet // nil unless faults happen at several servers
}

// at is the world as a fault at another site sees it.
func (w *world) at(s *site) *world {
	c := *w
	c.site = s
	return &c
}

func newWorld(seed uint64, v variant) (*world, error) {
	log := newJournal()
	w := &world{
		variant: v, rng: rand.New(rand.NewPCG(seed, 0)), log: log,
		model: newModel(v.delta, 1+v.spares, log),
	}
	if err := w.open(); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *world) open() (err error) {
	if w.files, err = newPKI(); err != nil {
		return err
	}
	if err := w.files.rotate(valid, valid); err != nil {
		return err
	}
	for i, h := range w.model.truths {
		s := &site{index: i, truth: h}
		w.sites = append(w.sites, s)
		if err := w.at(s).build(); err != nil {
			return err
		}
	}
	w.site = w.sites[0]
	return nil
}

// close ends the world; the program in it must have ended.
func (w *world) close() {
	for _, s := range w.sites {
		s.close()
	}
	if w.files != nil {
		_ = w.files.remove() // what is left lies among temporary files
	}
}

// cutAll breaks all connections.
func (w *world) cutAll() {
	for _, s := range w.sites {
		s.proxy.Cut()
	}
}

// bootstrap is how a program reaches the servers.
func (w *world) bootstrap() (*bootstrap.Config, error) {
	b := &bootstrap.Config{Node: &corev3.Node{Id: "chaos"}}
	for _, s := range w.sites {
		server, err := w.at(s).reach()
		if err != nil {
			return nil, err
		}
		s.truth.uri = server.URI
		b.Servers = append(b.Servers, server)
	}
	b.Authorities = map[string]bootstrap.Authority{authority: {Servers: b.Servers}}
	return b, nil
}

// live lets the program live for some steps, in each of which it changes its mind about a
// subscription or a server about its resources.
func (w *world) live(ctx context.Context, steps int) error {
	for range steps {
		if w.yield != nil {
			if !w.yield() {
				return errStopped
			}
			continue
		}
		if err := w.step(); err != nil {
			return err
		}
		if err := w.moment(ctx); err != nil {
			return err
		}
	}
	return nil
}

// errStopped ends a fault early, when something is wrong elsewhere.
var errStopped = errors.New("stopped")

// moment is the time between two steps.
func (w *world) moment(ctx context.Context) error {
	return pause(ctx, time.Duration(w.rng.IntN(15))*time.Millisecond)
}

func (w *world) step() error {
	if w.rng.IntN(4) == 0 {
		s := w.site
		if n := len(w.sites); n > 1 {
			s = w.sites[w.rng.IntN(n)]
		}
		return w.at(s).change(0.1)
	}
	return w.program.step(w.rng)
}

// patience is how long the program may take to know what the server says, once nothing
// stands in its way.
const patience = 40 * time.Second

// await waits until every watch is right. What was told wrong meanwhile is the error.
func (w *world) await(ctx context.Context, calm bool) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		faults, differences, changed := w.model.check(calm)
		switch {
		case len(faults) > 0:
			return errors.New(faults[0])
		case len(differences) == 0:
			return nil
		}
		select {
		case <-changed:
		case <-limit.C:
			return fmt.Errorf("after %v there are %d differences, among them: %s", patience, len(differences), differences[0])
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settle waits until every watch is right, has the active server change everything, and
// waits again: so it is seen that every subscription stands. It then notes what is known.
func (w *world) settle(ctx context.Context) error {
	if err := w.await(ctx, false); err != nil {
		return err
	}
	w.truth.refresh()
	if err := w.publish(); err != nil {
		return err
	}
	if err := w.await(ctx, true); err != nil {
		return fmt.Errorf("after everything changed: %w", err)
	}
	if err := w.program.compare(); err != nil {
		return err
	}
	w.model.settle()
	w.log.add("settled")
	return nil
}

// pause lets time pass.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
