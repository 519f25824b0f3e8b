package wire

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

const benchEntries = 10_000

// BenchmarkScan reads responses of ten thousand entries of 200 bytes.
func BenchmarkScan(b *testing.B) {
	sotw := &discoveryv3.DiscoveryResponse{VersionInfo: "1", Nonce: "n", TypeUrl: fooURL}
	delta := &discoveryv3.DeltaDiscoveryResponse{Nonce: "n", TypeUrl: fooURL}
	for i := range benchEntries {
		name := fmt.Sprintf("cluster-%05d", i)
		a := foo(str(1, name) + str(2, fmt.Sprintf("%0200d", i)))
		sotw.Resources = append(sotw.Resources, a)
		delta.Resources = append(delta.Resources, &discoveryv3.Resource{Name: name, Version: "1", Resource: a})
	}
	b.Run("sotw", func(b *testing.B) { benchScan(b, ScanSotW, marshal(b, sotw)) })
	b.Run("delta", func(b *testing.B) { benchScan(b, ScanDelta, marshal(b, delta)) })
	const part = 16 << 10 // as gRPC has it
	b.Run("parts", func(b *testing.B) {
		benchScan(b, ScanSotW, slices.Collect(slices.Chunk(marshal(b, sotw), part))...)
	})
}

func benchScan(b *testing.B, scan func(...[]byte) (*Response, error), frame ...[]byte) {
	b.ReportAllocs()
	b.SetBytes(int64(len(bytes.Join(frame, nil))))
	for b.Loop() {
		if r, err := scan(frame...); err != nil || len(r.Resources) != benchEntries {
			b.Fatal(len(r.Resources), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchEntries, "ns/resource")
}
