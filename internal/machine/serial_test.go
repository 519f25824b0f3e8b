package machine

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// A client that stays for years counts more responses than 32 bits can.
func TestSerialsComeRound(t *testing.T) {
	for _, delta := range []bool{false, true} {
		r := newRig(t, Config{}, Server{Delta: delta})
		r.m.serial = math.MaxUint32 - 2
		r.step(Start{r.watch("r0000")})
		r.up()
		for i := range 6 {
			fx := r.step(Start{r.watch(fmt.Sprintf("r%04d", i+1))})
			if len(fx.Send) > 0 {
				r.step(Written{r.ref})
			}
			var told []NoticeKind
			for _, task := range r.receive(fmt.Sprint("v", i), i+2) {
				fx = r.decode(task)
				kinds, _ := news(fx)
				told = append(told, kinds...)
			}
			if !slices.ContainsFunc(fx.Notify, func(n Notice) bool { return n.Kind == NoticeAck }) || len(told) != i+2 {
				t.Errorf("delta %v, response %d: told %v, and then %+v", delta, i, told, fx.Notify)
			}
			r.step(Written{r.ref}, Delivered{r.ref})
		}
	}
}

func TestSerialBefore(t *testing.T) {
	const last = math.MaxUint32
	for _, tt := range []struct {
		a, b serial
		want bool
	}{
		{0, 0, false}, {0, 1, true}, {0, last, true}, {1, 0, false}, {last, 0, false},
		{1, 2, true}, {2, 1, false}, {2, 2, false}, {last, 1, true}, {1, last, false}, {last - 5, 7, true},
	} {
		if got := tt.a.before(tt.b); got != tt.want {
			t.Errorf("%d before %d: %v", tt.a, tt.b, got)
		}
	}
	if serial(last).next() != 1 || serial(0).next() != 1 || serial(7).next() != 8 {
		t.Error("the number after the last one is 1, and 0 is none")
	}
}
