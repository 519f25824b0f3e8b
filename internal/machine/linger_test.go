package machine

import (
	"slices"
	"testing"
)

// Where nothing lingers, an attempt that is wanted and given up in one step is never asked for.
//
// spec: STREAM-6
func TestGivenUpAtOnce(t *testing.T) {
	r := newRig(t, Config{})
	w := r.watch("a")
	if fx := r.step(Start{w}, Stop{w}); len(fx.Open)+len(fx.Close)+len(fx.Wait)+len(fx.Notify) > 0 {
		t.Errorf("open %v, close %v, wait %v, notify %v: want nothing", fx.Open, fx.Close, fx.Wait, fx.Notify)
	}
	if fx := r.step(Start{r.watch("a")}); len(fx.Open) != 1 {
		t.Errorf("open %v for the next watch, want one", fx.Open)
	}
}

// The incarnation before it has failed, and is let go of.
//
// spec: STREAM-6
func TestRetryGivenUpAtOnce(t *testing.T) {
	r := newRig(t, Config{})
	w := r.watch("a")
	r.step(Start{w})
	r.step(Down{Ref: r.ref, Kind: FaultConnection, Err: errDeaf})
	if fx := r.step(Retry{r.ref}, Stop{w}); len(fx.Open) > 0 || !slices.Equal(fx.Close, []Ref{r.ref}) {
		t.Errorf("open %v, close %v: want to close %v", fx.Open, fx.Close, r.ref)
	}
}
