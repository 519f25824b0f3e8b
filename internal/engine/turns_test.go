package engine

import (
	"testing"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// Servers take turns, and the tasks of one keep their order.
//
// spec: H-2
func TestTurns(t *testing.T) {
	ts := newTurns()
	task := func(server int) *machine.Task { return &machine.Task{Server: server} }
	many := []*machine.Task{task(0), task(0), task(0)}
	one, two := task(1), task(2)
	ts.add(many...)
	if got := ts.next(); got != many[0] {
		t.Fatal("not the first task")
	}
	ts.add(one)
	ts.add(two)
	for i, want := range []*machine.Task{many[1], one, two, many[2], nil} {
		if got := ts.next(); got != want {
			t.Errorf("%d: %v, want %v", i, got, want)
		}
	}
	if len(ts.of) != 0 {
		t.Errorf("%d servers are left over", len(ts.of))
	}
}

// A server whose resources wait for handlers gives its turn away until they were told.
//
// spec: H-5
func TestTurnsWaitForHandlers(t *testing.T) {
	ts := newTurns()
	slow, fast := &machine.Task{Server: 0}, &machine.Task{Server: 1}
	ts.add(slow)
	ts.owes(0, maxUntold)
	ts.add(fast)
	if got := ts.next(); got != fast {
		t.Errorf("%v is next, want the other server's", got)
	}
	if got := ts.next(); got != nil || !ts.waits(0) {
		t.Errorf("%v is next, want none", got)
	}
	ts.told(0, maxUntold)
	if got := ts.next(); got != slow || len(ts.untold) != 0 {
		t.Errorf("%v is next, %d servers are left over", got, len(ts.untold))
	}
}

// What is decoded and has to wait for an older task is bounded. A task of another type is none of these.
//
// spec: H-5
func TestTurnsWaitForTheOldest(t *testing.T) {
	ts := newTurns()
	typ, other := &machine.Type{}, &machine.Type{}
	most := workers() + spareTasks
	ts.add(&machine.Task{Type: other})
	for range 3 * most {
		ts.add(&machine.Task{Type: typ})
	}
	if got := ts.next(); got.Type != other {
		t.Fatal("not the first task")
	}
	oldest := ts.next()
	n := 1
	for task := ts.next(); task != nil; task = ts.next() {
		ts.decoded(task)
		n++
	}
	if n != most {
		t.Errorf("%d tasks were begun while the oldest is decoded, want %d", n, most)
	}
	ts.decoded(oldest)
	for task := ts.next(); task != nil; task = ts.next() {
		ts.decoded(task)
		n++
	}
	if n != 3*most || len(ts.begun) != 1 {
		t.Errorf("%d of %d tasks were begun, and %d types are left over", n, 3*most, len(ts.begun))
	}
}
