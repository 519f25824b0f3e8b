package main

import (
	"context"
	"flag"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/transport"
)

var firstSeed = flag.Uint64("seed", 0, "of the first test of reconnects")

// Ten thousand streams come and go, in fake time, while watches do and the server changes
// its resources. What is left behind fails the bubble.
func TestReconnects(t *testing.T) {
	if testing.Short() {
		t.Skip("long: ten thousand streams")
	}
	t.Parallel()
	for i, c := range []struct {
		variant
		streams int64
	}{
		{variant{}, 1500},
		{variant{delta: true}, 1500},
		{variant{perType: true}, 3500},
		{variant{delta: true, perType: true}, 3500},
	} {
		if race.Enabled {
			c.streams /= 4 // all of them take a minute of two cores with the race detector
		}
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { reconnect(t, *firstSeed+uint64(i), c.variant, c.streams) })
		})
	}
}

// stormy is a program at a server in memory, in fake time.
type stormy struct {
	*site
	t       *testing.T
	memory  *memory
	streams atomic.Int64
}

func reconnect(t *testing.T, seed uint64, v variant, streams int64) {
	s := newStormy(t, seed, v)
	defer func() {
		if t.Failed() {
			for _, line := range s.log.last() {
				t.Log(line)
			}
		}
	}()
	defer s.memory.server.Close()
	defer func() { must(t, s.program.close()) }()
	for range 10 {
		must(t, s.program.step(s.rng))
	}
	for round := 0; s.streams.Load() < streams; round++ {
		s.breakIt()
		for range s.rng.IntN(3) {
			must(t, s.live())
		}
		s.sleep(time.Duration(s.rng.IntN(300)) * time.Millisecond)
		if round%40 == 0 {
			s.mend()
			if err := s.settleMemory(); err != nil {
				t.Fatalf("seed %d, %v, round %d, %d streams: %v", seed, v, round, s.streams.Load(), err)
			}
		}
	}
}

func newStormy(t *testing.T, seed uint64, v variant) *stormy {
	log := newJournal()
	s := &stormy{
		t: t, site: &site{world: &world{
			variant: v, rng: rand.New(rand.NewPCG(seed, 0)), log: log, model: newModel(v.delta, 1, log),
		}},
		memory: newMemory("memory"),
	}
	s.truth = s.model.truths[0]
	s.model.large = 0
	s.truth.change(s.rng, 0.7)
	s.publish()
	p, err := newProgram(client.Config{
		Bootstrap: &bootstrap.Config{
			Node: &corev3.Node{Id: "chaos"},
			Servers: []bootstrap.ManagementServer{{
				URI: s.memory.server.Target(), ChannelCreds: bootstrap.Insecure(), Delta: v.delta, PerType: v.perType,
			}},
			Authorities: map[string]bootstrap.Authority{authority: {}},
		},
		GRPC: transport.GRPCConfig{ConnectTimeout: time.Second, KeepaliveTime: -1, DialOptions: s.memory.server.DialOptions()},
	}, s.model, &s.streams)
	must(t, err)
	s.program = p
	return s
}

func (s *stormy) publish() {
	must(s.t, s.memory.set(s.truth.state()))
	s.truth.confirm()
}

// live changes something.
func (s *stormy) live() error {
	if s.rng.IntN(4) == 0 {
		s.truth.change(s.rng, 0.1)
		s.publish()
		return nil
	}
	return s.program.step(s.rng)
}

func (s *stormy) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// breakIt breaks streams, connections or the way to the server, or lets time jump.
func (s *stormy) breakIt() {
	n := s.rng.IntN(40)
	s.log.add("break %d", n)
	switch n {
	case 0:
		s.memory.server.DropConnections()
	case 1:
		s.memory.server.GoAway()
	case 2:
		s.refuse(time.Second)
	case 3:
		s.memory.server.SetHoldDial(true)
		s.memory.server.DropConnections()
		s.sleep(3 * time.Second)
		s.memory.server.SetHoldDial(false)
	case 4:
		s.sleep(time.Duration(s.rng.IntN(1000)) * time.Hour)
	case 5:
		s.memory.noise()
	case 6:
		s.program.stopAll()
		s.sleep(time.Duration(s.rng.IntN(100)) * time.Millisecond) // more or less than it lingers
	default:
		s.endStreams(func() codes.Code { return codes.Code(s.rng.IntN(17)) })
	}
}

func (s *stormy) endStreams(code func() codes.Code) {
	for _, st := range s.memory.Streams() {
		st.End(status.Error(code(), "broken"))
	}
}

// refuse lets attempts fail for a while.
func (s *stormy) refuse(d time.Duration) {
	s.memory.server.SetRefuse(true)
	s.memory.server.DropConnections()
	s.sleep(d)
	s.memory.server.SetRefuse(false)
}

// mend gives the client the time for its longest wait and for what it asks for.
func (s *stormy) mend() { s.sleep(5 * time.Second) }

// settleMemory is settle for the server in memory.
func (s *stormy) settleMemory() error {
	ctx := context.Background()
	if err := s.await(ctx, false); err != nil {
		return err
	}
	s.truth.refresh()
	s.publish()
	if err := s.await(ctx, true); err != nil {
		return err
	}
	if err := s.program.checkDump(); err != nil {
		return err
	}
	s.model.settle()
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
