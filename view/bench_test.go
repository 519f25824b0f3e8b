package view

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

const (
	benchRoutes    = 1000
	benchEndpoints = 10 // of a cluster
)

func benchName(i int) string { return fmt.Sprintf("cluster-%06d.namespace.svc", i) }

// benchRouteWords are routes to so many clusters.
func benchRouteWords(clusters int) string {
	var b strings.Builder
	b.WriteString("*=")
	per := max(clusters/benchRoutes, 1)
	for i := range clusters {
		switch {
		case i == 0:
		case i%per == 0:
			b.WriteByte(',')
		default:
			b.WriteByte('+')
		}
		b.WriteString(benchName(i))
	}
	return b.String()
}

func benchAddresses(i, first int) string {
	var all []string
	for j := range benchEndpoints {
		all = append(all, fmt.Sprintf("10.%d.%d.%d:%d", i/250, i%250, j, 8000+first))
	}
	return strings.Join(all, ",")
}

// benchCore is a core of so many clusters, all of them published.
func benchCore(tb testing.TB, clusters int) (*driver, []proto.Message) {
	d := newDriver(tb, []string{"lds", "l"}, []string{"names=-1"})
	d.run("start")
	d.run("lds l 1 rds:r")
	d.run("rds r 1 " + benchRouteWords(clusters))
	var keep []proto.Message
	tell := func(kind string, i int, m proto.Message) {
		name := benchName(i)
		w := d.watched[kind+" "+name]
		ev := client.Event[any]{Kind: client.EventUpdated, Type: kinds[kind].TypeURL(), Name: name, Asked: name, Version: "1", Server: "server", Value: m}
		d.core.take(d.now, w, &ev)
		keep = append(keep, m)
	}
	for i := range clusters {
		tell("cds", i, buildCluster(benchName(i), []string{"eds"}))
	}
	d.core.step(d.now)
	for i := range clusters {
		d.watched["eds "+benchName(i)] = watch{d.core.eds, benchName(i)}
		d.core.eds.endpoints[benchName(i)].watched = true
		tell("eds", i, buildEndpoints(benchName(i), []string{benchAddresses(i, 0)}))
	}
	if e := d.core.step(d.now); e.snapshot == nil || e.snapshot.Len() != clusters {
		tb.Fatal("not published")
	}
	return d, keep
}

// V2: one endpoint changes, among few and many clusters.
func BenchmarkEndpointChange(b *testing.B) {
	for _, clusters := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(clusters), func(b *testing.B) {
			d, _ := benchCore(b, clusters)
			name := benchName(clusters / 2)
			forms := [2]proto.Message{
				buildEndpoints(name, []string{benchAddresses(1, 1)}), buildEndpoints(name, []string{benchAddresses(1, 2)}),
			}
			ev := client.Event[any]{Kind: client.EventUpdated, Type: eds.Type.TypeURL(), Name: name, Asked: name, Version: "2", Server: "server"}
			w := watch{d.core.eds, name}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				ev.Value = forms[i%2]
				i++
				d.core.take(d.now, w, &ev)
				if e := d.core.step(d.now); e.snapshot == nil {
					b.Fatal("not published")
				}
			}
		})
	}
}

// V3: a route configuration that names 10,000 clusters changes.
func BenchmarkRouteChange(b *testing.B) {
	d, _ := benchCore(b, 10_000)
	words := benchRouteWords(10_000)
	forms := [2]proto.Message{buildRoutes("r", []string{words, "x=" + benchName(1)}), buildRoutes("r", []string{words, "x=" + benchName(2)})}
	ev := client.Event[any]{Kind: client.EventUpdated, Type: kinds["rds"].TypeURL(), Name: "r", Asked: "r", Version: "2", Server: "server"}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		ev.Value = forms[i%2]
		i++
		d.core.take(d.now, d.watched["rds r"], &ev)
		if e := d.core.step(d.now); e.snapshot == nil {
			b.Fatal("not published")
		}
	}
}

// One more host name is asked for on demand, beside others; its virtual host comes and goes.
func BenchmarkHost(b *testing.B) {
	for _, hosts := range []int{100, 10_000} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			d := newDriver(b, []string{"rds", "r"}, nil)
			for _, input := range []string{"start", "rds r 1 own.org=a vhds", "cds a 1 static:1.1.1.1", "synced vhds *"} {
				d.run(input)
			}
			ask := func(host string) { d.core.holdHost(d.now, host) }
			answer := func(host string) {
				d.command(strings.Fields(fmt.Sprintf("vhds r/%s 1 %s=a", host, host)))
			}
			for i := range hosts {
				ask(fmt.Sprint(i, ".org"))
			}
			d.step()
			for i := range hosts {
				answer(fmt.Sprint(i, ".org"))
			}
			d.step()
			ev := client.Event[any]{Kind: client.EventUpdated, Type: vhdsKind.TypeURL(), Name: "r/one.more.org", Asked: "r/one.more.org", Version: "1"}
			ev.Value = build(b, "vhds", ev.Name, []string{"one.more.org=a"})
			b.ReportAllocs()
			for b.Loop() {
				ask("one.more.org")
				e := d.core.step(d.now)
				d.core.take(d.now, e.watch[0], &ev)
				d.core.step(d.now)
				if vh, _ := d.core.snapshot.hostOf("one.more.org"); vh == nil {
					b.Fatal("there is no virtual host")
				}
				d.core.releaseHost(d.now, "one.more.org")
				d.core.step(d.now)
			}
		})
	}
}

