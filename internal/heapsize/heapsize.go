// Package heapsize measures the heap, for tests of what something costs.
package heapsize

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// InUse is how many bytes of the heap are in use after a collection.
func InUse() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers let go, and the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Watch looks at the heap every few milliseconds until the function that it returns is called,
// which says by how many bytes the heap grew at most. What is garbage counts until it is collected.
func Watch() (grown func() uint64) {
	before := InUse()
	stop, done := make(chan struct{}), make(chan uint64)
	go func() {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		most := before
		for stopped := false; ; {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			if stopped {
				done <- most - before
				return
			}
			select {
			case <-stop:
				stopped = true // and look once more
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(stop)
		return <-done
	}
}

// While runs f and says by how many bytes the heap grew at most meanwhile.
func While(f func()) uint64 {
	grown := Watch()
	f()
	return grown()
}
