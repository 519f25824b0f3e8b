package machine

import (
	"fmt"
	"testing"
)

// BenchmarkCounts tells how long the loop is held up by a collection.
func BenchmarkCounts(b *testing.B) {
	const n = 100_000
	r := newRig(nil, Config{})
	for i := range n {
		r.step(Start{r.watch(fmt.Sprintf("r%06d", i))})
	}
	for b.Loop() {
		if cs := r.m.Counts(); len(cs) != 1 || cs[0].N != n {
			b.Fatalf("%+v", cs)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/resource")
}
