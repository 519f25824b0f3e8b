package machine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// source is bytes that decide what happens; at its end it gives zeros.
type source struct{ b []byte }

func (s *source) next(n int) int {
	if len(s.b) == 0 {
		return 0
	}
	v := int(s.b[0]) % n
	s.b = s.b[1:]
	return v
}

// simStream is a stream as the engine and the server see it.
type simStream struct {
	ref       Ref
	state     streamState
	writing   bool
	doomed    bool         // the server will end it
	began     bool         // a request was sent
	node      *corev3.Node // as it was last told
	reading   *simResponse
	consumed  bool // reading waits for Delivered
	responded bool
	since     time.Time // when it came up
	resumed   time.Time // when it was first told what is held; zero if it was not
	calm      bool      // it has been silent since
	pics      map[string]*picture
	ignored   map[string]string // nonces of responses to types that were not asked for
}

// picture is what a dumb server makes of the requests of one type.
type picture struct {
	named    bool
	wild     bool
	legacy   bool // the first request had no names, and `*` was not said since
	names    map[string]bool
	newest   string   // nonce of the newest response; SotW
	unheard  []answer // expected, oldest first
	verdicts []verdict
	answered bool              // a response was answered
	listed   map[string]string // initial versions, until the first response
	acks     map[string]int
}

// world is a machine between a program and a server that both do as they please.
type world struct {
	testing.TB
	source
	m        *Machine
	policy   policy
	perType  bool
	many     bool // servers
	globs    bool // and names that they cover
	clear    bool // no wildcards beside names that globs cover: see murky
	lines    map[lineKey]*line
	explicit bool              // servers know the wildcard by its name
	resumes  bool              // see resumesVersion
	stern    bool              // see there
	aliased  bool              // see aliasesToo
	budget   bool              // first requests are kept small
	params   bool              // names have parameters, and resources variants for others
	ttls     bool              // some resources have a time to live
	said     map[string]string // what the node says of each type; see describe
	hated    *model            // the server ends streams that ask for it; nil for none
	now      time.Time
	models   []*model
	streams  map[int]*simStream
	watches  []*simWatch
	dead     map[*Watch]bool // that were stopped before the present step
	started  []*Watch        // within it
	stopped  []*Watch
	tasks    []*Task
	judging  []*Proposal
	fresh    *Proposal // of the step before, in which nothing else happened
	queue    []Event
	sent     []*simResponse // that are not consumed
	serial   int
	lazy     int // bits: what is not done at once
	bulk     bool
	trouble  map[int]bool // streams that failed without a response since the last one
	log      []string
}

// Bits of world.lazy.
const (
	lazyUp = 1 << iota
	lazyWritten
	lazyDecoded
	lazyDelivered
	lazyRetry
	lazyStep
	lazyGuard
	lazyAll = 1<<iota - 1
)

// Bits that say what else there is in a world.
const (
	guards            = 1<<3 - 1 // one for each type
	explicitWildcards = 1 << 3   // servers know the wildcard by its name
	stern             = 1 << 4   // guards refuse most of what ends or lists anything, and there is more of it
	aliasesToo        = 1 << 5   // resources have aliases
	aliasesOfMany     = 1 << 6   // in worlds of several servers too
	resumesVersion    = 1 << 7   // new streams carry the version that was accepted
)

func newWorld(t testing.TB, b []byte, extra byte) *world {
	w := &world{TB: t, source: source{b}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), streams: map[int]*simStream{}, trouble: map[int]bool{}, dead: map[*Watch]bool{}, lines: map[lineKey]*line{}}
	flags := w.next(256)
	w.policy = policy{delta: flags&1 != 0, keep: flags&4 != 0, drop: flags&8 != 0}
	w.perType = flags&2 != 0
	server := Server{Delta: w.policy.delta, PerType: w.perType, KeepDeleted: w.policy.keep, FailOnDataErrors: w.policy.drop}
	w.explicit, w.stern = extra&explicitWildcards != 0, extra&stern != 0
	server.ExplicitWildcard = w.explicit
	w.resumes = extra&resumesVersion != 0
	server.ResumeVersion = w.resumes
	if flags&16 != 0 {
		server.TransientTimeout = 30 * time.Second
	}
	w.many, w.globs = flags&64 != 0, flags&128 != 0
	w.aliased = extra&aliasesToo != 0 && (!w.many || extra&aliasesOfMany != 0)
	servers, sources := w.newSources(server)
	w.m = newMachine(Config{ResourceTimeout: 15 * time.Second, Linger: time.Second, NodeAlways: flags&32 != 0}, servers, sources...)
	for _, typ := range []*Type{
		{URL: "type.googleapis.com/envoy.config.cluster.v3.Cluster", FullState: true, NameField: 1},
		{URL: "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", NameField: 1},
		{URL: "type.googleapis.com/test.Foo"},
	} {
		typ.Guarded = extra&(1<<len(w.models))&guards != 0
		w.models = append(w.models, newModel(typ))
	}
	if w.budget = w.policy.delta && w.next(4) == 0; w.budget {
		for _, budget := range w.m.budgets {
			*budget = 50 + w.next(100)
		}
	}
	n := w.next(36)
	w.ttls, n = n >= 18, n%18
	if n%9 < 3 {
		w.hated = w.models[n%9]
	}
	if w.params = n >= 9; w.params {
		for i := range w.m.sources {
			w.m.sources[i].Params = wire.NewParams(envOf(i))
		}
	}
	return w
}

