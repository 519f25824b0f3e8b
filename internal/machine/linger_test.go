package machine

import "testing"

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
