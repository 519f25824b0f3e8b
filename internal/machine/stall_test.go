package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
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
	if _, names := news(r.step(Tick{Late: time.Minute})); len(names) != 0 {
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

// A stop that ends right after a deadline counts too: what came meanwhile is not read yet.
//
// spec: DNE-1
func TestStallOverDeadline(t *testing.T) {
	r := newRig(t, Config{ResourceTimeout: 15 * time.Second})
	r.step(Start{r.watch("a")})
	r.up()
	r.now = r.now.Add(16 * time.Second)
	if _, names := news(r.step(Tick{Late: time.Second})); len(names) != 0 {
		t.Errorf("after a stall %q was told", names)
	}
	if at, ok := r.m.Deadline(); !ok || !at.Equal(r.now.Add(time.Second)) {
		t.Errorf("deadline %v, %v; want a second", at.Sub(r.now), ok)
	}
}

// Nor is a stream given up then for a server that was not heard.
//
// spec: S-30
func TestStallOfAddedName(t *testing.T) {
	r := newRig(t, Config{}, Server{PerType: true})
	r.addUnanswered()
	r.now = r.now.Add(time.Minute)
	if fx := r.step(Tick{Late: time.Minute}); len(fx.Close) != 0 {
		t.Error("after a stall the stream was given up")
	}
	if at, ok := r.m.Deadline(); !ok || !at.Equal(r.now.Add(hush)) {
		t.Errorf("deadline %v, %v; want the full time", at.Sub(r.now), ok)
	}
	r.now = r.now.Add(hush)
	if fx := r.step(Tick{}); len(fx.Close) != 1 || len(fx.Open) != 1 {
		t.Errorf("after the full time %d streams were given up, and %d asked for", len(fx.Close), len(fx.Open))
	}
}

// Nor does a time to live end: heartbeats may wait to be read.
//
// spec: TTL-1
func TestStallOfTimeToLive(t *testing.T) {
	r := newRig(t, Config{})
	r.step(Start{r.watch("a")})
	r.up()
	resp := &wire.Response{TypeURL: r.typ.URL, Version: "1", Nonce: "1", Resources: []wire.Resource{{
		Name: []byte("a"), TypeURL: []byte(r.typ.URL), Payload: []byte("1"), HasBody: true, HasTTL: true, TTL: 10 * time.Second,
	}}}
	for _, task := range r.step(Received{r.ref, resp}).Decode {
		r.decode(task)
	}
	r.step(Delivered{r.ref}, Written{r.ref})
	r.now = r.now.Add(time.Minute)
	if _, names := news(r.step(Tick{Late: time.Minute})); len(names) != 0 {
		t.Errorf("after a stall %q was told", names)
	}
	if at, ok := r.m.Deadline(); !ok || !at.Equal(r.now.Add(10*time.Second)) {
		t.Errorf("deadline %v, %v; want the full time", at.Sub(r.now), ok)
	}
	r.now = r.now.Add(10 * time.Second)
	if kinds, _ := news(r.step(Tick{})); len(kinds) != 1 || kinds[0] != NoticeDoesNotExist {
		t.Errorf("after the full time %v was told, want an absence", kinds)
	}
}

// Nor is a stream given up as one that its server does not read, nor before the server had the full time
// to take a request, from the last that it took.
func TestStallOfAnswers(t *testing.T) {
	r := newRig(t, Config{}, Server{Delta: true})
	r.step(Start{r.watch("a")})
	r.up()
	fill := func() (n int) { // until answers hold up reading
		for reads := 1; reads > 0 && n < 100; n++ {
			r.receive(fmt.Sprint(n, strings.Repeat("n", 1000+n<<10)), 0)
			reads = len(r.step(Delivered{r.ref}).Read)
		}
		return n
	}
	if n := fill(); n == 0 || n == 100 {
		t.Fatalf("%d responses are read whose answers wait", n)
	}
	for _, ev := range []Event{Tick{Late: time.Minute}, Written{r.ref}} {
		r.now = r.now.Add(takeTimeout - time.Second)
		if fx := r.step(ev); len(fx.Wait) != 0 {
			t.Errorf("after %#v the stream was given up", ev)
		}
		fill()
		if at, ok := r.m.Deadline(); !ok || !at.Equal(r.now.Add(takeTimeout)) {
			t.Errorf("after %#v the deadline is %v, %v; want the full time", ev, at.Sub(r.now), ok)
		}
	}
	r.now = r.now.Add(takeTimeout)
	if fx := r.step(Tick{}); len(fx.Wait) != 1 || fx.Wait[0].Ref != r.ref || fx.Wait[0].Fault.Err != errDeaf {
		t.Errorf("after the full time the waits are %+v, want one since the server reads nothing", fx.Wait)
	}
}

// A server that takes requests again is read again, once the answers that wait are few.
//
// spec: S-2 FC-1
func TestAnswersLeave(t *testing.T) {
	r := newRig(t, Config{}, Server{Delta: true})
	r.step(Start{r.watch("a")})
	r.up()
	owed := 0
	for reads := 1; reads > 0 && owed < 100; owed++ {
		r.receive(fmt.Sprint(owed, strings.Repeat("n", 100<<10)), 0)
		reads = len(r.step(Delivered{r.ref}).Read)
	}
	for range owed {
		if fx := r.step(Written{r.ref}); len(fx.Read) > 0 {
			return
		}
	}
	t.Errorf("nothing is read after %d answers have left", owed)
}

// An alarm rings in time though the loop comes late to each.
//
// spec: DNE-1
func TestAlwaysLate(t *testing.T) {
	r := newRig(t, Config{ResourceTimeout: 15 * time.Second})
	r.step(Start{r.watch("a")})
	r.up()
	for range 100 {
		at, ok := r.m.Deadline()
		if !ok {
			t.Fatal("nothing is waited for")
		}
		r.now = at.Add(time.Second)
		if _, names := news(r.step(Tick{Late: time.Second})); len(names) != 0 {
			return
		}
	}
	t.Error("no alarm rang")
}
