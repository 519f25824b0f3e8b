package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Who asks for what is held makes no stream.
func TestHeldMakesNothing(t *testing.T) {
	r := newRig(t, Config{}, Server{PerType: true})
	for i := range 10 {
		if _, ok := r.m.Held(0, fmt.Sprint("type.googleapis.com/test.T", i), "a"); ok {
			t.Fatal("something is known of what was never asked for")
		}
	}
	if len(r.m.streams) != 0 || len(r.m.working) != 0 {
		t.Errorf("there are %d streams and %d chains", len(r.m.streams), len(r.m.working))
	}
}

// BenchmarkPages tells how long the loop is held at a time by a dump and by a collection of metrics, of a
// hundred thousand resources: most-us is the longest page, which has whatever else the processor did
// meanwhile, p99-us what 99 of 100 take at most.
func BenchmarkPages(b *testing.B) {
	const n, page = 100_000, 1024
	r := newRig(nil, Config{})
	for i := range n {
		r.step(Start{r.watch(fmt.Sprintf("r%06d", i))})
	}
	for name, look := range map[string]func(page func(func())){
		"dump": func(held func(func())) {
			var at Listing
			var keys []Key
			for done := false; !done; {
				keys = slices.Grow(keys, page+1)
				held(func() { keys, done = r.m.List(&at, keys, page) })
			}
			rs := make([]Resource, 0, page)
			for some := range slices.Chunk(keys, page) {
				held(func() { rs = r.m.Look(rs[:0], some) })
			}
		},
		"gauges": func(held func(func())) {
			var at Listing
			var cs []Count
			for done := false; !done; {
				held(func() { cs, done = r.m.Count(&at, cs, page) })
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				look(func(f func()) {
					begin := time.Now()
					f()
					took = append(took, time.Since(begin))
				})
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)-1].Nanoseconds())/1e3, "most-us")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
		})
	}
}
