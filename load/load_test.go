package load_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/load"
)

// same compares a message with its text.
func same[M proto.Message](t *testing.T, got M, text string) {
	t.Helper()
	want := got.ProtoReflect().New().Interface()
	must(t, prototext.Unmarshal([]byte(text), want))
	if d := cmp.Diff(want, proto.Message(got), protocmp.Transform()); d != "" {
		t.Errorf("not as expected (-want +got):\n%s", d)
	}
}

// There is a stream only while somebody reports. What was counted is in the next report, once.
//
// spec: LRS-1 LRS-3
func TestReports(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.none()
		c := r.r.Cluster(load.Target{Server: target, Cluster: "backend", Service: "eds"})
		st := <-r.server.streams
		same(t, <-st.requests, `node {
			id: "node-1" user_agent_name: "xdswatch" user_agent_version: "0.1.0"
			client_features: "xds.config.resource-in-sotw" client_features: "xds.config.supports-resource-ttl"
			client_features: "envoy.lrs.supports_send_all_clusters"
		}`)
		a, b := c.Locality(zoneA, 0), c.Locality(zoneA, 1)
		a.Begin(nil).End(true)
		a.Begin(nil).End(false)
		runs := a.Begin(nil)
		b.Begin(nil).End(true)
		c.Drop("flood")
		c.Drop("flood")
		c.Drop("")
		if got := st.after(time.Minute); len(got) > 0 {
			t.Errorf("a report that nobody asked for: %v", got)
		}
		st.ask(t, 5*time.Second)
		time.Sleep(5 * time.Second)
		got := st.reports()
		if len(got) != 1 {
			t.Fatalf("%d reports, want 1: %v", len(got), got)
		}
		same(t, got[0], `cluster_name: "backend" cluster_service_name: "eds" load_report_interval { seconds: 65 }
			upstream_locality_stats { locality { region: "r" zone: "a" }
				total_issued_requests: 3 total_successful_requests: 1 total_error_requests: 1 total_requests_in_progress: 1 }
			upstream_locality_stats { locality { region: "r" zone: "a" } priority: 1
				total_issued_requests: 1 total_successful_requests: 1 }
			total_dropped_requests: 3 dropped_requests { category: "flood" dropped_count: 2 }`)

		runs.End(true)
		same(t, st.after(5 * time.Second)[0], `cluster_name: "backend" cluster_service_name: "eds" load_report_interval { seconds: 5 }
			upstream_locality_stats { locality { region: "r" zone: "a" } total_successful_requests: 1 }`)
		same(t, st.after(5 * time.Second)[0], `cluster_name: "backend" cluster_service_name: "eds" load_report_interval { seconds: 5 }`)

		// A request that runs on keeps the stream, and is reported.
		runs = b.Begin(nil)
		c.Close()
		c.Close()
		same(t, st.after(5 * time.Second)[0], `cluster_name: "backend" cluster_service_name: "eds" load_report_interval { seconds: 5 }
			upstream_locality_stats { locality { region: "r" zone: "a" } priority: 1 total_issued_requests: 1 total_requests_in_progress: 1 }`)
		runs.End(false)
		<-st.over
		same(t, st.reports()[0], `cluster_name: "backend" cluster_service_name: "eds" load_report_interval { seconds: 5 }
			upstream_locality_stats { locality { region: "r" zone: "a" } priority: 1 total_error_requests: 1 }`)
		time.Sleep(time.Minute)
		r.none()
	})
}

// Each response replaces what the last asked for.
//
// spec: LRS-2 LRS-b LRS-d LRS-h
func TestLaterResponses(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a, b := r.cluster("a"), r.cluster("b")
		defer a.Close()
		defer b.Close()
		b.Locality(zoneA, 0).Begin(nil).End(true)
		st := r.accept()
		st.ask(t, 10*time.Second, "a")
		expect(t, "one cluster", names(st.after(10*time.Second)), "a 10s")
		st.ask(t, 4*time.Second, "b", "c")
		got := st.after(4 * time.Second)
		expect(t, "another, since it began", names(got), "b 14s")
		if issued, _ := sum(got); issued != 1 {
			t.Errorf("%d requests were issued, want 1", issued)
		}
		st.ask(t, time.Second)
		expect(t, "all", names(st.after(time.Second)), "a 5s", "b 1s")
		must(t, st.gs.Send(&lrsv3.LoadStatsResponse{LoadReportingInterval: durationpb.New(time.Second)}))
		expect(t, "none", names(st.after(time.Minute)))
		st.ask(t, 2*time.Second)
		expect(t, "all again", names(st.after(2*time.Second)), "a 1m2s", "b 1m2s")
	})
}

