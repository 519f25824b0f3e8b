package machine

import (
	"testing"
	"time"
)

// A program that was stopped does not take the server's silence meanwhile for an answer:
// what waits for one gets a full period again.
//
// spec: DNE-1
func TestStall(t *testing.T) {
	r := newRig(t, Config{ResourceTimeout: 15 * time.Second})
	r.step(Start{r.watch("a")})
	r.up()
	r.now = r.now.Add(time.Minute)
	if _, names := news(r.step(Tick{Stalled: true})); len(names) != 0 {
		t.Errorf("after a stall %q was told", names)
	}
	if at, ok := r.m.Deadline(); !ok || !at.Equal(r.now.Add(15*time.Second)) {
		t.Errorf("deadline %v, %v; want a full period", at.Sub(r.now), ok)
	}
	r.now = r.now.Add(15 * time.Second)
	if kinds, _ := news(r.step(Tick{})); len(kinds) != 1 || kinds[0] != NoticeDoesNotExist {
		t.Errorf("after the period %v was told, want an absence", kinds)
	}
}