func (w *world) say(format string, args ...any) {
	w.log = append(w.log, w.now.Format("05.000 ")+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.Helper()
	for _, l := range w.log[max(0, len(w.log)-400):] {
		w.Log(l)
	}
	w.Fatalf(format, args...)
}

func (w *world) model(url string) *model {
	for _, md := range w.models {
		if md.typ.URL == url {
			return md
		}
	}
	w.fail("no type %s", url)
	return nil
}

// FuzzMachine lets bytes decide what the program, the network and the server do.
func FuzzMachine(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(randomBytes(seed, 300), byte(seed*3))
	}
	f.Fuzz(func(t *testing.T, b []byte, extra byte) { run(t, b[:min(len(b), 2000)], extra) })
}

func TestRandomRuns(t *testing.T) {
	runs := 2000
	if testing.Short() {
		runs = 300
	}
	for seed := range uint64(runs) {
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { run(t, randomBytes(seed, 250), byte(seed)) }) {
			return
		}
	}
}

func randomBytes(seed, size uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, r.Uint64N(size)+10)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func run(t testing.TB, b []byte, extra byte) {
	w := newWorld(t, b, extra)
	ops := 24
	if extra&guards != 0 {
		ops = 26
	}
	for len(w.b) > 0 {
		w.act(w.next(ops))
	}
	w.settle(true)
	for len(w.watches) > 0 {
		w.stop(0)
	}
	w.settle(true)
	for _, s := range w.m.streams {
		if s.state != idle || len(s.types) > 0 || len(s.order) > 0 || w.stream(s.index).state != idle {
			w.fail("stream %d is kept though nothing is watched: state %d, %d types", s.index, s.state, len(s.types))
		}
	}
	if at, ok := w.m.Deadline(); ok {
		w.fail("a deadline of %v is left", at)
	}
}

// act does one thing.
func (w *world) act(op int) {
	switch op {
	case 0, 1, 2, 3:
		w.start()
	case 4, 5:
		if len(w.watches) > 0 {
			w.stop(w.next(len(w.watches)))
		}
	case 6, 7, 8, 9, 10:
		w.respond()
	case 11:
		w.down()
	case 12:
		w.lazy ^= 1 << w.next(8) & lazyAll
		w.say("lazy %b", w.lazy)
	case 13:
		w.pick(idle, w.written)
	case 14, 15, 16:
		w.decode(w.next(max(1, len(w.tasks))))
	case 17:
		w.pick(idle, w.deliver)
	case 18:
		w.pick(opening, w.up)
	case 19:
		w.pick(waiting, w.retry)
	case 20, 21:
		n := w.next(16)
		if n >= 8 {
			w.describe(w.models[n%3].typ.URL, fmt.Sprint(n%4))
		}
		w.pass([]time.Duration{0, time.Microsecond, time.Millisecond, 300 * time.Millisecond, time.Second, 7 * time.Second, 16 * time.Second, time.Minute}[n%8])
	case 22:
		w.settle(w.next(2) == 1)
	case 23:
		w.stale()
	case 24, 25:
		w.judge(w.next(max(1, len(w.judging))))
	}
	if w.lazy&lazyStep == 0 {
		w.flush()
		w.prompt(w.lazy)
	}
}

// prompt does at once what is not to be done lazily.
func (w *world) prompt(lazy int) {
	for i := range w.m.streams {
		if s := w.stream(i); s.doomed {
			w.end(s) // once, or there would be no end to it
		}
	}
	for range 1000 {
		w.flush()
		if lazy&lazyGuard == 0 {
			w.judge(0)
		}
		if lazy&lazyDecoded == 0 {
			w.decode(0)
		}
		for i := range w.m.streams {
			s := w.stream(i)
			if lazy&lazyUp == 0 {
				w.up(s)
			}
			if lazy&lazyWritten == 0 {
				w.written(s)
			}
			if lazy&lazyDelivered == 0 {
				w.deliver(s)
			}
			if lazy&lazyRetry == 0 {
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
	idle := 0
	for {
		at, ok := w.m.Deadline()
		if !ok || at.After(end) {
			break
		}
		if at.After(w.now) {
			idle = 0
		}
		if idle++; idle > 3 {
			w.fail("the deadline %v stays where it is", at)
		}
		w.now = at
		w.push(Tick{})
		w.flush()
		w.prompt(w.lazy | lazyUp | lazyDecoded | lazyGuard | lazyRetry)
	}
	w.now = end
	w.push(Tick{})
	w.flush()
}

// settle lets everything come to rest, and looks at it. With long all timers run out.
func (w *world) settle(long bool) {
	w.say("settle, long: %v", long)
	lazy, hated := w.lazy, w.hated
	w.lazy, w.hated = 0, nil
	w.prompt(0)
	for range 20 {
		w.pass(100 * time.Millisecond)
		w.prompt(0)
	}
	for i := 0; i < 100 && w.heldBack(); i++ {
		w.pass(10 * time.Second)
		w.prompt(0)
	}
	for range 3 { // for what was asked for last
		w.pass(100 * time.Millisecond)
		w.prompt(0)
	}
	if long {
		for range 1 + len(w.models) { // for each type a stream may begin anew when they do
			w.pass(2 * time.Minute)
			w.prompt(0)
		}
		if at, ok := w.m.Deadline(); ok {
			w.fail("a deadline is left: %v", at)
		}
	}
	w.check(long)
	w.lazy, w.hated = lazy, hated
	w.dead = map[*Watch]bool{}
}
