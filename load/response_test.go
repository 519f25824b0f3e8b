package load

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/xdswatch/xdswatch/internal/race"
)

// A response takes no more memory than its bounds allow, however it is made up.
//
// spec: H-5
func TestCostOfResponses(t *testing.T) {
	race.SkipCost(t)
	text := func(num protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
	}
	const size = 63 << 20
	for name, tt := range map[string]struct {
		response []byte
		want     string
		most     uint64 // bytes that are allocated
	}{
		"empty names":    {bytes.Repeat(text(1, nil), size/2), "names 33030144 clusters, more than the limit of 262144", 1 << 20},
		"many names":     {bytes.Repeat(text(1, []byte("a")), maxClusters), "", 32 << 20},
		"one name":       {text(1, bytes.Repeat([]byte("a"), size)), "", 2 * size},
		"unknown fields": {bytes.Repeat(text(99, nil), size/3), "", 1 << 20},
		"too large":      {text(99, make([]byte, size+2<<20)), "larger than the limit of 67108864", 1 << 20},
		"broken":         {append(text(1, []byte("a")), 0xff), "", 1 << 20},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := decode(tt.response)
		runtime.ReadMemStats(&after)
		if name == "broken" {
			if err == nil {
				t.Errorf("%s: accepted", name)
			}
			continue
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v with %d clusters, want %q", name, err, len(r.GetClusters()), tt.want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > tt.most {
			t.Errorf("%s: %d bytes were allocated", name, took)
		}
	}
}

// Endpoints name their metrics: a long name is not kept.
//
// spec: H-5
func TestLongMetricNames(t *testing.T) {
	var ms metrics
	f := newFilter([]string{namedPrefix + "*"})
	report := &orcav3.OrcaLoadReport{NamedMetrics: map[string]float64{strings.Repeat("m", maxMetricName): 1, strings.Repeat("m", maxMetricName+1): 1}}
	ms.record(f, report)
	if list := ms.take(); len(list) != 1 || len(list[0].GetMetricName()) != len(namedPrefix)+maxMetricName {
		t.Errorf("%d metrics are kept, want one", len(list))
	}
}
