package machine

import (
	"fmt"
	"testing"
	"time"
)

// spec: TTL-1
func TestTTLs(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hello, other := &entry{name: "hello"}, &entry{name: "other"}
	l := ttls{clock: new(clock)}
	at := func(what string, want time.Duration) {
		t.Helper()
		switch next := l.next(); {
		case want == 0 && !next.IsZero():
			t.Errorf("%s: due after %v, want never", what, next.Sub(start))
		case want != 0 && !next.Equal(start.Add(want)):
			t.Errorf("%s: due after %v, want %v", what, next.Sub(start), want)
		}
	}
	l.set(start, hello, 10*time.Second)
	at("one", 10*time.Second)
	l.set(start, other, 50*time.Second)
	at("a later one", 10*time.Second)
	l.set(start.Add(time.Second), hello, 20*time.Second)
	at("set anew, later, to be found when the first comes due", 10*time.Second)
	if es := l.over(start.Add(10 * time.Second)); len(es) != 0 {
		t.Errorf("over: %v, want none", es)
	}
	at("found", 21*time.Second)
	l.set(start.Add(10*time.Second), hello, 2*time.Second)
	at("set anew, earlier", 12*time.Second)
	if es := l.over(start.Add(12 * time.Second)); len(es) != 1 || es[0] != hello {
		t.Errorf("over: %v, want hello", es)
	}
	if es := l.over(start.Add(21 * time.Second)); len(es) != 0 {
		t.Errorf("over: %v, want none", es)
	}
	at("one is over", 50*time.Second)
	l.clock.hold(start.Add(30 * time.Second))
	at("held", 0)
	l.clock.release(start.Add(40 * time.Second))
	at("released", 60*time.Second)
	l.clear(other)
	if es := l.over(start.Add(60 * time.Second)); len(es) != 0 {
		t.Errorf("over: %v, want none", es)
	}
	at("cleared", 0)
}

// What is set anew again and again leaves nothing behind.
func TestTTLsStaySmall(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := ttls{clock: new(clock)}
	for i := range 10_000 {
		e := &entry{name: fmt.Sprint(i)}
		l.set(now, e, 100*365*24*time.Hour)
		l.clear(e)
	}
	if len(l.of) != 0 || len(l.queue) > 65 {
		t.Errorf("%d resources and %d items are left", len(l.of), len(l.queue))
	}
}

// BenchmarkHeartbeats is the cost of a heartbeat of one of 100,000 resources.
func BenchmarkHeartbeats(b *testing.B) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	es := make([]entry, 100_000)
	l := ttls{clock: new(clock)}
	for i := range es {
		l.set(now, &es[i], time.Minute)
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		l.set(now, &es[i%len(es)], time.Minute+time.Duration(i))
		i++
	}
}
