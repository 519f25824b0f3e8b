package load_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/load"
)

// A server asks for anything, from no interval to one of ten thousand years, for other clusters each time, and
// ends its stream after some of the reports. All reports together have each request and each drop once.
//
// spec: LRS-3 LRS-a LRS-b LRS-c
func TestServerThatAsksForAnything(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		inBubble(t, func(t *testing.T, r *rig) {
			random := rand.New(rand.NewPCG(seed, 0))
			names := []string{"a", "b", "c", "\xff"}
			var clusters []*load.Cluster
			for _, name := range names {
				clusters = append(clusters, r.cluster(name))
			}
			var all []*endpointv3.ClusterStats
			var running []load.Call
			begun, dropped := uint64(0), uint64(0)
			st := r.accept()
			for range 60 {
				if random.IntN(2) == 0 {
					must(t, st.gs.Send(anything(random, names)))
					synctest.Wait()
				}
				for range random.IntN(20) {
					c := clusters[random.IntN(len(clusters))]
					if random.IntN(4) == 0 {
						c.Drop(fmt.Sprint("category ", random.IntN(3)))
						dropped++
						continue
					}
					running = append(running, c.Locality(zoneA, uint32(random.IntN(2))).Begin(address(uint32(random.IntN(3)))))
					begun++
				}
				for len(running) > random.IntN(10) {
					running[0].End(random.IntN(2) == 0)
					running = running[1:]
				}
				if random.IntN(8) == 0 { // it is used by nobody for a while
					clusters[0].Close()
					clusters[0] = r.cluster("a")
				}
				if all = append(all, st.after(time.Duration(random.IntN(int(15*time.Second))))...); random.IntN(6) == 0 {
					st.end <- errors.New("it has enough")
					<-st.over
					st = r.accept()
				}
			}
			for _, call := range running {
				call.End(true)
			}
			st.ask(t, time.Second)
			all = append(all, st.after(10*time.Second)...)
			issued, finished := sum(all)
			lost := uint64(0)
			for _, s := range all {
				lost += s.GetTotalDroppedRequests()
				if s.GetLoadReportInterval().AsDuration() < 0 {
					t.Errorf("seed %d: an interval of %v", seed, s.GetLoadReportInterval().AsDuration())
				}
			}
			if issued != begun || finished != begun || lost != dropped {
				t.Errorf("seed %d: reports have %d requests begun, %d ended and %d dropped, want %d, as many, and %d", seed, issued, finished, lost, begun, dropped)
			}
		})
	}
}

// anything is a response that makes some sense or none.
func anything(random *rand.Rand, names []string) *lrsv3.LoadStatsResponse {
	intervals := []*durationpb.Duration{
		nil, {}, {Seconds: -1}, {Seconds: math.MinInt64}, {Seconds: math.MaxInt64}, {Nanos: math.MinInt32}, {Seconds: 1, Nanos: -1},
		{Seconds: 315_576_000_000, Nanos: 999_999_999}, {Nanos: 1}, {Seconds: 1}, {Seconds: 2}, {Seconds: 5},
	}
	r := &lrsv3.LoadStatsResponse{
		LoadReportingInterval: intervals[random.IntN(len(intervals))], SendAllClusters: random.IntN(2) == 0,
		ReportEndpointGranularity: random.IntN(2) == 0,
	}
	for range random.IntN(4) {
		r.Clusters = append(r.Clusters, []string{"", "a", "b", "other"}[random.IntN(4)])
	}
	return r
}

// A category that is no UTF-8 is one category, however often something is dropped by it.
func TestDropsOfBadNames(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := r.cluster("a")
		for range 3000 {
			c.Drop("\xff")
		}
		c.Drop("flood")
		st := r.accept()
		st.ask(t, time.Second)
		same(t, st.after(time.Second)[0], `cluster_name: "a" load_report_interval { seconds: 1 } total_dropped_requests: 3001
			dropped_requests { category: "flood" dropped_count: 1 } dropped_requests { category: "\357\277\275" dropped_count: 3000 }`)
	})
}

// Only so many categories are told apart. What is dropped by others counts all the same, and so does what has none.
func TestDropsOfManyCategories(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := r.cluster("a")
		c.Drop("")
		for range 2 {
			for i := range 1200 {
				c.Drop(fmt.Sprint(i))
			}
		}
		st := r.accept()
		st.ask(t, time.Second)
		got := st.after(time.Second)[0]
		if n := len(got.GetDroppedRequests()); n != 1000 || got.GetTotalDroppedRequests() != 2401 {
			t.Errorf("%d categories, %d requests, want 1000 and 2401", n, got.GetTotalDroppedRequests())
		}
		for _, d := range got.GetDroppedRequests() {
			if d.GetDroppedCount() != 2 {
				t.Errorf("%s: %d, want 2", d.GetCategory(), d.GetDroppedCount())
			}
		}
	})
}
