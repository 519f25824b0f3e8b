package csds_test

import (
	"context"
	"fmt"
	"testing"

	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/csds"
	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// many is a client that holds n clusters.
func many(t testing.TB, n int) *client.Client {
	t.Helper()
	srv := testutil.StartServer(t)
	boot, err := bootstrap.Server(srv.Target())
	must(t, err)
	c, err := client.New(client.Config{Bootstrap: boot, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()}})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	_, err = c.WatchAll(context.Background(), cds.Type, "*", func(client.Batch[any]) {})
	must(t, err)
	st, err := srv.Accept(t.Context())
	must(t, err)
	var all []proto.Message
	for i := range n {
		all = append(all, cluster(fmt.Sprintf("outbound|8080||service-%06d", i)))
	}
	must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "2026-11-23T18:00:00Z/1", "n1", all...)))
	must(t, c.Ready(t.Context()))
	return c
}

var withoutContents = &statusv3.ClientStatusRequest{ExcludeResourceContents: true}

// The rows of thirty thousand resources fit into what a reader takes by default, and cost little beside what
// the client holds.
//
// spec: CSDS-g
func TestCost(t *testing.T) {
	race.SkipCost(t)
	const n, limit, memory = 30_000, 4 << 20, 20 << 20
	c := many(t, n)
	r := reader(t, csds.Config{ExcludeContents: true}, c)
	var resp *statusv3.ClientStatusResponse
	if grown := heapsize.While(func() { resp = fetch(t, r) }); grown > memory*2 { // the reader has it too
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if size := proto.Size(resp); size > limit || len(resp.GetConfig()[0].GetGenericXdsConfigs()) != n {
		t.Errorf("%d rows in %d bytes", len(resp.GetConfig()[0].GetGenericXdsConfigs()), size)
	}
}

// BenchmarkFetch makes and encodes the answer of a hundred thousand resources without contents.
func BenchmarkFetch(b *testing.B) {
	s := csds.New(csds.Config{}, many(b, 100_000))
	fetch := func(req *statusv3.ClientStatusRequest) {
		resp, err := s.FetchClientStatus(b.Context(), req)
		must(b, err)
		_, err = proto.Marshal(resp)
		must(b, err)
	}
	for name, req := range map[string]*statusv3.ClientStatusRequest{"rows": withoutContents, "contents": nil} {
		b.Run(name, func(b *testing.B) {
			grown := heapsize.While(func() { fetch(req) })
			b.ReportAllocs()
			for b.Loop() {
				fetch(req)
			}
			b.ReportMetric(float64(grown)/(1<<20), "MiB-heap")
		})
	}
}
