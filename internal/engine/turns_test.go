package engine

import (
	"testing"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// Servers and their types take turns, and the tasks of one type keep their order.
//
// spec: H-2
func TestTurns(t *testing.T) {
	ts := newTurns()
	typ, other := &machine.Type{}, &machine.Type{}
	task := func(server int, typ *machine.Type) *machine.Task { return &machine.Task{Server: server, Type: typ} }
	many := []*machine.Task{task(0, typ), task(0, typ), task(0, typ)}
	one, two, three := task(1, typ), task(0, other), task(2, typ)
	ts.add(many...)
	if got := ts.next(); got != many[0] {
		t.Fatal("not the first task")
	}
	ts.add(one, two, three)
	for i, want := range []*machine.Task{many[1], one, two, three, many[2], nil} {
		if got := ts.next(); got != want {
			t.Errorf("%d: %v, want %v", i, got, want)
		}
	}
	if len(ts.of) != 0 {
		t.Errorf("%d types are left over", len(ts.of))
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
	for range 3 * most {
		ts.add(&machine.Task{Type: typ})
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
	ts.add(&machine.Task{Type: other})
	if got := ts.next(); got == nil || got.Type != other {
		t.Errorf("%v is next, want the other type's", got)
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
