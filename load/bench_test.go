package load

import (
	"context"
	"testing"
)

// benchmarkLocality is of a reporter that is already closed, since nobody is to be dialled.
func benchmarkLocality() *Locality {
	r := &Reporter{servers: map[string]*server{}}
	r.stopping, r.stop = context.WithCancel(context.Background())
	s := &server{reporter: r}
	return (&entry{server: s}).locality(place{})
}

// What two increments cost and nothing else: a request cannot cost less.
func BenchmarkFloor(b *testing.B) {
	var c cell
	for b.Loop() {
		c.n[issued].Add(1)
		c.n[succeeded].Add(1)
	}
}

// A request costs two increments.
func BenchmarkRequest(b *testing.B) {
	l := benchmarkLocality()
	for b.Loop() {
		l.Begin(nil).End(true)
	}
}

func BenchmarkRequestParallel(b *testing.B) {
	l := benchmarkLocality()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l.Begin(nil).End(true)
		}
	})
}

// A program that does not report pays for a comparison.
func BenchmarkNothing(b *testing.B) {
	var l *Locality
	for b.Loop() {
		l.Begin(nil).End(true)
	}
}
