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
