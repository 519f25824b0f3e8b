package machine

import (
	"fmt"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// BenchmarkRemovedAndNotFound has a server list names as removed, and say of each that it is not
// found.
func BenchmarkRemovedAndNotFound(b *testing.B) {
	perItem(b, func(b *testing.B, n int) {
		b.StopTimer()
		m := scaleMachine(1)
		r := &wire.Response{TypeURL: scaleType.URL, Nonce: "1"}
		for i := range n {
			name := []byte(fmt.Sprint(i))
			m.Step(scaleNow, Start{&Watch{Type: scaleType, Name: string(name)}})
			r.Removed = append(r.Removed, name)
			r.Errors = append(r.Errors, wire.ResourceError{ResourceName: wire.ResourceName{Name: name}, Code: codeNotFound})
		}
		ref := Ref{Gen: 1}
		m.Step(scaleNow, Up{Ref: ref})
		m.Step(scaleNow.Add(time.Second), Written{ref})
		b.StartTimer()
		fx := m.Step(scaleNow.Add(time.Second), Received{ref, r})
		if len(fx.Notify) < n {
			b.Fatalf("%d notices of %d absences", len(fx.Notify), n)
		}
	})
}

// Long lists of removed names that nobody knows are different responses if the names are, and no storm.
//
// spec: S-2
func TestLongRemovalsAreNoStorm(t *testing.T) {
	r := newRig(t, Config{}, Server{Delta: true})
	r.step(Start{r.watch("a")})
	r.up()
	for i := range stormSame + 2 {
		resp := &wire.Response{TypeURL: r.typ.URL, Version: "1", Nonce: fmt.Sprint(i)}
		for j := range siftMost + 1 {
			resp.Removed = append(resp.Removed, fmt.Appendf(nil, "%d-%d", i, j))
		}
		fx := r.step(Received{r.ref, resp})
		for len(r.m.sifting) > 0 {
			fx = r.step(Tick{})
		}
		for _, l := range fx.Log {
			t.Errorf("after %d: %s", i, l.Text)
		}
		r.step(Written{r.ref}, Delivered{r.ref})
	}
}
