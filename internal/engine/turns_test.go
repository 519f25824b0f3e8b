package engine

import (
	"testing"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// Servers take turns, and the tasks of one keep their order.
//
// spec: H-2
func TestTurns(t *testing.T) {
	ts := turns{of: map[int][]*machine.Task{}}
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
