package machine

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/xdswatch/xdswatch/internal/race"
)

// A delta request that adds many names takes the memory of its bytes once, and not that of a message that grows.
func TestCostOfAddedNames(t *testing.T) {
	race.SkipCost(t)
	t.Run("behind the others", func(t *testing.T) { costOfAddedNames(t, "a", 3) }) // the message, the set, lists of subscriptions
	t.Run("before the others", func(t *testing.T) { costOfAddedNames(t, "z", 5) }) // and the set's chunks are made twice
}

// costOfAddedNames adds many names beside one, and compares the memory that this takes with the size of the request.
func costOfAddedNames(t *testing.T, beside string, times uint64) {
	const names = 20_000
	r := newRig(t, Config{}, Server{Delta: true})
	r.step(Start{r.watch(beside)})
	r.up()
	var watches []Event
	for i := range names {
		watches = append(watches, Start{r.watch(fmt.Sprintf("a-cluster-with-a-longer-name-%05d.example.com", i))})
	}
	r.step(watches...)
	r.now = r.now.Add(minPace)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fx := r.step()
	runtime.ReadMemStats(&after)
	if len(fx.Send) != 1 {
		t.Fatalf("%d messages, want 1", len(fx.Send))
	}
	size := uint64(len(slices.Concat(fx.Send[0].Message...)))
	if size < 40*names {
		t.Fatalf("the request has %d bytes: it does not name all", size)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > times*size {
		t.Errorf("a request of %d bytes took %d, want %d times as many at most", size, took, times)
	}
}
