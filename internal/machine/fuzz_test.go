package machine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
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
		runs = 100
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
	dead := w.one(2)
	for len(w.bytes) > 0 {
		w.act()
	}
	w.settle(dead)
	for len(w.watches) > 0 {
		w.stop(0)
	}
	w.settle(false)
	w.checkEmpty()
}

// act does one thing, and then what is not late.
func (w *world) act() {
	switch op := w.roll(25); {
	case op < 4:
		w.start()
	case op < 6 && len(w.watches) > 0:
		w.stop(w.roll(len(w.watches)))
	case op < 10:
		w.change()
	case op < 16:
		w.pick(w.respond)
	case op < 18:
		w.pick(w.retry)
	case op < 20:
		w.pass([]time.Duration{0, time.Microsecond, time.Millisecond, 300 * time.Millisecond, time.Second, 7 * time.Second, 16 * time.Second, time.Minute}[w.roll(8)])
	case op < 21:
		w.pick(w.end)
	case op < 22:
		w.lazy = w.roll(4)
	case op < 23:
		w.settle(w.one(2))
	case op < 24:
		w.pick(w.stale)
	default:
		w.reach(w.servers[w.roll(len(w.servers))])
	}
	if !w.late() {
		w.work()
	}
}

func (w *world) start() {
	name := w.names[w.roll(len(w.names))]
	if !w.aliases && w.one(3) { // a resource that is held under an alias is no member of a collection
		name = w.collections[w.roll(len(w.collections))]
	}
	watch := Watch{Type: w.types[w.roll(3)], Name: name, Explicit: w.one(2)}
	if w.fetches {
		n := w.roll(4)
		watch.Patient, watch.FetchTimeout = n == 0, []time.Duration{0, 0, 5 * time.Second, 20 * time.Second}[n]
	}
	w.begin(watch)
}

func (w *world) begin(watch Watch) *simWatch {
	sw := &simWatch{Watch: &watch, began: w.now, told: map[string]told{}}
	watch.Owner, watch.Source, watch.Wildcard = sw, int32(sourceOf(watch.Name)), strings.HasSuffix(watch.Name, star)
	w.watches, w.watched[watch.Type.URL+watch.Name] = append(w.watches, sw), true
	w.say("start %s explicit %v", sw, watch.Explicit)
	w.push(Start{&watch})
	return sw
}

func (w *world) stop(i int) {
	sw := w.watches[i]
	w.watches = slices.Delete(w.watches, i, i+1)
	w.say("stop %s", sw)
	w.push(Stop{sw.Watch})
	if w.one(4) {
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

// pick does something to the first stream, from any one on, to which it can be done.
func (w *world) pick(do func(*simStream)) {
	n, before := w.roll(8), len(w.queue)
	for i := range w.streams {
		if do(w.streams[(n+i)%len(w.streams)]); len(w.queue) > before {
			return
		}
	}
}

// stale tells of an incarnation that is over.
func (w *world) stale(s *simStream) {
	if old := (Ref{s.ref.Stream, s.ref.Gen - 1}); s.ref.Gen > 0 {
		w.push([]Event{
			Up{Ref: old}, Down{Ref: old, Kind: FaultStream, Err: errors.New("old")}, Written{old}, Retry{old}, Tick{Late: time.Minute},
		}[w.roll(5)])
	}
}

// settle lets everything come to rest, timers too, and looks at what watches hold. Servers that are
// dead come back, unless they are to stay so.
func (w *world) settle(dead bool) {
	w.say("settle, servers stay dead: %v", dead)
	lazy, hated, bytes := w.lazy, w.hated, w.bytes
	w.lazy, w.hated, w.bytes = prompt, nil, nil // nothing is left to chance
	for _, s := range w.servers {
		if s.dead && !dead {
			w.reach(s)
		}
	}
	for i := range 60 { // for types that are held back, and streams that begin anew
		w.pass([]time.Duration{100 * time.Millisecond, 30 * time.Second}[i/30])
		for _, s := range w.streams {
			w.retry(s)
		}
	}
	w.pass(2 * time.Minute)
	w.check(dead)
	w.lazy, w.hated, w.bytes = lazy, hated, bytes
}

// Each option of a server is drawn in some random run, but for parameters, which the modelled servers do not have.
func TestEveryOptionIsDrawn(t *testing.T) {
	drawn := map[string]bool{"NoParams": true}
	for seed := range uint64(200) {
		options := reflect.ValueOf(newWorld(t, randomBytes(seed, 50)).server)
		for i := range options.NumField() {
			if !options.Field(i).IsZero() {
				drawn[options.Type().Field(i).Name] = true
			}
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Server]()) {
		if field.IsExported() && !drawn[field.Name] {
			t.Errorf("Server.%s is never drawn", field.Name)
		}
	}
}
