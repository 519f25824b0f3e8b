package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/cputime"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/store"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

const many = 100_000

// load is one of the sets of resources of the benchmarks.
type load struct {
	name string
	kind resource.AnyType
	make func(i int) proto.Message
	none func() proto.Message
}

var loads = []load{
	{"clusters", cds.Type, benchCluster, func() proto.Message { return new(clusterv3.Cluster) }},
	{"endpoints", eds.Type, benchEndpoints, func() proto.Message { return new(endpointv3.ClusterLoadAssignment) }},
}

func benchCluster(i int) proto.Message {
	return &clusterv3.Cluster{
		Name: fmt.Sprintf("cluster-%06d", i), AltStatName: "1", ConnectTimeout: durationpb.New(time.Second),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{
			ServiceName: fmt.Sprintf("service-%06d", i),
			EdsConfig:   &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}},
		},
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
			MaxConnections: wrapperspb.UInt32(1024), MaxRequests: wrapperspb.UInt32(4096),
		}}},
	}
}

func benchEndpoints(i int) proto.Message {
	l := &endpointv3.LocalityLbEndpoints{
		Locality: &corev3.Locality{Region: "r", Zone: "z"}, LoadBalancingWeight: wrapperspb.UInt32(1),
	}
	for n := range 10 {
		l.LbEndpoints = append(l.LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: fmt.Sprintf("10.%d.%d.%d", n, i/250%250, i%250), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 8080},
			}}},
		}}})
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: fmt.Sprintf("cluster-%06d", i), Endpoints: []*endpointv3.LocalityLbEndpoints{l}}
}

func (l load) messages() []proto.Message {
	ms := make([]proto.Message, many)
	for i := range ms {
		ms[i] = l.make(i)
	}
	return ms
}

func benchClient(b *testing.B, server *testutil.Server, kept client.Store, validate bool) *client.Client {
	boot, err := bootstrap.Server(server.Target())
	if err != nil {
		b.Fatal(err)
	}
	c, err := client.New(client.Config{
		Bootstrap: boot, Store: kept, SkipValidation: !validate, GRPC: transport.GRPCConfig{DialOptions: server.DialOptions()},
	})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// watchAll waits until everything was told.
func watchAll(b *testing.B, c *client.Client, kind resource.AnyType) (told func()) {
	n, done := 0, make(chan struct{})
	_, err := c.WatchAll(context.Background(), kind, "*", func(batch client.Batch[any]) {
		for range batch.Changed() {
			n++
		}
		if n == many {
			close(done)
			n++
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	return func() { <-done }
}

// BenchmarkLoad is a load of 100,000 resources without a store, with an empty one, and with one that has
// them all from the process before, in turns, so that what else the machine does costs each the same.
// cpu-ms is what this process used, the server that sends and the save on Close included, and x-without is
// how much more that is.
func BenchmarkLoad(b *testing.B) {
	for _, l := range loads {
		b.Run(l.name, func(b *testing.B) {
			frame, err := proto.Marshal(testutil.SotW(l.kind.TypeURL(), "1", "n1", l.messages()...))
			if err != nil {
				b.Fatal(err)
			}
			dir := b.TempDir()
			kept := filepath.Join(dir, "again")
			loadOnce(b, l, frame, kept)
			used := map[string]time.Duration{}
			for i := 0; b.Loop(); i++ {
				used["without"] += loadOnce(b, l, frame, "")
				used["first"] += loadOnce(b, l, frame, filepath.Join(dir, fmt.Sprint(i)))
				used["again"] += loadOnce(b, l, frame, kept)
			}
			for with, d := range used {
				b.ReportMetric(float64(d.Milliseconds())/float64(b.N), "cpu-ms-"+with)
				if with != "without" {
					b.ReportMetric(float64(d)/float64(used["without"]), "x-without-"+with)
				}
			}
			b.ReportMetric(float64(len(frame))/(1<<20), "MiB")
		})
	}
}

// loadOnce is a load with a store in a directory, or without if that is "".
func loadOnce(b *testing.B, l load, frame []byte, dir string) time.Duration {
	server := testutil.NewServer()
	defer server.Close()
	var kept client.Store
	if dir != "" {
		d := store.Dir(dir, store.Options{})
		defer d.Close()
		kept = d
	}
	runtime.GC()
	before := cputime.Used()
	c := benchClient(b, server, kept, false)
	told := watchAll(b, c, l.kind)
	st, err := server.Accept(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if err := st.SendBytes(frame); err != nil {
		b.Fatal(err)
	}
	told()
	c.Close()
	return cputime.Used() - before
}

// BenchmarkStart is a start with 100,000 resources of the store and no server, until all were told, in
// turns with what proto.Unmarshal of them takes, whose messages are held too.
func BenchmarkStart(b *testing.B) {
	for _, l := range loads {
		var raws [][]byte
		dir := b.TempDir()
		server := testutil.NewServer()
		func() { // so that the messages are garbage
			ms := l.messages()
			for _, m := range ms {
				raw, err := proto.Marshal(m)
				if err != nil {
					b.Fatal(err)
				}
				raws = append(raws, raw)
			}
			frame, err := proto.Marshal(testutil.SotW(l.kind.TypeURL(), "1", "n1", ms...))
			if err != nil {
				b.Fatal(err)
			}
			d := store.Dir(dir, store.Options{})
			defer d.Close()
			c := benchClient(b, server, d, false)
			defer c.Close()
			told := watchAll(b, c, l.kind)
			st, err := server.Accept(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			if err := st.SendBytes(frame); err != nil {
				b.Fatal(err)
			}
			told()
		}()
		server.SetRefuse(true)
		server.DropConnections()
		for _, validate := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s,validate=%t", l.name, validate), func(b *testing.B) {
				var floor, start, floorCPU, startCPU time.Duration
				for b.Loop() {
					runtime.GC()
					at, used := time.Now(), cputime.Used()
					ms := make([]proto.Message, 0, many)
					for _, raw := range raws {
						m := l.none()
						if err := proto.Unmarshal(raw, m); err != nil {
							b.Fatal(err)
						}
						ms = append(ms, m)
					}
					floor, floorCPU = floor+time.Since(at), floorCPU+cputime.Used()-used
					runtime.KeepAlive(ms)
					ms = nil
					runtime.GC()
					at, used = time.Now(), cputime.Used()
					c := benchClient(b, server, store.Dir(dir, store.Options{}), validate)
					watchAll(b, c, l.kind)()
					start, startCPU = start+time.Since(at), startCPU+cputime.Used()-used
					c.Close()
				}
				n := float64(b.N)
				b.ReportMetric(float64(floor.Milliseconds())/n, "ms-unmarshal")
				b.ReportMetric(float64(start.Milliseconds())/n, "ms-start")
				b.ReportMetric(float64(start)/float64(floor), "x-unmarshal")
				b.ReportMetric(float64(startCPU)/float64(floorCPU), "x-cpu")
			})
		}
		server.Close()
	}
}
