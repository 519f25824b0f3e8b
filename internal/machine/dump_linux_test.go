package machine

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// threadTime is how long the calling thread has run.
func threadTime(b *testing.B) time.Duration {
	const ofThread = 3 // CLOCK_THREAD_CPUTIME_ID; getrusage counts in ticks
	var at syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, ofThread, uintptr(unsafe.Pointer(&at)), 0); errno != 0 {
		b.Fatal(errno)
	}
	return time.Duration(at.Nano())
}

// BenchmarkPages tells how long the loop is held at a time by a dump and by a collection of metrics, of a
// hundred thousand resources: most-us is the longest page, p99-us what 99 of 100 take at most. It is time of the
// thread, without what else the processor did meanwhile; most-wall-us has that.
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
			cs := Counts{}
			for done := false; !done; {
				held(func() { done = r.m.Count(&at, cs, page, itself) })
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var took, wall []time.Duration
			for b.Loop() {
				look(func(f func()) {
					begin, used := time.Now(), threadTime(b)
					f()
					took, wall = append(took, threadTime(b)-used), append(wall, time.Since(begin))
				})
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)-1].Nanoseconds())/1e3, "most-us")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
			b.ReportMetric(float64(slices.Max(wall).Nanoseconds())/1e3, "most-wall-us")
		})
	}
}
