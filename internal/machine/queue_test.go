package machine

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

type guest struct {
	at   int
	gone *bool
}

func (g guest) before(h guest) bool { return g.at < h.at }
func (g guest) void() bool          { return *g.gone }

// What waits comes in the order of its time, whatever the order in which it was put, and what waits no
// more does not come.
func TestQueue(t *testing.T) {
	const n = 1000
	var q queue[guest]
	var all []guest
	for _, at := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		g := guest{at, new(bool)}
		all = append(all, g)
		q.put(g)
	}
	slices.SortFunc(all, func(a, b guest) int { return a.at - b.at })
	for _, g := range all {
		*g.gone = g.at%3 != 0
	}
	q.put(guest{n, new(bool)})
	for want := 0; want < n; want += 3 {
		if g, ok := q.first(); !ok || g.at != want || q.pop() != g {
			t.Fatalf("%+v comes, %v; want %d", g, ok, want)
		}
	}
	if g, ok := q.first(); !ok || g.at != n {
		t.Errorf("%+v comes last, %v; want %d", g, ok, n)
	}
	if q.pop(); len(q.heap) > 0 {
		t.Errorf("%d are left", len(q.heap))
	}
	if g, ok := q.first(); ok {
		t.Errorf("%+v comes of an empty queue", g)
	}
}

// A stream comes when it wants to, as it said last, and once.
func TestAgenda(t *testing.T) {
	at := func(n int) time.Time { return dawn.Add(time.Duration(n) * time.Second) }
	var a agenda
	s, other := &stream{ref: Ref{Stream: 1}}, &stream{}
	for _, n := range []int{5, 9, 5, 3, 5} {
		a.put(s, at(n))
	}
	a.put(other, at(5))
	if got := a.next(); !got.Equal(at(5)) {
		t.Errorf("the next is due at %v, want %v", got, at(5))
	}
	if got := a.due(at(4)); len(got) > 0 {
		t.Errorf("%d streams are due early", len(got))
	}
	if got := a.due(at(5)); !slices.Equal(got, []*stream{other, s}) {
		t.Errorf("%d streams are due, want both, in order of their making", len(got))
	}
	a.put(s, time.Time{})
	a.put(other, at(5)) // at once again
	if got := a.due(at(100)); !slices.Equal(got, []*stream{other}) {
		t.Errorf("%d streams are due, want the one", len(got))
	}
	if got := a.next(); !got.IsZero() {
		t.Errorf("the next is due at %v though nothing waits", got)
	}
	for n := range 10_000 {
		a.put(s, at(n))
	}
	if n := len(a.queue.heap); n > 70 {
		t.Errorf("%d are left of one stream", n)
	}
}
