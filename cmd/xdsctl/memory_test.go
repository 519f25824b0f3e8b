package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// The memory limit holds down what is garbage, and grows with what is held.
// spec: H-5
func TestMemoryLimit(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(was)
	if got := limitFor(100 << 20); got != softLimit {
		t.Errorf("with 100 MiB held the limit is %d, want %d", got, softLimit)
	}
	if got := limitFor(1 << 30); got != 5<<28 {
		t.Errorf("with 1 GiB held the limit is %d, want %d", got, 5<<28)
	}
	collected := make(chan struct{})
	afterCollection(func() { close(collected) })
	for {
		runtime.GC()
		select {
		case <-collected:
		case <-time.After(10 * time.Millisecond):
			continue
		}
		break
	}
	debug.SetMemoryLimit(math.MaxInt64)
	holdMemoryDown()
	if got := debug.SetMemoryLimit(-1); got < softLimit || got == math.MaxInt64 {
		t.Errorf("the limit is %d, want %d or somewhat more", got, softLimit)
	}
}
