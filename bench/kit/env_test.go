package kit

import (
	"fmt"
	"testing"
	"time"
)

func stamp(seq int) string { return fmt.Sprintf("%019d%06d", time.Now().UnixNano(), seq) }

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func TestDeliverUpdate(t *testing.T) {
	e := &Env{Config: Config{Work: Update, N: 2, Updates: 1}}
	e.prepare()
	e.Deliver(Host(0), 0, ZeroStamp)
	e.Deliver(Host(0), 0, ZeroStamp) // a version that was seen does not count
	if isClosed(e.loadedCh) {
		t.Fatal("loaded with one of two resources")
	}
	e.Deliver(Host(1), 0, ZeroStamp)
	if !isClosed(e.loadedCh) || isClosed(e.doneCh) {
		t.Fatal("not loaded with both, or done without a change")
	}
	e.Deliver(Host(1), 0, stamp(1))
	if !isClosed(e.doneCh) || e.lat[0] <= 0 {
		t.Errorf("not done after the change; latency %d", e.lat[0])
	}
}

func TestDeliverFanout(t *testing.T) {
	e := &Env{Config: Config{Work: Fanout, N: 1, Updates: 2, Watchers: 3}}
	e.prepare()
	for seq := range 3 {
		for w := range e.Watchers {
			if isClosed(e.doneCh) {
				t.Fatalf("done before watcher %d heard of change %d", w, seq)
			}
			s := ZeroStamp
			if seq > 0 {
				s = stamp(seq)
			}
			e.Deliver(Host(0), w, s)
		}
	}
	if !isClosed(e.loadedCh) || !isClosed(e.doneCh) {
		t.Error("not done when all watchers heard of all changes")
	}
}

func TestDeliverFrames(t *testing.T) {
	e := &Env{Config: Config{Work: Fanout, N: 1, Updates: 1, Watchers: 3}}
	e.prepare()
	e.DeliverFrame(1, ZeroStamp)
	if !isClosed(e.loadedCh) || isClosed(e.doneCh) {
		t.Fatal("a frame stands for all watchers")
	}
	e.DeliverFrame(1, stamp(1))
	if !isClosed(e.doneCh) {
		t.Error("not done after the change")
	}
}
