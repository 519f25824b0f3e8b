package engine

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// What waits for the end of a call is run when that has returned, though the next call of the lane blocks; what waits
// for another call is run at once, and so is what comes when no call is made or the engine is closed.
// spec: U-5
func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newWireConn()
		conn.refuse = errors.New("no")
		e := start(t, conn)
		gates := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}
		for name, gate := range gates {
			e.Start(watchOf((&slowKind{}).kind(), tellFunc(func() { <-gate }), name))
		}
		var ran []string
		after := func(name, what string) {
			e.After([]int32{0}, func(at *machine.Watch) bool { return at.Name == name }, func() { ran = append(ran, what) })
		}
		check := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(ran, want) {
				t.Errorf("%s: %q were run, want %q", when, ran, want)
			}
			ran = nil
		}
		synctest.Wait() // the trouble of both is told
		first, second := "a", "b"
		if at := e.lanes.at(0).telling.Load(); at.Name == "b" {
			first, second = "b", "a"
		}
		after(first, "the call that is made")
		after(second, "the next one")
		e.After([]int32{7}, func(*machine.Watch) bool { return true }, func() { ran = append(ran, "no lane") })
		check("in the first call", "the next one", "no lane")
		close(gates[first])
		check("in the second call", "the call that is made")
		after(second, "the last call")
		check("in the second call")
		close(gates[second])
		check("after the last call", "the last call")
		after(first, "at rest")
		check("at rest", "at rest")
		e.Close()
		e.Wait()
		after(first, "at the end")
		check("at the end", "at the end")
	})
}

// A call that does not end is waited for once.
// spec: U-5
func TestAwaitInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newWireConn()
		conn.refuse = errors.New("no")
		e := start(t, conn)
		gate := make(chan struct{})
		e.Start(watchOf((&slowKind{}).kind(), tellFunc(func() { <-gate }), "a"))
		synctest.Wait()
		for i, want := range []time.Duration{awaitSleeps * awaitSleep, 0} {
			e.After([]int32{0}, func(*machine.Watch) bool { return true }, func() {})
			begin := time.Now()
			e.Await([]int32{0, 7}, func() bool { return false }) // nothing was ever told in lane 7
			if took := time.Since(begin); took != want {
				t.Errorf("wait %d took %v, want %v", i, took, want)
			}
		}
		close(gate)
	})
}

// What was waited for in vain is one call, and not the next one of the same notice.
// spec: U-5
func TestAwaitAfterVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newWireConn()
		conn.refuse = errors.New("no")
		e := start(t, conn)
		gate := make(chan struct{})
		var calls atomic.Int32
		first := watchOf((&slowKind{}).kind(), tellFunc(func() {
			if calls.Add(1) == 1 {
				<-gate
			} else {
				time.Sleep(5 * time.Millisecond)
			}
		}), "a")
		second := *first
		e.Start(first, &second)
		synctest.Wait()
		await := func() bool {
			var over atomic.Bool
			e.After([]int32{0}, func(*machine.Watch) bool { return true }, func() { over.Store(true) })
			e.Await([]int32{0}, over.Load)
			return over.Load()
		}
		if await() {
			t.Error("the first call is over before it ended")
		}
		close(gate)
		synctest.Wait()
		if over := await(); !over || calls.Load() != 2 {
			t.Errorf("the second of %d calls was not waited for", calls.Load())
		}
	})
}
