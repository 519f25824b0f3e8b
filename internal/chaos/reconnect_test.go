package main

import (
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/internal/race"
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
		{variant{via: viaMemory}, 1500},
		{variant{via: viaMemory, delta: true}, 1500},
		{variant{via: viaMemory, perType: true}, 3500},
		{variant{via: viaMemory, delta: true, perType: true}, 3500},
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
	t *testing.T
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
	defer s.close()
	for range 10 {
		must(t, s.program.step(s.rng))
	}
	for round := 0; s.program.came.Load() < streams; round++ {
		s.breakIt()
		for range s.rng.IntN(3) {
			must(t, s.step())
		}
		s.sleep(time.Duration(s.rng.IntN(300)) * time.Millisecond)
		if round%40 == 0 {
			s.mend()
			if err := s.settle(t.Context()); err != nil {
				t.Fatalf("seed %d, %v, round %d, %d streams: %v", seed, v, round, s.program.came.Load(), err)
			}
		}
	}
}

func newStormy(t *testing.T, seed uint64, v variant) *stormy {
	w, err := newWorld(seed, v)
	must(t, err)
	config, err := w.config()
	must(t, err)
	w.program, err = newProgram(config, w.model)
	must(t, err)
	return &stormy{w.sites[0], t}
}

func (s *stormy) close() {
	must(s.t, s.program.close())
	s.world.close()
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
		must(s.t, s.order(order{Op: opNoise}))
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