// spec: LRS-a
func TestIntervals(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		defer r.cluster("a").Close()
		st := r.accept()
		st.ask(t, -time.Second)
		expect(t, "the default", names(st.after(10*time.Second)), "a 10s")
		st.ask(t, time.Millisecond)
		expect(t, "not more than once a second", names(st.after(2*time.Second)), "a 1s", "a 1s")
		st.ask(t, 3*time.Second)
		st.ask(t, 0)
		expect(t, "the last valid one", names(st.after(3*time.Second)), "a 3s")
		must(t, st.gs.Send(&lrsv3.LoadStatsResponse{SendAllClusters: true}))
		must(t, st.gs.Send(&lrsv3.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: &durationpb.Duration{Seconds: 1, Nanos: -1}}))
		expect(t, "the last valid one again", names(st.after(3*time.Second)), "a 3s")
		if n := strings.Count(r.logged.text(), "without a valid interval"); n != 1 {
			t.Errorf("the log has it %d times, want once:\n%s", n, r.logged.text())
		}
	})
}

// spec: LRS-e
func TestEndpoints(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := r.r.Cluster(load.Target{Server: target, Cluster: "a", Metrics: []string{"named_metrics.x"}})
		defer c.Close()
		l := c.Locality(nil, 0)
		st := r.accept()
		before := l.Begin(address(1))
		must(t, st.gs.Send(&lrsv3.LoadStatsResponse{
			SendAllClusters: true, LoadReportingInterval: durationpb.New(time.Second), ReportEndpointGranularity: true,
		}))
		synctest.Wait()
		before.End(true)
		l.Begin(address(2)).End(true)
		l.Begin(address(1)).End(false)
		runs := l.Begin(address(1))
		pipe := l.Begin(&corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: "/p"}}})
		pipe.Metrics(&orcav3.OrcaLoadReport{NamedMetrics: map[string]float64{"x": 2}})
		pipe.End(true)
		l.Begin(nil).End(true)
		same(t, st.after(time.Second)[0].GetUpstreamLocalityStats()[0], `locality {}
			total_issued_requests: 6 total_successful_requests: 4 total_error_requests: 1 total_requests_in_progress: 1
			load_metric_stats { metric_name: "named_metrics.x" num_requests_finished_with_metric: 1 total_metric_value: 2 }
			upstream_endpoint_stats { address { pipe { path: "/p" } } total_issued_requests: 1 total_successful_requests: 1
				load_metric_stats { metric_name: "named_metrics.x" num_requests_finished_with_metric: 1 total_metric_value: 2 } }
			upstream_endpoint_stats { address { socket_address { address: "192.0.2.1" port_value: 1 } }
				total_issued_requests: 2 total_error_requests: 1 total_requests_in_progress: 1 }
			upstream_endpoint_stats { address { socket_address { address: "192.0.2.1" port_value: 2 } }
				total_issued_requests: 1 total_successful_requests: 1 }`)
		st.ask(t, time.Second)
		runs.End(true)
		same(t, st.after(time.Second)[0].GetUpstreamLocalityStats()[0], `locality {} total_successful_requests: 1`)
	})
}

// A server that asks for reports by endpoint no more gets none, and nothing is counted for it meanwhile.
//
// spec: LRS-e
func TestEndpointsNoMore(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := r.cluster("a").Locality(nil, 0)
		st := r.accept()
		ask := func(granular bool) {
			must(t, st.gs.Send(&lrsv3.LoadStatsResponse{
				SendAllClusters: true, LoadReportingInterval: durationpb.New(time.Second), ReportEndpointGranularity: granular,
			}))
			synctest.Wait()
		}
		ask(true)
		both := l.Begin(address(1))
		ask(false)
		both.End(true)
		l.Begin(address(2)).End(true)
		same(t, st.after(time.Second)[0].GetUpstreamLocalityStats()[0], `locality {} total_issued_requests: 2 total_successful_requests: 2`)
		late := l.Begin(address(3))
		ask(true)
		late.End(true)
		l.Begin(address(4)).End(true)
		same(t, st.after(time.Second)[0].GetUpstreamLocalityStats()[0], `locality {} total_issued_requests: 2 total_successful_requests: 2
			upstream_endpoint_stats { address { socket_address { address: "192.0.2.1" port_value: 4 } }
				total_issued_requests: 1 total_successful_requests: 1 }`)
	})
}

