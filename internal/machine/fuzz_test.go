package machine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/race"
)

// FuzzMachine lets bytes decide what the program, the network and the servers do.
func FuzzMachine(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(randomBytes(seed, 300))
	}
	f.Fuzz(func(t *testing.T, b []byte) { run(t, b[:min(len(b), 2000)]) })
}

func TestRandomRuns(t *testing.T) {
	runs := 2000
	switch {
	case testing.Short():
		runs = 300
	case race.Enabled:
		runs = 800 // there is one goroutine
	}
	for seed := range uint64(runs) {
		size := uint64(350)
		if seed%5 == 0 {
			size = 900 // what takes many servers, streams and watches to come about
		}
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { run(t, randomBytes(seed, size)) }) {
			return
		}
	}
}

func randomBytes(seed, size uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, r.Uint64N(size)+30)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func run(t testing.TB, b []byte) {
	w := newWorld(t, b)
	dead := w.roll(2) == 1
	for len(w.bytes) > 0 {
		w.act(w.roll(31))
	}
	w.settle(dead)
	for len(w.watches) > 0 {
		w.stop(0)
	}
	w.settle(false)
	w.checkEmpty()
}

// act does one thing.
func (w *world) act(op int) {
	switch op {
	case 0, 1, 2, 3:
		w.start()
	case 4, 5:
		if len(w.watches) > 0 {
			w.stop(w.roll(len(w.watches)))
		}
	case 6, 7, 8, 9:
		w.change()
	case 10, 11, 12, 13, 14, 15:
		w.pick(up, w.respond)
	case 16:
		w.pick(idle, w.end)
	case 17:
		w.lazy ^= 1 << w.roll(8)
		w.say("lazy %b", w.lazy)
	case 18:
		w.pick(up, w.written)
	case 19, 20:
		w.decode(w.roll(max(1, len(w.tasks))))
	case 21:
		w.pick(up, w.deliver)
	case 22:
		w.pick(opening, w.up)
	case 23:
		w.pick(waiting, w.retry)
	case 24, 25:
		w.pass([]time.Duration{0, time.Microsecond, time.Millisecond, 300 * time.Millisecond, time.Second, 7 * time.Second, 16 * time.Second, time.Minute}[w.roll(8)])
	case 26:
		w.settle(w.roll(2) == 1)
	case 27:
		w.stale()
	case 28:
		w.judge(w.roll(max(1, len(w.judging))), false)
	case 29:
		w.reach(w.servers[w.roll(len(w.servers))])
	case 30:
		w.recall(w.roll(max(1, len(w.loads))))
	}
	if w.lazy&lazyStep == 0 {
		w.flush()
		w.prompt(w.lazy)
	}
}

func (w *world) start() {
	t, names := w.types[w.roll(3)], w.names()
	watch := &Watch{Type: t, Name: names[w.roll(len(names))]}
	switch n := w.roll(8); {
	case w.aliases: // a resource that is held under an alias is no member of a collection
	case n == 0 || n == 1:
		watch.Name, watch.Wildcard, watch.Explicit = star, true, n == 1
	case n == 2 && w.globs:
		watch.Name, watch.Wildcard = globURLs[w.roll(len(globURLs))], true
	}
	if structured(watch.Name) {
		watch.Source = 1
	}
	if w.fetches {
		watch.FetchTimeout = []time.Duration{-1, 0, 5 * time.Second, 20 * time.Second}[w.roll(4)]
	}
	w.starred[t] = w.starred[t] || watch.Name == star
	sw := newSimWatch(watch, w.now)
	w.changes++
	w.watches = append(w.watches, sw)
	w.say("start %s explicit %v", sw.label(), watch.Explicit)
	w.push(Start{watch})
}

func (w *world) stop(i int) {
	sw := w.watches[i]
	w.changes++
	w.watches = slices.Delete(w.watches, i, i+1)
	w.stopped[sw.Watch] = true
	w.say("stop %s", sw.label())
	w.push(Stop{sw.Watch})
	if w.roll(4) == 1 {
		w.push(Stop{sw.Watch}) // twice is nothing
	}
}

// reach makes a server unreachable, or reachable again.
func (w *world) reach(s *simServer) {
	s.dead = !s.dead
	w.say("server %d is dead: %v", s.index, s.dead)
	for _, st := range w.streams {
		if st.server == s && s.dead {
			w.end(st)
		}
	}
}

func (w *world) stream(i int) *simStream {
	for len(w.streams) <= i {
		w.streams = append(w.streams, &simStream{ref: Ref{Stream: len(w.streams)}})
	}
	return w.streams[i]
}

// pick does something to a stream in the given state; idle stands for any.
func (w *world) pick(state streamState, do func(*simStream)) {
	n := w.roll(8)
	for i := range w.streams {
		s := w.streams[(n+i)%len(w.streams)]
		if s.state == state || state == idle {
			do(s)
			return
		}
	}
}

func (w *world) push(ev Event) { w.queue = append(w.queue, ev) }

