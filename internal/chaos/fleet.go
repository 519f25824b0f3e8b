package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// fleet has faults at several servers at once, of which one steps in for another: each is a
// coroutine, and who is next is left to chance. So servers go and come back in any order.
type fleet struct {
	*world
	turns []*turn // faults that have begun, one a server at most
	rests int
	used  int // the active server of the last rest
}

// turn is a fault that lasts.
type turn struct {
	fault
	site  *site
	next  func() (struct{}, bool)
	stop  func()
	ended error // once next has returned false
}

// rounds has faults overlap, sees now and then that all is well with the servers that are
// left, and in the end of each round with the first.
func (fl *fleet) rounds(ctx context.Context, p plan, l *life, begin func(string)) error {
	defer fl.stopAll()
	from := pick(p)
	outs := slices.DeleteFunc(slices.Clone(from), func(f fault) bool { return !f.out })
	for range p.rounds {
		for quota := 2 * len(fl.sites); quota > 0 || len(fl.turns) > 0; {
			if site := fl.idleSite(); quota > 0 && site != nil && fl.rng.IntN(4) == 0 {
				f := from[fl.rng.IntN(len(from))]
				if len(outs) > 0 && fl.rng.IntN(2) == 0 {
					f = outs[fl.rng.IntN(len(outs))]
				}
				if fl.goesWith(f) {
					begin(fmt.Sprintf("%d:%s", site.index, f.name))
					quota--
					if err := fl.begin(ctx, f, site); err != nil {
						return err
					}
				}
			}
			if err := fl.tick(ctx); err != nil {
				return err
			}
			if fl.allOut() && fl.rng.IntN(10) == 0 {
				if err := fl.rest(ctx); err != nil {
					return fmt.Errorf("at rest with %s: %w", fl.under(), err)
				}
			}
		}
		if err := fl.rest(ctx); err != nil {
			return err
		}
		if err := l.check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin begins a fault and takes it to where it first lets others live.
func (fl *fleet) begin(ctx context.Context, f fault, s *site) error {
	t := &turn{fault: f, site: s}
	w := fl.at(s)
	w.fleet = fl
	fl.log.add("fault %s begins at server %d", f.name, s.index)
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		w.yield = func() bool { return yield(struct{}{}) }
		t.ended = f.do(ctx, w)
	})
	fl.turns = append(fl.turns, t)
	return fl.resume(len(fl.turns) - 1)
}

// resume has a fault do its next step.
func (fl *fleet) resume(i int) error {
	t := fl.turns[i]
	if _, more := t.next(); more {
		return nil
	}
	fl.turns = slices.Delete(fl.turns, i, i+1)
	if t.ended != nil {
		return fmt.Errorf("in %s at server %d: %w", t.name, t.site.index, t.ended)
	}
	fl.log.add("fault %s has ended at server %d", t.name, t.site.index)
	fl.mended(t.site)
	return nil
}

// tick is a step of a fault, if there is one, and one of the program or of a server.
func (fl *fleet) tick(ctx context.Context) error {
	if n := len(fl.turns); n > 0 {
		if err := fl.resume(fl.rng.IntN(n)); err != nil {
			return err
		}
	}
	return errors.Join(fl.step(), fl.moment(ctx))
}

// stopAll ends what still lasts when something went wrong.
func (fl *fleet) stopAll() {
	for _, t := range fl.turns {
		t.stop()
	}
}

// mended forgets that the program stands by at silent servers after one that answers again:
// if that fails once more the program goes to them, and waits there.
func (fl *fleet) mended(s *site) {
	for _, t := range fl.turns {
		if t.site.index > s.index && t.site.silent {
			t.site.silent, t.out = false, false
		}
	}
}

// idleSite is a server without a fault; nil if there is none.
func (fl *fleet) idleSite() *site {
	free := slices.DeleteFunc(slices.Clone(fl.sites), func(s *site) bool { return s.broken(fl.turns) })
	if len(free) == 0 {
		return nil
	}
	return free[fl.rng.IntN(len(free))]
}

func (s *site) broken(turns []*turn) bool {
	return slices.ContainsFunc(turns, func(t *turn) bool { return t.site == s })
}

// goesWith says whether a fault may begin now. A server that is hushed was out of reach when
// the client last looked, which a client that has nothing to watch forgets.
func (fl *fleet) goesWith(f fault) bool {
	other := map[string]string{"idle": "hushed", "hushed": "idle"}[f.name]
	return !slices.ContainsFunc(fl.turns, func(t *turn) bool { return t.name == other })
}

// allOut says that some servers have faults, and all of those are out of reach for sure.
func (fl *fleet) allOut() bool {
	return len(fl.turns) > 0 && !slices.ContainsFunc(fl.turns, func(t *turn) bool { return !t.out })
}

// under names the faults that last.
func (fl *fleet) under() (names []string) {
	for _, t := range fl.turns {
		names = append(names, fmt.Sprintf("%d:%s", t.site.index, t.name))
	}
	return names
}

// rest sees that the program knows what the first server says that can be reached, and that
// all servers are asked for what they should be.
func (fl *fleet) rest(ctx context.Context) error {
	if err := fl.program.probe(fl.rests); err != nil {
		return err
	}
	fl.rests++
	active := slices.IndexFunc(fl.sites, func(s *site) bool { return !s.broken(fl.turns) })
	fl.log.add("rest: server %d is active", active)
	fl.model.use(active)
	fl.used = active
	if active == nobody {
		return fl.await(ctx, false)
	}
	w := fl.at(fl.sites[active])
	if err := w.settle(ctx); err != nil {
		return err
	}
	for _, s := range fl.sites {
		if s.deaf {
			s.deaf = s.broken(fl.turns) // what is silenced later lasts too
			s.proxy.Cut()
		}
	}
	if err := fl.accounts(ctx, active); err != nil {
		return err
	}
	return w.await(ctx, true)
}

// fleetFaults are those of a server that another stands in for.
func fleetFaults() []fault {
	all := func(v variant) bool { return v.spares > 0 }
	return []fault{{name: "hushed", out: true, needs: all, do: hushed}}
}

// hushed is a server that is out of reach until the program was seen to use one after it,
// and then can be reached, and reads what it is asked, and says nothing for a while.
func hushed(ctx context.Context, w *world) error {
	if err := w.proxy.Refuse(true); err != nil {
		return err
	}
	w.cut()
	const most = 300 // steps
	rests := w.fleet.rests
	for n := 0; n < most && w.fleet.rests == rests; n++ {
		if err := w.live(ctx, 1); err != nil {
			return err
		}
	}
	if w.fleet.rests == rests || w.fleet.used < w.index {
		return w.proxy.Refuse(false)
	}
	return w.between(ctx, 4*aWhile,
		func() error {
			w.silent = true
			return errors.Join(w.order(order{Op: opHush, On: true}), w.proxy.Refuse(false))
		},
		func() error {
			w.silent = false
			return w.order(order{Op: opHush})
		},
	)
}
