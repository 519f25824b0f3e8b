package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/testutil/script"
)

// A world is a machine between a program, an engine, a network and servers, in which bytes decide
// what happens next. The servers tell the truth (fuzz_server_test.go), so what a watch should hold is
// what its server has (model_test.go), and at rest it has to hold that, whatever happened before.
type world struct {
	testing.TB
	bytes       []byte // that decide; at their end they give zeros
	m           *Machine
	now         time.Time
	server      Server // what all servers are like
	kinds       map[string]resource.AnyType
	types       []*Type
	servers     []*simServer
	sources     [2]Source // of old-style names, and of structured ones
	resources   []string  // their names
	names       []string  // these, and aliases
	all         []string  // these, and globs
	collections []string  // that may be watched, some more often
	aliases     bool
	mortal      bool // some resources have a time to live
	fetches     bool // watches have an initial fetch timeout
	evil        bool // servers send what means nothing, so watches may hold anything
	hated       *Type

	watches []*simWatch
	streams []*simStream
	chores  []func()
	queue   []Event
	watched map[string]bool // what ever was, by type and name
	spared  map[string]bool // that a guard has kept though a server does not speak of them
	store   map[shelf]Kept
	serial  int // of what servers make
	lazy    int // how many of four chores of the engine, the store and the program are late; or prompt
	steps   int // of the machine, at this moment
	log     []func() string
}

// roll is a number below n.
func (w *world) roll(n int) int {
	if len(w.bytes) == 0 {
		return 0
	}
	v := int(w.bytes[0]) % n
	w.bytes = w.bytes[1:]
	return v
}

// one is true once in n times.
func (w *world) one(n int) bool { return w.roll(n) == 1 }

const (
	period   = 15 * time.Second
	maxSteps = 5000 // at one moment
)

func newWorld(t testing.TB, b []byte) *world {
	w := &world{
		TB: t, bytes: b, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), kinds: script.Kinds(),
		watched: map[string]bool{}, spared: map[string]bool{}, store: map[shelf]Kept{},
	}
	w.aliases, w.mortal, w.fetches, w.evil = w.one(4), w.one(4), w.one(4), w.one(8)
	w.resources, w.collections = slices.Clone(plainNames), []string{star, star}
	if w.one(2) {
		w.resources, w.collections = append(w.resources, structuredNames...), append(w.collections, globURLs...)
	}
	w.names = slices.Clone(w.resources)
	if w.aliases {
		w.names = append(w.names, aliasOf["a"], aliasOf["b"])
	}
	w.all = append(slices.Clone(globURLs), w.names...)
	for _, short := range []string{"cds", "eds", "foo"} {
		kind := w.kinds[short]
		w.types = append(w.types, &Type{
			URL: kind.TypeURL(), FullState: kind.FullState(), NameField: kind.NameField(),
			Guarded: w.one(6), Stored: w.one(4), DeletionKeep: []time.Duration{0, 7 * time.Second, 40 * time.Second}[max(0, w.roll(12)-9)],
		})
	}
	if w.one(3) {
		w.hated = w.types[w.roll(3)] // servers end streams that ask for it
	}
	w.drawServers()
	w.fill()
	for range 10 {
		w.change()
	}
	return w
}

// drawServers draws what servers are like, and who answers for what.
func (w *world) drawServers() {
	few := Rate{Tokens: 2, Every: time.Second}
	w.server = []Server{
		{Delta: true}, {Delta: true}, {Delta: true}, {Delta: true, Rate: few}, {}, {}, {Rate: few},
		{Polled: true, PerType: true}, {AlwaysFull: true}, // a file
	}[w.roll(9)]
	w.server.PerType = w.server.PerType || w.one(2)
	w.server.NodeAlways, w.server.ExplicitWildcard, w.server.ResumeVersion = w.one(4), w.one(4), w.one(4)
	w.server.KeepDeleted, w.server.FailOnDataErrors = w.one(4), w.one(4)
	w.server.TransientTimeout = []time.Duration{0, 0, 0, 30 * time.Second}[w.roll(4)]
	n := []int{1, 1, 2, 3}[w.roll(4)]
	for i := range n {
		w.servers = append(w.servers, &simServer{index: i, stores: map[string]simStore{}})
		for range w.types { // maybe one for each
			w.streams = append(w.streams, &simStream{ref: Ref{Stream: len(w.streams)}, types: map[string]*simType{}})
		}
	}
	var answers func(server int, authority string) bool
	if w.one(3) { // structured names are none of the other servers'
		answers = func(server int, _ string) bool { return slices.Contains(w.sources[1].Servers, server) }
	}
	for i := range w.sources {
		w.sources[i] = Source{ReachabilityOnly: w.one(4), Stored: true, Answers: answers}
		first := w.roll(n)
		for k := range 1 + w.roll(n) {
			w.sources[i].Servers = append(w.sources[i].Servers, (first+k)%n)
		}
	}
	c := Config{ResourceTimeout: []time.Duration{period, period, period, period, period, -1}[w.roll(6)], Linger: time.Second}
	w.m = newMachine(c, slices.Repeat([]Server{w.server}, n), w.sources[:]...)
}

// full says whether responses of a type hold everything.
func (w *world) full(t *Type) bool { return !w.server.Delta && (t.FullState || w.server.AlwaysFull) }

func (w *world) push(ev Event) {
	w.say("%T %+v", ev, ev)
	w.queue = append(w.queue, ev)
}

func (w *world) say(format string, args ...any) {
	now := w.now
	w.log = append(w.log, func() string { return now.Format("04:05.000 ") + fmt.Sprintf(format, args...) })
}

// must fails the run, and says what happened before, unless something holds.
func (w *world) must(holds bool, format string, args ...any) {
	w.Helper()
	if holds {
		return
	}
	for _, l := range w.log[max(0, len(w.log)-400):] {
		w.Log(l())
	}
	w.Fatalf(format, args...)
}

// honest is must for what agrees with the servers. Those of an evil world contradict themselves.
func (w *world) honest(holds bool, format string, args ...any) {
	w.Helper()
	w.must(holds || w.evil, format, args...)
}