// What a locality's requests sum up to in all reports is what was counted, wherever connections are
// cut between reports.
//
// spec: LRS-c LRS-3
func TestCutBetweenReports(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := r.cluster("a")
		l := c.Locality(zoneA, 0)
		random := rand.New(rand.NewPCG(1, 2))
		var began, ended, sent, finished uint64
		var running []load.Call
		var st *lrsStream
		add := func(all []*endpointv3.ClusterStats) {
			i, f := sum(all)
			sent, finished = sent+i, finished+f
			if sent > began || finished > ended {
				t.Fatalf("%d and %d requests were reported, of %d and %d", sent, finished, began, ended)
			}
		}
		for range 300 {
			for range random.IntN(20) {
				running, began = append(running, l.Begin(nil)), began+1
			}
			for range random.IntN(len(running) + 1) {
				running[0].End(random.IntN(2) == 0)
				running, ended = running[1:], ended+1
			}
			if st == nil {
				st = r.accept()
				if random.IntN(3) > 0 { // or it is cut before it asks
					st.ask(t, time.Second)
				}
			}
			add(st.after(time.Duration(random.IntN(1500)) * time.Millisecond))
			if random.IntN(4) == 0 {
				add(st.reports())
				if random.IntN(2) == 0 {
					r.cut()
				} else {
					st.end <- errKilled
				}
				st = nil
				time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
			}
		}
		for _, call := range running {
			call.End(true)
			ended++
		}
		if st == nil {
			st = r.accept()
		}
		st.ask(t, time.Second)
		add(st.reports())
		c.Close()
		r.r.Close()
		<-st.over
		add(st.reports())
		if sent != began || finished != ended {
			t.Errorf("%d of %d issued and %d of %d finished requests were reported", sent, began, finished, ended)
		}
	})
}

// A server that is killed while it takes a report loses at most what that report has.
//
// spec: LRS-c
func TestKilledInAReport(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := r.cluster("a")
		defer c.Close()
		l := c.Locality(zoneA, 0)
		var began, counted, lost uint64
		for round := range 20 {
			st := r.accept()
			st.ask(t, time.Second)
			for range 3 {
				for range 10 + round {
					l.Begin(nil).End(true)
					began++
				}
				issued, _ := sum(st.after(time.Second))
				counted += issued
			}
			for range 7 {
				l.Begin(nil).End(true)
				began++
			}
			time.Sleep(time.Second - time.Duration(round%2)*time.Nanosecond)
			// The report may have left or not: who is killed does not count it.
			if round%3 == 0 {
				synctest.Wait()
			}
			r.cut()
			lost += 7
		}
		st := r.accept()
		st.ask(t, time.Second)
		issued, _ := sum(st.after(time.Second))
		counted += issued
		if counted > began || counted+lost < began {
			t.Errorf("%d requests were reported of %d, of which at most %d can be lost", counted, began, lost)
		}
	})
}

// What is no number spoils no sum, a name of any length is not kept, and only so many names are.
//
// spec: LRS-f
func TestOddMetrics(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := r.r.Cluster(load.Target{Server: target, Cluster: "a", Metrics: []string{"named_metrics.*"}})
		defer c.Close()
		st := r.accept()
		st.ask(t, time.Second)
		call := c.Locality(zoneA, 0).Begin(nil)
		named := map[string]float64{"nan": math.NaN(), "inf": math.Inf(-1), strings.Repeat("n", 257): 1, strings.Repeat("n", 256): 1}
		call.Metrics(&orcav3.OrcaLoadReport{NamedMetrics: named})
		stats := func() []*endpointv3.EndpointLoadMetricStats {
			return st.after(time.Second)[0].GetUpstreamLocalityStats()[0].GetLoadMetricStats()
		}
		if got := stats(); len(got) != 1 || len(got[0].GetMetricName()) != len("named_metrics.")+256 {
			t.Errorf("the metrics are %v", got)
		}
		for i := range 2000 {
			call.Metrics(&orcav3.OrcaLoadReport{NamedMetrics: map[string]float64{fmt.Sprint(i): 1}})
		}
		if got := stats(); len(got) != 999 { // beside the first
			t.Errorf("there are %d metrics", len(got))
		}
		call.End(true)
	})
}

