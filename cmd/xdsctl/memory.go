package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// softLimit is how much memory the garbage collector aims at, in bytes. What a server makes the
// program use for a moment is then given back before it adds up.
const softLimit = 384 << 20

// holdMemoryDown sets the soft limit, and after each collection raises it to what is held and a quarter
// of it, if that is more: the collector must not run without end where much is rightly held.
func holdMemoryDown() {
	debug.SetMemoryLimit(limitFor(heldBytes()))
	afterCollection(holdMemoryDown)
}

func limitFor(held uint64) int64 { return max(softLimit, int64(held+held/4)) }

// heldBytes is what the last collection found to be in use.
func heldBytes() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}

// afterCollection calls f when the next collection is over.
func afterCollection(f func()) {
	type sentinel struct{ _ *int } // with a pointer, so that it is an allocation of its own
	runtime.SetFinalizer(new(sentinel), func(*sentinel) { f() })
}
