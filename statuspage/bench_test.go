package statuspage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	_ "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/internal/race"
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

// many is a rig whose client holds a hundred thousand clusters.
func many(t testing.TB) *rig {
	r := newRig(t)
	all := make([]proto.Message, 100_000)
	for i := range all {
		all[i] = cluster(fmt.Sprintf("cluster-%06d", i))
	}
	r.watchAll(cds.Type, all...)
	return r
}

// A page of a hundred thousand resources takes little beside what the client holds: each state is written as it
// is read, and only the names are listed before.
func TestCostOfPages(t *testing.T) {
	race.SkipCost(t)
	if testing.Short() {
		t.Skip("long: a hundred thousand resources")
	}
	r := many(t)
	for page, most := range map[string]uint64{
		"": 20 << 20, "resources": 20 << 20, "resources?q=099999&page=1": 20 << 20, "resource?type=Cluster&name=cluster-099999": 20 << 20,
		"resources?format=json": 25 << 20, "config_dump?mask=dynamic_active_clusters.version_info": 96 << 20,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d := &discard{head: http.Header{}}
		r.pages.ServeHTTP(d, httptest.NewRequest(http.MethodGet, "/debug/"+page, nil))
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; d.n == 0 || got > most {
			t.Errorf("%q: %d bytes are allocated for %d bytes, want at most %d", page, got, d.n, most)
		}
	}
}

// Contents that lie very deep in each other take no more for their indentation than a page shows of them; and those
// that are deeper than encoding/json goes are shown.
func TestCostOfDeepContents(t *testing.T) {
	race.SkipCost(t)
	const most = 32 << 20
	r := newRig(t)
	deep, deeper := cluster("deep"), cluster("deeper")
	deep.TypedExtensionProtocolOptions = map[string]*anypb.Any{"x": nested(8, 9_900)}   // not_rule
	deeper.TypedExtensionProtocolOptions = map[string]*anypb.Any{"x": nested(1, 4_990)} // and_rules, which has rules
	r.watchAll(cds.Type, deep, deeper)
	for name, want := range map[string]string{"deep": `notRule`, "deeper": "andRules"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		page := r.html("resource?type=Cluster&name=" + name)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > most || !strings.Contains(page, want) {
			t.Errorf("%s: %d bytes are allocated for a page of %d", name, got, len(page))
		}
	}
}

// nested is a Permission, in a field of such or of a set of such, in others.
func nested(field protowire.Number, deep int) *anypb.Any {
	var b []byte
	for range deep {
		if field == 1 {
			b = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), b)
		}
		b = protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), b)
	}
	return &anypb.Any{TypeUrl: "type.googleapis.com/envoy.config.rbac.v3.Permission", Value: b}
}

// BenchmarkPages asks for pages of a client with a hundred thousand clusters. The requirement is 300 ms and 64 MiB.
func BenchmarkPages(b *testing.B) {
	r := many(b)
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