func (w *world) up(s *simStream) {
	switch {
	case s.state != opening:
	case s.server.dead:
		w.end(s)
	default:
		*s = simStream{ref: s.ref, server: s.server, url: s.url, state: up, subscribed: map[string]*simType{}, unasked: map[string]string{}}
		w.say("up %v", s.ref)
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
	s.state, s.doomed = idle, false
	w.say("down %v %v", s.ref, kind)
	w.handled(s)
	w.push(Down{Ref: s.ref, Kind: kind, Err: errors.New([]string{"refused", "lost"}[w.roll(2)])})
}

func (w *world) retry(s *simStream) {
	if s.state == waiting {
		s.state = idle // until Open
		w.say("retry %v", s.ref)
		w.push(Retry{s.ref})
	}
}

func (w *world) written(s *simStream) {
	if s.state == up && s.writing {
		s.writing = false
		w.say("written %v", s.ref)
		w.push(Written{s.ref})
	}
}

func (w *world) deliver(s *simStream) {
	if s.state == up {
		w.handled(s)
	}
}

// handled ends the delivery of a stream's last response.
func (w *world) handled(s *simStream) {
	if s.consumed {
		s.consumed = false
		w.say("delivered %v", s.ref)
		w.push(Delivered{s.ref})
	}
}

func (w *world) decode(i int) {
	if i >= len(w.tasks) {
		return
	}
	t := w.tasks[i]
	w.tasks = slices.Delete(w.tasks, i, i+1)
	results := make([]Result, len(t.Items))
	for i, it := range t.Items {
		v := decodeValue(it.Raw)
		results[i] = Result{Value: v, Same: it.Old != nil && decodeValue(it.Old) == v}
		if isBad(v) {
			results[i] = Result{Err: errors.New(v)}
		}
	}
	w.say("decoded %d items", len(t.Items))
	w.push(Decoded{t, results})
}

// stale tells of an incarnation that is over.
func (w *world) stale() {
	w.pick(idle, func(s *simStream) {
		if old := (Ref{s.ref.Stream, s.ref.Gen - 1}); s.ref.Gen > 0 {
			w.push([]Event{
				Up{Ref: old}, Down{Ref: old, Kind: FaultStream, Err: errors.New("old")}, Written{old}, Delivered{old}, Retry{old}, Tick{Stalled: true},
			}[w.roll(6)])
		}
	})
}

// prompt does at once what is not to be done lazily.
func (w *world) prompt(lazy int) {
	for _, s := range w.streams {
		if s.doomed {
			w.end(s) // once, or there would be no end to it
		}
	}
	for range 1000 {
		w.flush()
		if lazy&lazyGuard == 0 {
			w.judge(0, lazy == 0)
		}
		if lazy&lazyStore == 0 {
			w.recall(0)
		}
		if lazy&lazyDecoded == 0 {
			w.decode(0)
		}
		for _, s := range w.streams {
			if lazy&lazyUp == 0 {
				w.up(s)
			}
			if lazy&lazyWritten == 0 {
				w.written(s)
			}
			if lazy&lazyDelivered == 0 {
				w.deliver(s)
			}
			if lazy&lazyRetry == 0 && s.server != nil && !s.server.dead {
				w.retry(s)
			}
		}
		if len(w.queue) == 0 && (lazy&lazyGuard != 0 || len(w.judging) == 0) {
			return
		}
	}
	w.fail("there is no end to it")
}

// pass lets time go by as an engine would: the machine runs whenever it wants to.
func (w *world) pass(d time.Duration) {
	w.flush()
	end := w.now.Add(d)
	spins := 0
	for at, ok := w.m.Deadline(); ok && !at.After(end); at, ok = w.m.Deadline() {
		if at.After(w.now) {
			spins = 0
		}
		if spins++; spins > 3 {
			w.fail("the deadline %v stays where it is", at)
		}
		w.now = at
		w.push(Tick{})
		w.flush()
		w.prompt(w.lazy | lazyUp | lazyDecoded | lazyGuard | lazyRetry | lazyStore)
	}
	w.now = end
	w.push(Tick{})
	w.flush()
}

// serve has servers say all that they owe.
func (w *world) serve() {
	for range 200 {
		w.prompt(0)
		for _, s := range w.streams {
			if s.state == up && slices.ContainsFunc(w.types, func(t *Type) bool { return s.subscribed[t.URL] != nil && s.subscribed[t.URL].owes(w, s) }) {
				w.respond(s)
			}
		}
		if len(w.queue) == 0 {
			return
		}
	}
	w.fail("servers never come to an end")
}

// settle lets everything come to rest, timers too, and looks at what watches hold. Servers that are
// dead come back, unless they are to stay so.
func (w *world) settle(dead bool) {
	w.say("settle, servers stay dead: %v", dead)
	lazy, hated, bytes := w.lazy, w.hated, w.bytes
	w.lazy, w.hated, w.bytes = 0, nil, nil // nothing is left to chance
	for _, s := range w.servers {
		if s.dead && !dead {
			w.reach(s)
		}
	}
	w.serve()
	for range 20 {
		w.pass(100 * time.Millisecond)
		w.serve()
	}
	for range 40 { // types that are held back, and streams that begin anew
		w.pass(30 * time.Second)
		for _, s := range w.streams {
			w.retry(s)
		}
		w.serve()
	}
	w.pass(2 * time.Minute)
	w.check(dead)
	w.lazy, w.hated, w.bytes = lazy, hated, bytes
	clear(w.stopped)
}
