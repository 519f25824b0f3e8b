package machine

import (
	"errors"
	"slices"
	"time"
)

// simStream is a stream as the engine sees it.
type simStream struct {
	ref     Ref
	server  *simServer
	url     string
	state   streamState
	began   bool // a request was sent
	writing bool
	reading bool                 // the next response may be sent
	types   map[string]*simType  // by URL
	since   map[string]time.Time // when names are subscribed, by type and name, on incarnations that the client ended too
	working *simResponse         // that is not consumed, on this incarnation or an earlier one
}

// owe adds a chore: what has to be done and then to be told to the machine.
func (w *world) owe(do func()) { w.chores = append(w.chores, do) }

// prompt says that nothing is late, the servers neither.
const prompt = -1

// late says that something is not to be done yet. It is done later, and maybe after other things.
func (w *world) late() bool { return w.lazy > 0 && w.roll(4) < w.lazy }

// flush steps the machine with what has been collected, and does what it asks for.
func (w *world) flush() {
	if len(w.queue) == 0 {
		return
	}
	w.steps++
	w.must(w.steps < maxSteps, "there is no end to it")
	events := take(&w.queue)
	fx := w.m.Step(w.now, events...)
	at, ok := w.m.Deadline()
	w.must(!ok || !at.Before(w.now), "the deadline %v is in the past", at)
	for _, ref := range fx.consumed() {
		s := w.streams[ref.Stream]
		w.must(s.working != nil && s.working.ref == ref, "consumed %v, of which nothing is expected", ref)
		s.working = nil
		w.owe(func() { w.push(Delivered{ref}) })
	}
	troubled := map[int]bool{}
	for _, n := range fx.Notify {
		w.tell(n)
		if i := n.Stream.Stream; n.Trouble && !troubled[i] {
			troubled[i] = true
			w.owe(func() { w.push(Heard{i}) })
		}
	}
	for _, ev := range events {
		if stop, ok := ev.(Stop); ok {
			stop.Owner.(*simWatch).told = nil // no more
		}
	}
	for _, t := range fx.Decode {
		w.owe(func() { w.push(Decoded{t, decode(w.kinds, t)}) })
	}
	for _, p := range fx.Guard {
		w.owe(func() { w.judge(p) })
	}
	for _, ld := range fx.Load {
		w.owe(func() { w.recall(ld) })
	}
	for _, k := range fx.Keep {
		w.keep(k)
	}
	w.carry(fx)
}

// carry does what is asked for of streams.
func (w *world) carry(fx Effects) {
	for _, ref := range fx.Close {
		s := w.streams[ref.Stream]
		w.must(s.ref == ref, "close of %v, the stream is %+v", ref, s)
		w.say("close %v", ref)
		s.state = idle
	}
	for _, wait := range fx.Wait {
		s := w.streams[wait.Stream]
		w.must(s.state == idle || wait.Fault.Err == errDeaf, "wait of %+v on stream %+v", wait, s)
		s.ref, s.state = wait.Ref, waiting
	}
	for _, o := range fx.Open {
		s := w.streams[o.Stream]
		w.must(s.state == idle && o.Gen > s.ref.Gen, "open %v while the stream is %+v", o.Ref, s)
		w.say("open %v", o.Ref)
		since := s.since
		if !slices.Contains(fx.Close, s.ref) { // S-30: else it is begun anew
			since = map[string]time.Time{}
		}
		*s = simStream{
			ref: o.Ref, state: opening, server: w.servers[o.Server], url: o.Type.url(), types: map[string]*simType{}, since: since, working: s.working,
		}
		w.owe(func() { w.up(s, o.Ref) })
	}
	for _, ref := range fx.Read {
		if s := w.streams[ref.Stream]; s.ref == ref {
			s.reading = true
		}
	}
	for _, send := range fx.Send {
		w.request(send)
	}
}

func (w *world) up(s *simStream, ref Ref) {
	switch {
	case s.ref != ref || s.state != opening: // given up
	case s.server.dead:
		w.end(s)
	default:
		s.state = up
		w.push(Up{s.ref, []byte{0x0a, 1, 'n'}})
	}
}

// end ends a stream, or the attempt to have one.
func (w *world) end(s *simStream) {
	kind := FaultConnection
	switch {
	case s.state != up && s.state != opening:
		return
	case s.state == up && w.roll(4) > 0:
		kind = FaultStream
	}
	s.state = idle
	w.push(Down{Ref: s.ref, Kind: kind, Err: errors.New([]string{"refused", "lost"}[w.roll(2)])})
}

func (w *world) retry(s *simStream) {
	if s.state == waiting {
		s.state = idle // until Open
		w.push(Retry{s.ref})
	}
}

// judge has a guard judge a proposal.
func (w *world) judge(p *Proposal) {
	var err error
	if w.one(2) {
		err = errors.New("the guard refuses it")
	}
	if p.resp != nil {
		w.streams[p.ref.Stream].working.refused = err != nil
	}
	for _, name := range p.Removed {
		if err != nil && p.resp == nil { // it is what the server does not speak of, which stays
			w.spared[p.TypeURL+name] = true
		}
	}
	w.push(Guarded{p, err})
}

// work does the chores that are not late.
func (w *world) work() {
	for again := true; again; again = len(w.queue) > 0 {
		w.flush()
		for _, do := range take(&w.chores) {
			if w.late() {
				w.owe(do)
			} else {
				do()
			}
		}
		for _, s := range w.streams {
			if s.state == waiting && !s.server.dead && !w.late() {
				w.retry(s)
			}
			if w.lazy == prompt {
				w.respond(s)
			}
		}
	}
}

// pass lets time go by as an engine would: the machine runs whenever it wants to.
func (w *world) pass(d time.Duration) {
	w.flush()
	spins := 0
	for end, over := w.now.Add(d), false; !over; {
		at, ok := w.m.Deadline()
		if over = !ok || at.After(end); over {
			at = end
		}
		if spins++; at.After(w.now) {
			w.now, w.steps, spins = at, 0, 0
		}
		w.must(spins <= 3, "the deadline %v stays where it is", at)
		w.push(Tick{})
		w.work()
	}
}
