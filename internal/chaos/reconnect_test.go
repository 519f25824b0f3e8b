package chaos

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/xdswatch/xdswatch/internal/race"
)

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
			synctest.Test(t, func(t *testing.T) { reconnect(t, *seed+uint64(i), c.variant, c.streams) })
		})
	}
}

func reconnect(t *testing.T, seed uint64, v variant, streams int64) {
	s := newStormy(t, seed, v)
	for range 10 {
		s.program.step()
	}
	for round := 0; s.program.came.Load() < streams; round++ {
		s.breakIt()
		for range s.rng.IntN(3) {
			s.step()
		}
		s.sleep(time.Duration(s.rng.IntN(300)) * time.Millisecond)
		if round%40 == 0 {
			s.catchUp()
			s.settle()
			s.sleep(2 * resourceTimeout) // a stream may begin anew, and timers with it
			must(t, s.program.check(true))
		}
	}
}

// newStormy starts a program at a server in memory, in fake time.
func newStormy(t *testing.T, seed uint64, v variant) *site {
	w := newWorld(t, seed, v)
	w.build()
	w.program.open()
	return w.sites[0]
}

func (s *site) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// breakIt breaks streams, connections or the way to the server, or lets time jump.
func (s *site) breakIt() {
	n := s.rng.IntN(40)
	s.log.Printf("break %d", n)
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
		s.order("Noise", 0)
	case 6:
		s.program.stopAll()
		s.sleep(time.Duration(s.rng.IntN(100)) * time.Millisecond) // more or less than it lingers
	default:
		s.order("End", codes.Code(s.rng.IntN(17)))
	}
}

// refuse lets attempts fail for a while.
func (s *site) refuse(d time.Duration) {
	s.memory.server.SetRefuse(true)
	s.memory.server.DropConnections()
	s.sleep(d)
	s.memory.server.SetRefuse(false)
}

// catchUp gives the client the time for its longest wait and for what it asks for.
func (s *site) catchUp() { s.sleep(5 * time.Second) }
