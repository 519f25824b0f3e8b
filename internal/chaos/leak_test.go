package chaos

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/internal/race"
)

// Streams that come and go in one client's life, in each way by itself, leave neither a
// goroutine nor the bytes of a timer. Not parallel, since the heap is the whole process's.
func TestCostOfEndedStreams(t *testing.T) {
	race.SkipCost(t)
	for _, c := range []struct {
		name string
		do   func(*site)
	}{
		{"eof", ordered("End", codes.OK)},
		{"status", ordered("End", codes.Unavailable)},
		{"noise", ordered("Noise", 0)},
		{"cut", func(s *site) { s.memory.server.DropConnections() }},
		{"goaway", func(s *site) { s.memory.server.GoAway(); s.order("End", codes.OK) }},
		{"refused", func(s *site) { s.refuse(50 * time.Millisecond) }},
		{"idle", (*site).rewatch},
	} {
		for _, v := range []variant{{via: viaMemory, perType: true}, {via: viaMemory, delta: true, perType: true}} {
			t.Run(fmt.Sprintf("%s %v", c.name, v), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { leaveNothing(t, v, c.do) })
			})
		}
	}
}

// Of each way, and of each stream that came so.
const (
	warmUp        = 300 // streams, in which caches fill
	comeAndGone   = 500 // streams
	leftOfAStream = 100 // bytes; a timer has some 150
	aTimer        = time.Hour
)

func leaveNothing(t *testing.T, v variant, do func(*site)) {
	s := newStormy(t, 1, v)
	s.watchOneEach()
	s.comeAndGo(warmUp, do)
	goroutinesBefore, heapBefore := s.left()
	start := time.Now()
	s.comeAndGo(comeAndGone, do)
	goroutinesAfter, heapAfter := s.left()
	if took := time.Since(start); took >= aTimer {
		t.Errorf("%v went by: timers may be over", took)
	}
	if goroutinesAfter > goroutinesBefore {
		t.Errorf("%d goroutines, and %d later\n%s", goroutinesBefore, goroutinesAfter, goroutines(1))
	}
	if heapAfter > heapBefore+comeAndGone*leftOfAStream {
		t.Errorf("the heap had %d bytes, and has %d later", heapBefore, heapAfter)
	}
}

// rewatch watches the same again once everything was let go.
func (s *site) rewatch() {
	s.program.stopAll()
	s.sleep(2 * linger)
	s.watchOneEach()
}

func (s *site) watchOneEach() {
	for k := range kinds {
		s.program.subscribe(watch, k, kinds[k].name(0))
	}
}

// comeAndGo lets streams come and go, and sees that all is well then.
func (s *site) comeAndGo(streams int64, do func(*site)) {
	for until := s.program.came.Load() + streams; s.program.came.Load() < until; {
		do(s)
		s.sleep(100 * time.Millisecond)
	}
	s.catchUp()
	s.settle()
}

// left is the least of some measurements: what was closed last takes a while to be gone.
func (s *site) left() (goroutines int, bytes uint64) {
	goroutines, bytes = runtime.NumGoroutine(), heapsize.InUse()
	for range 5 {
		s.sleep(time.Second)
		goroutines, bytes = min(goroutines, runtime.NumGoroutine()), min(bytes, heapsize.InUse())
	}
	return goroutines, bytes
}