// spec: LRS-f LRS-4
func TestMetrics(t *testing.T) {
	report := &orcav3.OrcaLoadReport{
		CpuUtilization: 0.5, MemUtilization: 0.75, ApplicationUtilization: 0.25, RpsFractional: 7, NamedMetrics: map[string]float64{"": 3, "x": 1, "y": 2, "z": 0},
	}
	for names, want := range map[string]string{
		"":                                     ``,
		"rps_fractional request_cost.a what":   ``,
		"mem_utilization":                      `mem_utilization { num_requests_finished_with_metric: 2 total_metric_value: 1.5 }`,
		"cpu_utilization":                      `cpu_utilization { num_requests_finished_with_metric: 2 total_metric_value: 1 }`,
		"application_utilization cpu":          `application_utilization { num_requests_finished_with_metric: 2 total_metric_value: 0.5 }`,
		"named_metrics. named_metrics":         ``,
		"named_metrics.x named_metrics.absent": `load_metric_stats { metric_name: "named_metrics.x" num_requests_finished_with_metric: 2 total_metric_value: 2 }`,
		"named_metrics.* named_metrics.x": `load_metric_stats { metric_name: "named_metrics." num_requests_finished_with_metric: 2 total_metric_value: 6 }
			load_metric_stats { metric_name: "named_metrics.x" num_requests_finished_with_metric: 2 total_metric_value: 2 }
			load_metric_stats { metric_name: "named_metrics.y" num_requests_finished_with_metric: 2 total_metric_value: 4 }
			load_metric_stats { metric_name: "named_metrics.z" num_requests_finished_with_metric: 2 }`,
	} {
		t.Run(names, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				c := r.r.Cluster(load.Target{Server: target, Cluster: "a", Metrics: strings.Fields(names)})
				defer c.Close()
				st := r.accept()
				st.ask(t, time.Second)
				for range 2 {
					call := c.Locality(zoneA, 0).Begin(nil)
					call.Metrics(report)
					call.Metrics(nil)
					call.End(true)
				}
				const counts = `locality { region: "r" zone: "a" } total_issued_requests: 2 total_successful_requests: 2 `
				same(t, st.after(time.Second)[0].GetUpstreamLocalityStats()[0], counts+want)
				// What an endpoint does not say is not counted.
				call := c.Locality(zoneA, 0).Begin(nil)
				call.Metrics(&orcav3.OrcaLoadReport{})
				call.End(true)
				same(t, st.after(time.Second)[0].GetUpstreamLocalityStats()[0], strings.ReplaceAll(counts, "2", "1"))
				if again := st.after(time.Second)[0].GetUpstreamLocalityStats(); len(again) > 0 {
					t.Errorf("metrics are reported twice: %v", again)
				}
			})
		})
	}
}

// spec: LRS-g LRS-1
func TestTargets(t *testing.T) {
	cluster := &clusterv3.Cluster{}
	must(t, prototext.Unmarshal([]byte(`name: "a" eds_cluster_config { service_name: "s" } lrs_server { self {} } lrs_report_endpoint_metrics: "x"`), cluster))
	want := load.Target{Server: "there", Cluster: "a", Service: "s", Metrics: []string{"x"}}
	if d := cmp.Diff(want, load.TargetOf("there", cluster)); d != "" {
		t.Error(d)
	}
	for text, ok := range map[string]bool{``: true, `lrs_server { self {} }`: true, `lrs_server { ads {} }`: false, `lrs_server {}`: false} {
		c := &clusterv3.Cluster{}
		must(t, prototext.Unmarshal([]byte(text), c))
		if err := load.CheckCluster(c); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
		other := client.Change{Name: "other", Value: &endpointv3.ClusterLoadAssignment{}}
		err := load.Guard(&client.Proposal{Changed: []client.Change{other, {Name: "a", Value: &clusterv3.Cluster{}}, {Name: "b", Value: c}}})
		if (err == nil) != ok || !ok && !strings.Contains(err.Error(), `cluster "b"`) {
			t.Errorf("the guard says of %q: %v", text, err)
		}
		if got := load.TargetOf("there", c); (got.Server != "") != strings.Contains(text, "self") {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// Nothing that is nil counts, or fails.
func TestNothing(t *testing.T) {
	var r *load.Reporter
	c := r.Cluster(load.Target{Server: target, Cluster: "a"})
	set := r.NewSet()
	for _, c := range []*load.Cluster{c, set.Use(load.Target{Server: target, Cluster: "a"})} {
		call := c.Locality(zoneA, 0).Begin(address(1))
		call.Metrics(&orcav3.OrcaLoadReport{})
		call.End(true)
		c.Drop("flood")
		c.Close()
	}
	set.Sweep()
	must(t, r.Close())
}

func TestSet(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		set := r.r.NewSet()
		a, b := load.Target{Server: target, Cluster: "a"}, load.Target{Server: target, Cluster: "b"}
		if first := set.Use(a); first == nil || set.Use(a) != first || set.Use(b) == first || set.Use(load.Target{}) != nil {
			t.Error("a set has one cluster for each target")
		}
		set.Sweep()
		st := r.accept()
		st.ask(t, time.Second)
		expect(t, "both", names(st.after(time.Second)), "a 1s", "b 1s")
		set.Use(a)
		set.Sweep()
		st.after(2 * time.Second)
		expect(t, "one", names(st.after(time.Second)), "a 1s")
		set.Sweep()
		<-st.over
	})
}
