package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/store"
)

// shelves are the directories of the program's store: one for each of its processes.
type shelves struct {
	under string
	path  string // of the process that runs
	kept  *store.Directory
}

func newShelves(dir string) (*shelves, error) {
	s := &shelves{under: filepath.Join(dir, "store")}
	return s, errors.Join(os.Mkdir(s.under, 0o700), s.open())
}

func (s *shelves) open() (err error) {
	s.path, err = os.MkdirTemp(s.under, "")
	s.kept = store.Dir(s.path, store.Options{})
	return err
}

// next makes the directory of the next process: what there is now of the files, as a process that is killed
// leaves them, and how they are damaged.
func (s *shelves) next(rng *rand.Rand, d damage) error {
	from := s.path
	entries, err := os.ReadDir(from)
	errs := []error{err, s.open()}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // it was renamed
		}
		errs = append(errs, err, os.WriteFile(filepath.Join(s.path, e.Name()), d.of(rng, b), 0o600))
	}
	return errors.Join(errs...)
}

// damage is what happens to a file.
type damage uint8

const (
	whole    damage = iota
	cutShort        // as when a process is killed in the middle of a write
	flipped         // one bit is another
	damages
)

func (d damage) of(rng *rand.Rand, b []byte) []byte {
	switch {
	case len(b) == 0:
	case d == cutShort:
		return b[:rng.IntN(len(b))]
	case d == flipped:
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
	}
	return b
}

// storeTime is when everything that the program was told is in its store. What a collection that is
// watched anew lacks, the store forgets a resourceTimeout later (LKG-5).
const storeTime = 4 * time.Second

// reborn ends the program's process and starts another while its server cannot be reached. What it then has
// was accepted once; if the store was whole and in time, it is all that the server had said last.
func reborn(ctx context.Context, s *site, n int) error {
	how := damage(n)
	if err := closed(false)(ctx, s, n); err != nil {
		return err
	}
	settled := func(ctx context.Context, s *site, _ int) error { return s.settle(ctx) }
	if err := all(settled, paused(storeTime))(ctx, s, n); err != nil {
		return err
	}
	if err := s.change(0.5); err != nil {
		return err
	}
	saved := all(settled, paused(resourceTimeout+storeTime))
	if how != whole { // saves begin two seconds after a change
		saved = paused(time.Duration(1900+s.rng.IntN(300)) * time.Millisecond)
	}
	if err := saved(ctx, s, n); err != nil {
		return err
	}
	s.log.add("the program's process ends, its store is damaged by %d", how)
	if err := s.shelves.next(s.rng, how); err != nil {
		return err
	}
	if err := all(closed(true), cut)(ctx, s, n); err != nil {
		return err
	}
	s.model.use(nobody, how == whole)
	if err := s.program.restart(s.shelves.kept); err != nil {
		return err
	}
	if err := s.await(ctx, false); err != nil {
		return fmt.Errorf("started without a server: %w", err)
	}
	return nil
}

// restart has another process go on in the program's place. It has the same subscriptions, and of what was
// known a store.
func (p *program) restart(kept *store.Directory) error {
	subs := p.subs
	p.subs, p.probes = nil, nil
	if err := p.close(); err != nil {
		return err
	}
	p.model.mu.Lock()
	clear(p.standing)
	p.model.mu.Unlock()
	for _, names := range p.lookedUp {
		clear(names)
	}
	p.config.Store = kept
	var err error
	if p.client, err = client.New(p.config); err != nil {
		return err
	}
	for _, s := range subs {
		names := slices.Sorted(maps.Keys(s.told))
		if s.form == collection {
			names = []string{s.all}
		}
		if err := p.subscribe(s.form, s.kind, names...); err != nil {
			return err
		}
	}
	return nil
}
