package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A world is a machine between a program, an engine, a network and servers, in which bytes decide
// what happens next. The servers tell the truth (fuzz_server_test.go), so what a watch should hold is
// what its server has (model_test.go), and at rest it has to hold that, whatever happened before.
type world struct {
	testing.TB
	dice
	m       *Machine
	now     time.Time
	config  Config
	server  Server // what all servers are like
	types   []*Type
	servers []*simServer
	sources [][]int                                 // servers of old-style names, and of structured ones
	answers func(server int, authority string) bool // who may say structured names; nil for all
	globs   bool                                    // there are structured names
	aliases bool
	guards  bool
	mortal  bool // some resources have a time to live
	stored  bool // a store keeps some types
	fetches bool // watches have an initial fetch timeout

	watches []*simWatch
	stopped map[*Watch]bool
	streams []*simStream
	tasks   []*Task
	judging []*Proposal
	starred map[*Type]bool      // the wildcard was watched
	spared  map[string][]string // by type: what a guard has kept that a server does not speak of
	loads   []*Load
	shelves map[shelfKey]*simShelf
	queue   []Event
	sent    []*simResponse // that are not consumed
	changes int            // of what is watched, ever
	serial  int            // of what servers make
	lazy    int            // bits: what is not done at once
	hated   *Type          // servers end streams that ask for it; nil for none
	evil    bool           // servers send what means nothing, so that what watches hold cannot be known
	log     []string
}

// dice are bytes that decide what happens; at their end they give zeros.
type dice struct{ bytes []byte }

func (d *dice) roll(n int) int {
	if len(d.bytes) == 0 {
		return 0
	}
	v := int(d.bytes[0]) % n
	d.bytes = d.bytes[1:]
	return v
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
	lazyStore
)

// simStream is a stream as the engine sees it.
type simStream struct {
	ref      Ref
	server   *simServer
	url      string
	state    streamState
	writing  bool
	reading  bool // the next response may be sent
	consumed bool // delivery of the last one waits for handlers
	began    bool // a request was sent
	doomed   bool // the server will end it

	subscribed map[string]*simType // by type URL
	unasked    map[string]string   // nonces of types that were not asked for
}

const period = 15 * time.Second

func newWorld(t testing.TB, b []byte) *world {
	w := &world{TB: t, dice: dice{b}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), stopped: map[*Watch]bool{}, shelves: map[shelfKey]*simShelf{}, spared: map[string][]string{}, starred: map[*Type]bool{}}
	is := func() bool { return w.roll(2) == 1 }
	w.server = Server{Delta: is(), PerType: is(), KeepDeleted: w.roll(4) == 1, FailOnDataErrors: w.roll(4) == 1, ExplicitWildcard: w.roll(4) == 1, ResumeVersion: w.roll(4) == 1}
	if w.roll(4) == 1 {
		w.server.TransientTimeout = 30 * time.Second
	}
	if !w.server.Delta && w.roll(4) == 1 {
		w.server.Polled = is()
		w.server.FullState = !w.server.Polled // a file
		w.server.PerType = w.server.PerType || w.server.Polled
	}
	w.config = Config{ResourceTimeout: period, Linger: time.Second, NodeAlways: w.roll(4) == 1}
	w.globs, w.aliases, w.guards, w.mortal = is(), w.roll(4) == 1, w.roll(3) == 1, w.roll(4) == 1
	w.stored, w.fetches = w.roll(3) == 1, w.roll(4) == 1
	if w.roll(6) == 1 {
		w.config.ResourceTimeout = -1 // no timers
	}
	if w.roll(8) == 1 {
		w.server.Rate = Rate{Tokens: 2, Every: time.Second}
	}
	w.types = []*Type{
		{URL: "type.googleapis.com/envoy.config.cluster.v3.Cluster", FullState: true, NameField: 1, Guarded: w.guards && is(), Stored: w.stored && w.roll(4) > 0},
		{URL: "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", NameField: 1, Guarded: w.guards && is(), Stored: w.stored && w.roll(4) > 0},
		{URL: "type.googleapis.com/test.Foo", Guarded: w.guards && is(), Stored: w.stored && w.roll(4) > 0},
	}
	for _, t := range w.types {
		if w.roll(6) == 1 {
			t.Keep = []time.Duration{7 * time.Second, 40 * time.Second}[w.roll(2)]
		}
	}
	n := 1
	if is() {
		n = 2 + w.roll(2)
	}
	w.m = New(w.config)
	for i := range n {
		w.m.AddServer(w.server)
		w.servers = append(w.servers, newSimServer(w, i))
	}
	if w.roll(3) == 1 { // structured names are none of the other servers'
		w.answers = func(server int, _ string) bool { return slices.Contains(w.sources[1], server) }
	}
	for range 2 {
		var order []int
		first := w.roll(n)
		for k := range 1 + w.roll(n) {
			order = append(order, (first+k)%n)
		}
		w.sources = append(w.sources, order)
		w.m.AddSource(Source{Servers: order, ReachabilityOnly: w.roll(4) == 1, Stored: w.stored, Answers: w.answers})
	}
	if w.roll(3) == 1 {
		w.hated = w.types[w.roll(3)]
	}
	w.evil = w.roll(8) == 1
	w.fill()
	for range 10 {
		w.change()
	}
	return w
}

// full says whether responses of a type hold everything.
func (w *world) full(t *Type) bool { return !w.server.Delta && (t.FullState || w.server.FullState) }

func (w *world) say(format string, args ...any) {
	w.log = append(w.log, w.now.Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.Helper()
	for _, l := range w.log[max(0, len(w.log)-400):] {
		w.Log(l)
	}
	w.Fatalf(format, args...)
}
