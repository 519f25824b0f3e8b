package chaos

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// turn is a fault that lasts at a site. It is a coroutine, and who is next is left to chance. So
// servers go and come back in any order.
type turn struct {
	fault
	n    int // how often it was done
	next func() (struct{}, bool)
	stop func()
}

// round has faults at all servers, which overlap where there are several; it sees now and then
// that all is well with the servers that are left, and in the end with the first.
func (w *world) round(from []fault) {
	defer w.stopAll()
	from = slices.DeleteFunc(slices.Clone(from), func(f fault) bool { return !f.possible(w.variant) })
	outs := slices.DeleteFunc(slices.Clone(from), func(f fault) bool { return !f.out })
	quota := 2*len(w.sites) - 1
	if len(from) == 0 {
		quota = 0
	}
	for quota > 0 || len(w.broken()) > 0 {
		site := w.sites[w.rng.IntN(len(w.sites))]
		if quota > 0 && site.turn == nil && w.rng.IntN(4) == 0 {
			f := from[w.rng.IntN(len(from))]
			if len(outs) > 0 && w.rng.IntN(len(w.sites)) > 0 { // the others step in for it
				f = outs[w.rng.IntN(len(outs))]
			}
			if w.goesWith(f) {
				quota--
				site.begin(f)
			}
		}
		w.tick()
		if w.allOut() && w.rng.IntN(10) == 0 {
			w.rest()
		}
	}
	w.rest()
}

// begin begins a fault and takes it to where it first lets others live.
func (s *site) begin(f fault) {
	s.files.writeToken(tokenLife)
	s.sequence = append(s.sequence, fmt.Sprintf("%d:%s", s.index, f.name))
	s.log.add("fault %s begins at server %d", f.name, s.index)
	s.turn = &turn{fault: f}
	s.turn.next, s.turn.stop = iter.Pull(func(yield func(struct{}) bool) {
		s.yield = func() bool { return yield(struct{}{}) }
		f.run(s)
	})
	s.resume()
}

// live lets the others live for some steps. A fault calls it, and ends if it is false.
func (s *site) live(steps int) bool {
	for range steps {
		if !s.yield() {
			return false
		}
	}
	return true
}

// resume has the fault at a server do its next step.
func (s *site) resume() {
	t := s.turn
	if _, more := t.next(); more {
		return
	}
	s.turn = nil
	s.log.add("fault %s has ended at server %d", t.name, s.index)
	s.used = min(s.used, s.index) // the program may go back there from now on
	// The program no longer stands by at silent servers after one that answers again: if that fails
	// once more the program goes to them, and waits there.
	for _, o := range s.broken() {
		if o.index > s.index && o.silent {
			o.silent, o.turn.out = false, false
		}
	}
}

// tick is a step of a fault, if there is one, and one of the program or of a server.
func (w *world) tick() {
	if broken := w.broken(); len(broken) > 0 {
		broken[w.rng.IntN(len(broken))].resume()
	}
	w.step()
	w.moment()
}

// stopAll ends what still lasts when something went wrong.
func (w *world) stopAll() {
	for _, s := range w.broken() {
		s.turn.stop()
		s.turn = nil
	}
}

// broken are the servers at which a fault lasts.
func (w *world) broken() []*site {
	return slices.DeleteFunc(slices.Clone(w.sites), func(s *site) bool { return s.turn == nil })
}

// goesWith says whether a fault may begin now. A server that is hushed was out of reach when
// the client last looked, which a client that has nothing to watch forgets.
func (w *world) goesWith(f fault) bool {
	other := map[string]string{"idle": "hushed", "hushed": "idle"}[f.name]
	return !slices.ContainsFunc(w.broken(), func(s *site) bool { return s.turn.name == other })
}

// allOut says that some servers have faults, and all of those are out of reach for sure.
func (w *world) allOut() bool {
	broken := w.broken()
	return len(broken) > 0 && !slices.ContainsFunc(broken, func(s *site) bool { return !s.turn.out })
}

// rest sees that the program knows what the first server says that can be reached, and that
// all servers are asked for what they should be.
func (w *world) rest() {
	w.program.probe(w.rests)
	w.rests++
	w.used = slices.IndexFunc(w.sites, func(s *site) bool { return s.turn == nil })
	w.log.add("rest with %s: server %d is active", w.broken(), w.used)
	if w.used == nobody {
		w.model.use(nobody, false)
		w.await(false)
		return
	}
	active := w.sites[w.used]
	active.settle()
	for _, s := range w.sites {
		if s.deaf {
			s.deaf = s.turn != nil // what is silenced later lasts too
			s.proxy.Cut()
		}
	}
	if err := eventually(patience, func() error { return w.checkRequests(active.index) }); err != nil {
		w.t.Fatalf("while server %d is active: %v", active.index, err)
	}
	active.settle()
}

// settle waits until every watch is right by the word of this server, has it change everything,
// and waits again: so it is seen that every subscription stands. It then notes what is known.
func (s *site) settle() {
	s.t.Helper()
	s.model.use(s.index, false)
	s.await(false)
	s.log.add("everything changes")
	s.refresh()
	s.await(true)
	must(s.t, s.program.checkDump())
	s.model.settle()
	s.log.add("settled")
}

// patience is how long the program may take to know what the server says, once nothing
// stands in its way.
const patience = 40 * time.Second

// await waits until every watch is right.
func (w *world) await(calm bool) {
	w.t.Helper()
	must(w.t, eventually(patience, func() error { return w.model.checkEvents(calm) }))
}

// eventually waits until a check finds nothing, and else returns what it found last.
func eventually(limit time.Duration, check func() error) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		if err := check(); err == nil {
			return nil
		} else if time.Now().After(deadline) {
			return fmt.Errorf("after %v: %w", limit, err)
		}
	}
}
