package machine

import (
	"fmt"
	"testing"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// BenchmarkResponses is what it takes to be done with a response that holds everything: each value
// new, or none. The payloads count as decoded.
func BenchmarkResponses(b *testing.B) {
	for _, server := range []Server{{}, {Delta: true}} {
		for _, changed := range []bool{true, false} {
			b.Run(fmt.Sprintf("delta=%v/new=%v", server.Delta, changed), func(b *testing.B) { benchmarkResponse(b, server, changed) })
		}
	}
}

func benchmarkResponse(b *testing.B, server Server, changed bool) {
	const n = 50_000
	m := newMachine(Config{}, []Server{server}, Source{Servers: []int{0}})
	m.Step(scaleNow, Start{&Watch{Type: scaleType, Name: star, Wildcard: true}})
	ref := Ref{Gen: 1}
	m.Step(scaleNow, Up{Ref: ref})
	m.Step(scaleNow, Written{ref})
	var payloads [2][]wire.Resource
	for i := range payloads {
		for j := range n {
			payloads[i] = append(payloads[i], wire.Resource{
				Name: fmt.Appendf(nil, "r%06d", j), Version: []byte("1"), TypeURL: []byte(scaleType.URL),
				Payload: fmt.Appendf(nil, "%0100d of %d", j, i), HasBody: true,
			})
		}
	}
	receive := func(resources []wire.Resource) {
		resp := &wire.Response{TypeURL: scaleType.URL, Version: "1", Nonce: "n", Resources: append([]wire.Resource(nil), resources...)}
		fx := m.Step(scaleNow, Received{ref, resp})
		for _, task := range fx.Decode {
			m.Step(scaleNow, Decoded{task, make([]Result, len(task.Items))})
		}
		m.Step(scaleNow, Delivered{ref}, Written{ref})
	}
	receive(payloads[0])
	b.ReportAllocs()
	turn := 0
	for b.Loop() {
		if changed {
			turn = 1 - turn
		}
		receive(payloads[turn])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/resource")
}
