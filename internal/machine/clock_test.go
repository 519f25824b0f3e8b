package machine

import (
	"slices"
	"testing"
	"time"
)

// bell is a waiter that notes when it rings.
type bell struct {
	timer
	name string
	rung *[]string
}

func (b *bell) ring(*Machine, time.Time) { *b.rung = append(*b.rung, b.name) }

func bells(names ...string) (rung *[]string, bs []*bell) {
	rung = new([]string)
	for _, name := range names {
		bs = append(bs, &bell{name: name, rung: rung})
	}
	return rung, bs
}

var dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Alarms ring in time, unless they were stopped or set anew, and not while the clock stands.
//
// spec: TTL-1 FC-1
func TestAlarms(t *testing.T) {
	m, s := New(Config{}), &stream{clock: clock{start: dawn}}
	rung, b := bells("a", "b", "c")
	set := func(at, i, wait int) {
		m.setAlarm(dawn.Add(time.Duration(at)*time.Second), s, b[i], time.Duration(wait)*time.Second)
	}
	at := func(at, next int, want ...string) {
		t.Helper()
		*rung = nil
		m.ringAlarms(dawn.Add(time.Duration(at)*time.Second), s)
		if !slices.Equal(*rung, want) {
			t.Errorf("at %d %q rang, want %q", at, *rung, want)
		}
		due := s.nextAlarm()
		if next < 0 && !due.IsZero() || next >= 0 && !due.Equal(dawn.Add(time.Duration(next)*time.Second)) {
			t.Errorf("at %d the next rings after %v, want %d s", at, due.Sub(dawn), next)
		}
	}
	set(0, 0, 10)
	set(0, 1, 10)
	set(0, 2, 50)
	at(1, 10)
	set(1, 0, 20) // later
	at(10, 21, "b")
	set(10, 0, 2) // sooner
	at(12, 50, "a")
	at(21, 50)
	set(21, 1, 4)
	set(22, 0, 3)
	at(25, 50, "b", "a") // at one moment: as they were set
	s.clock.stop(dawn.Add(30 * time.Second))
	at(40, -1)
	at(60, -1)
	s.clock.run(dawn.Add(40 * time.Second))
	at(59, 60)
	b[2].timer = 0 // stopped
	at(60, -1)
}

// What is set anew again and again leaves nothing behind.
func TestAlarmsStayFew(t *testing.T) {
	m, s := New(Config{}), &stream{clock: clock{start: dawn}}
	_, b := bells("a")
	for range 10_000 {
		m.setAlarm(dawn, s, b[0], time.Hour)
	}
	if n := len(s.alarms.heap); n > 70 {
		t.Errorf("%d alarms are left", n)
	}
}

// BenchmarkHeartbeats is the cost of a heartbeat of one of 100,000 resources.
func BenchmarkHeartbeats(b *testing.B) {
	m, c := New(Config{}), newCache(&Type{})
	c.star.source = &source{streams: []*stream{{clock: clock{start: dawn}}}}
	es := make([]subscription, 100_000)
	for i := range es {
		es[i].of = c.star
		m.lease(dawn, &es[i], leaseTTL, time.Minute)
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		m.lease(dawn, &es[i%len(es)], leaseTTL, time.Minute+time.Duration(i))
		i++
	}
}

// A lease that ends leaves no deadline where it began, whatever stream the resource is of by then.
func TestLeaseLeavesNoDeadline(t *testing.T) {
	m, c := New(Config{}), newCache(&Type{})
	s := &stream{agenda: &m.agenda, clock: clock{start: dawn}}
	c.star.source = &source{streams: []*stream{s, {agenda: &m.agenda}}}
	sub := &subscription{of: c.star}
	m.lease(dawn, sub, leaseTTL, time.Hour)
	m.agenda.put(s, s.deadline())
	c.star.source.active = 1
	sub.endLease(leaseTTL)
	for _, s := range m.agenda.due(dawn) {
		m.agenda.put(s, s.deadline())
	}
	if at, ok := m.Deadline(); ok {
		t.Errorf("a deadline of %v is left", at)
	}
}
