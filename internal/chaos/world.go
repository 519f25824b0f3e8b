package chaos

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// world is servers and the ways to them, with a program that lives among them. It is driven
// by one goroutine, that of its test, which it fails when something is wrong.
type world struct {
	t       testing.TB
	seed    uint64
	variant variant
	rng     *rand.Rand
	log     *journal
	model   *model
	program *program // nil before start
	files   *pki     // nil in memory
	stores  int      // of the program so far

	sites    []*site  // in order of priority
	sequence []string // of faults, with their servers
	rests    int
	used     int // the active server of the last rest, or one before it that answers again
}

// newWorld makes a world for the length of a test; if that fails it is told how it came to it.
func newWorld(t testing.TB, seed uint64, v variant) *world {
	log := newJournal(t)
	w := &world{
		t: t, seed: seed, variant: v, rng: rand.New(rand.NewPCG(seed, 0)), log: log,
		model: newModel(v, log),
	}
	t.Cleanup(w.report)
	if v.via != viaMemory {
		w.files = newPKI(t)
	}
	for i, h := range w.model.truths {
		s := &site{world: w, index: i, truth: h}
		w.sites = append(w.sites, s)
		s.build()
	}
	return w
}

// report says of a test that failed what happened.
func (w *world) report() {
	if w.t.Failed() {
		w.t.Logf("last events:\n%s\nseed %d, %v\nfaults: %s",
			w.log.last(), w.seed, w.variant, strings.Join(w.sequence, " "))
	}
}

// config is that of a client of the servers.
func (w *world) config() client.Config {
	c := client.Config{
		Bootstrap: &bootstrap.Config{Node: &corev3.Node{Id: "chaos"}}, ResourceTimeout: resourceTimeout,
		GRPC: transport.GRPCConfig{
			KeepaliveTime: keepaliveTime, KeepaliveTimeout: keepaliveTimeout, ConnectTimeout: connectTimeout,
		},
	}
	b := c.Bootstrap
	var inMemory []*testutil.Server
	for _, s := range w.sites {
		server := s.reach()
		s.truth.uri = server.URI
		b.Servers = append(b.Servers, server)
		if s.memory != nil {
			inMemory = append(inMemory, s.memory.server)
		}
	}
	b.Authorities = map[string]bootstrap.Authority{authority: {Servers: b.Servers}}
	if len(inMemory) > 0 {
		c.GRPC.KeepaliveTime = -1
		c.GRPC.DialOptions = []grpc.DialOption{testutil.InMemory(inMemory...)}
	}
	return c
}

// start starts the program, with a client of a configuration.
func (w *world) start(config client.Config) {
	w.program = newProgram(w.t, config, w.model)
	w.t.Cleanup(w.program.close)
}

// moment is the time between two steps.
func (w *world) moment() { time.Sleep(time.Duration(w.rng.IntN(15)) * time.Millisecond) }

// step changes a subscription of the program or some resources of a server.
func (w *world) step() {
	if w.rng.IntN(4) == 0 {
		w.sites[w.rng.IntN(len(w.sites))].change(0.1)
	} else {
		w.program.step(w.rng)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
