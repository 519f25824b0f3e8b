//go:build unix

package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
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

// cpu is what this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
// them all from the process before. cpu-ms/op is what this process used, the server that sends and the
// save on Close included.
func BenchmarkLoad(b *testing.B) {
	for _, l := range loads {
		frame, err := proto.Marshal(testutil.SotW(l.kind.TypeURL(), "1", "n1", l.messages()...))
		if err != nil {
			b.Fatal(err)
		}
		for _, with := range []string{"without", "first", "again"} {
			b.Run(l.name+"/"+with, func(b *testing.B) {
				dir := b.TempDir()
				used := time.Duration(0)
				for i := 0; b.Loop(); i++ {
					server := testutil.NewServer()
					var kept client.Store
					var d *store.Directory
					if with != "without" {
						d = store.Dir(filepath.Join(dir, fmt.Sprint(i)), store.Options{})
						if with == "again" {
							d = store.Dir(dir, store.Options{})
						}
						kept = d
					}
					before := cpu(b)
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
					if i > 0 || with != "again" {
						used += cpu(b) - before
					}
					if d != nil {
						d.Close()
					}
					server.Close()
				}
				n := b.N
				if with == "again" {
					n = max(1, n-1)
				}
				b.ReportMetric(float64(used.Milliseconds())/float64(n), "cpu-ms/op")
				b.ReportMetric(float64(len(frame))/(1<<20), "MiB")
			})
		}
	}
}

// BenchmarkStart is a start with 100,000 resources of the store and no server, until all were told,
// beside what proto.Unmarshal of them takes.
func BenchmarkStart(b *testing.B) {
	for _, l := range loads {
		ms := l.messages()
		dir := b.TempDir()
		server := testutil.NewServer()
		d := store.Dir(dir, store.Options{})
		c := benchClient(b, server, d, false)
		told := watchAll(b, c, l.kind)
		st, err := server.Accept(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := st.Send(testutil.SotW(l.kind.TypeURL(), "1", "n1", ms...)); err != nil {
			b.Fatal(err)
		}
		told()
		c.Close()
		d.Close()
		server.SetRefuse(true)
		server.DropConnections()
		b.Run(l.name+"/unmarshal", func(b *testing.B) {
			var raws [][]byte
			for _, m := range ms {
				raw, err := proto.Marshal(m)
				if err != nil {
					b.Fatal(err)
				}
				raws = append(raws, raw)
			}
			for b.Loop() {
				for _, raw := range raws {
					if err := proto.Unmarshal(raw, l.none()); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		for _, validate := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/start,validate=%t", l.name, validate), func(b *testing.B) {
				for b.Loop() {
					c := benchClient(b, server, store.Dir(dir, store.Options{}), validate)
					watchAll(b, c, l.kind)()
					b.StopTimer()
					c.Close()
					b.StartTimer()
				}
			})
		}
		server.Close()
	}
}
