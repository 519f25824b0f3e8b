package transport

import (
	"testing"
	"testing/synctest"
	"time"
)

// granted says whether a share may be used.
func granted(s *share) bool {
	select {
	case <-s.granted:
		return true
	default:
		return false
	}
}

// A connection has one share at a time, and all have the budget together.
//
// spec: H-5
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, x, y, z := &budget{}, new(holder), new(holder), new(holder)
		first := b.ask(x, largeBudget/2, nil)
		second := b.ask(x, 1, nil) // waits for its own connection
		other := b.ask(y, largeBudget/2, nil)
		third := b.ask(z, largeBudget, nil)
		if !granted(first) || granted(second) || !granted(other) || granted(third) {
			t.Errorf("granted are %v %v %v %v", granted(first), granted(second), granted(other), granted(third))
		}
		other.release()
		other.release()
		if granted(third) {
			t.Error("a share does not fit")
		}
		first.complete()
		if x.take(b) != first || y.take(b) != nil || z.take(b) != nil {
			t.Error("the share of a whole message is not there to be taken")
		}
		first.release()
		if !granted(second) || granted(third) {
			t.Errorf("after the first: %v %v", granted(second), granted(third))
		}
		third.release() // and waits no more
		second.release()
		if b.used != 0 || len(b.queue) != 0 {
			t.Errorf("%d bytes are used and %d wait", b.used, len(b.queue))
		}
		huge := b.ask(z, 2*largeBudget, nil)
		if !granted(huge) {
			t.Error("a share larger than the budget is not granted alone")
		}
		huge.release()
	})
}

// What a connection has when it is closed goes to others at once, also a message that nobody received.
//
// spec: H-5
func TestBudgetOfClosedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, closed, other := &budget{}, new(holder), new(holder)
		first := b.ask(closed, largeBudget, nil)
		first.complete()
		second := b.ask(other, largeBudget, nil)
		closed.close(b)
		closed.close(b)
		if !granted(second) || b.used != largeBudget {
			t.Errorf("the next is granted: %v, and %d bytes are used", granted(second), b.used)
		}
		first.release()
		second.release()
	})
}

// A message that comes too slowly is ended once others wait, and one that is processed slowly lends
// its share.
//
// spec: H-5
func TestBudgetIsNotHeldForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{}
		var ended []string
		ask := func(name string) *share {
			return b.ask(new(holder), largeBudget, func() { ended = append(ended, name) })
		}
		slow := ask("slow")
		time.Sleep(3 * largeTime)
		synctest.Wait()
		if len(ended) > 0 {
			t.Errorf("%v is ended though nobody waits", ended)
		}
		fast := ask("fast")
		time.Sleep(largeTime)
		synctest.Wait()
		if len(ended) != 1 || ended[0] != "slow" {
			t.Errorf("ended are %v", ended)
		}
		slow.release()
		waits := ask("waits")
		time.Sleep(time.Second) // beside the looks
		for range 3 {
			fast.progress(largePace)
			time.Sleep(largeTime)
		}
		if synctest.Wait(); len(ended) != 1 || granted(waits) {
			t.Errorf("ended are %v, the next is granted: %v", ended, granted(waits))
		}
		fast.complete()
		time.Sleep(largeTime)
		if synctest.Wait(); len(ended) != 1 || !granted(waits) {
			t.Errorf("ended are %v, the next is granted: %v", ended, granted(waits))
		}
		fast.release() // what is over
		if b.used != largeBudget {
			t.Errorf("%d bytes are used", b.used)
		}
		waits.release()
	})
}
