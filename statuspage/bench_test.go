package statuspage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// discard is an answer that nobody keeps.
type discard struct {
	head http.Header
	n    int
}

func (d *discard) Header() http.Header         { return d.head }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(b []byte) (int, error) { d.n += len(b); return len(b), nil }

// BenchmarkPages asks for pages of a client with a hundred thousand clusters. The requirement is 300 ms and 64 MiB.
func BenchmarkPages(b *testing.B) {
	r := newRig(b)
	all := make([]proto.Message, 100_000)
	for i := range all {
		all[i] = cluster(fmt.Sprintf("cluster-%06d", i))
	}
	r.watchAll(cds.Type, all...)
	all = nil
	for name, page := range map[string]string{
		"overview": "", "list": "resources", "search": "resources?q=099999&page=1", "resource": "resource?type=Cluster&name=cluster-099999",
		"watches": "watches", "json": "resources?format=json", "contents": "resources?format=json&contents=true",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			grown := heapsize.Watch()
			for b.Loop() {
				d := &discard{head: http.Header{}}
				r.pages.ServeHTTP(d, httptest.NewRequest(http.MethodGet, "/debug/"+page, nil))
				size = d.n
			}
			b.ReportMetric(float64(grown())/(1<<20), "heap-MiB")
			b.ReportMetric(float64(size)/(1<<20), "page-MiB")
		})
	}
}