// A cluster is looked up in a snapshot, as a proxy does for each request.
func BenchmarkClusterLookup(b *testing.B) {
	d, _ := benchCore(b, 10_000)
	s := d.core.snapshot
	name := benchName(7777)
	b.ReportAllocs()
	for b.Loop() {
		if s.Cluster(name) == nil {
			b.Fatal("not found")
		}
	}
}

// V1: what a cluster costs beside its messages.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(memoryOfCluster(b, 10_000), "B/cluster")
	}
}

// memoryOfCluster is what a view of so many clusters holds beside their messages, for each of them.
func memoryOfCluster(tb testing.TB, clusters int) float64 {
	d, keep := benchCore(tb, clusters)
	d.watched, d.out = nil, nil
	core := d.core
	with := heapInUse()
	keep = append(keep, core.shown.routes[0].Message)
	runtime.KeepAlive(core)
	runtime.KeepAlive(d)
	*d = driver{}
	core = nil
	without := heapInUse()
	runtime.KeepAlive(keep)
	return float64(with-without) / float64(clusters)
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// benchServer answers each request with what it names, in delta.
func benchServer(b *testing.B, clusters int) *testutil.Server {
	all := map[string]*discoveryv3.Resource{}
	add := func(kind, name string, m proto.Message) {
		all[kinds[kind].TypeURL()+" "+name] = testutil.Wrapped(name, "1", m)
	}
	add("lds", "l", buildListener("l", []string{"rds:r"}))
	add("rds", "r", buildRoutes("r", []string{benchRouteWords(clusters)}))
	for i := range clusters {
		add("cds", benchName(i), buildCluster(benchName(i), []string{"eds"}))
		add("eds", benchName(i), buildEndpoints(benchName(i), []string{benchAddresses(i, 0)}))
	}
	return testutil.NewServer(testutil.Unrecorded(), testutil.OnRequest(func(st *testutil.Stream, r *testutil.Request) {
		var found []*discoveryv3.Resource
		for _, name := range r.Names() {
			found = append(found, all[r.TypeURL()+" "+name])
		}
		if len(found) > 0 {
			_ = st.Send(testutil.Delta(r.TypeURL(), "n", found))
		}
	}))
}

func benchClient(b *testing.B, srv *testutil.Server) *client.Client {
	boot, err := bootstrap.Server(srv.Target())
	must(b, err)
	c, err := client.New(client.Config{Bootstrap: boot, Variant: client.VariantDelta, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()}})
	must(b, err)
	return c
}

// V1: 1,000 routes, 10,000 clusters and 100,000 endpoints through the client, with a view and with
// sets that keep the messages.
func BenchmarkStart(b *testing.B) {
	const clusters = 10_000
	b.Run("view", func(b *testing.B) {
		srv := benchServer(b, clusters)
		defer srv.Close()
		for b.Loop() {
			c := benchClient(b, srv)
			v, err := New(context.Background(), c, Root{Type: RootListener, Name: "l"}, Config{})
			must(b, err)
			must(b, v.Ready(context.Background()))
			v.Stop()
			c.Close()
		}
	})
	b.Run("sets", func(b *testing.B) {
		srv := benchServer(b, clusters)
		defer srv.Close()
		var names []string
		for i := range clusters {
			names = append(names, benchName(i))
		}
		for b.Loop() {
			c := benchClient(b, srv)
			var left atomic.Int64
			done := make(chan struct{})
			follow := func(kind resource.AnyType, names ...string) {
				left.Add(int64(len(names)))
				held := map[string]any{}
				s, err := c.NewSet(context.Background(), kind, func(batch client.Batch[any]) {
					for _, ev := range batch.Events {
						held[ev.Name] = ev.Value
					}
					if left.Add(-int64(len(batch.Events))) == 0 {
						close(done)
					}
				})
				must(b, err)
				must(b, s.Add(names...))
			}
			left.Add(1)
			follow(kinds["lds"], "l")
			follow(kinds["rds"], "r")
			follow(cds.Type, names...)
			follow(eds.Type, names...)
			if left.Add(-1) == 0 {
				close(done)
			}
			select {
			case <-done:
			case <-time.After(time.Minute):
				b.Fatal("not everything came")
			}
			c.Close()
		}
	})
}
