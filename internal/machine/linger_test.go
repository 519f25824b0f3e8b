package machine

import (
	"slices"
	"testing"
)

// Where nothing lingers, an attempt that is wanted and given up in one step is let go of in the next, and a pause follows.
//
// spec: STREAM-6
func TestGivenUpAtOnce(t *testing.T) {
	r := newRig(t, Config{})
	w := r.watch("a")
	if fx := r.step(Start{w}, Stop{w}); len(fx.Open) != 1 || len(fx.Close)+len(fx.Wait) > 0 {
		t.Errorf("open %v, close %v, wait %v: want to open one", fx.Open, fx.Close, fx.Wait)
	}
	r.now, _ = r.m.Deadline()
	if fx := r.step(); !slices.Equal(fx.Close, []Ref{r.ref}) || len(fx.Wait) != 1 || !fx.Wait[0].Short {
		t.Errorf("close %v, wait %v: want to close %v, and a short pause", fx.Close, fx.Wait, r.ref)
	}
	if fx := r.step(Start{r.watch("a")}); len(fx.Open) > 0 {
		t.Errorf("open %v for the next watch: want it to wait for the pause", fx.Open)
	}
}
