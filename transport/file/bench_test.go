package file

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/testutil"
)

// many clusters of a usual size, of which the seventh is in a state.
func many(n int, state string) *discoveryv3.DiscoveryResponse {
	r := &discoveryv3.DiscoveryResponse{VersionInfo: state, TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster"}
	for i := range n {
		c := &clusterv3.Cluster{
			Name: fmt.Sprintf("cluster-%d", i), ConnectTimeout: durationpb.New(time.Second),
			ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{
				ServiceName: fmt.Sprintf("outbound|%d||service.ns.svc.cluster.local", i),
				EdsConfig:   &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}},
			},
			LbPolicy: clusterv3.Cluster_LEAST_REQUEST,
		}
		if i == 7 {
			c.AltStatName = state
		}
		a, err := anypb.New(c)
		if err != nil {
			panic(err) // a message that can be made can be packed
		}
		r.Resources = append(r.Resources, a)
	}
	return r
}

// BenchmarkReload makes content of a file of 10,000 clusters: for the first time, and when
// one of them changed since.
func BenchmarkReload(b *testing.B) {
	const n = 10_000
	for _, suffix := range []string{".pb", ".pb_text", ".json", ".yaml"} {
		path := "cds" + suffix
		first, err := testutil.EncodeFile(path, many(n, "one"))
		must(b, err)
		second, err := testutil.EncodeFile(path, many(n, "two"))
		must(b, err)
		config := Config{}.withDefaults()
		old, err := parse(context.Background(), path, first, sha256.Sum256(first), nil, config)
		must(b, err)
		for name, was := range map[string]*content{"first": nil, "change": old} {
			b.Run(suffix[1:]+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(second)))
				for b.Loop() {
					if _, err := parse(context.Background(), path, second, sha256.Sum256(second), was, config); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/resource")
			})
		}
	}
}

// BenchmarkRecheck looks at a file of 10,000 clusters that did not change.
func BenchmarkRecheck(b *testing.B) {
	path := b.TempDir() + "/cds.pb"
	data, err := testutil.EncodeFile(path, many(10_000, "one"))
	must(b, err)
	must(b, testutil.PlaceFile(path, data))
	s := source{ctx: b.Context(), path: path, config: Config{Settle: -1}.withDefaults()}
	s.check(time.Now())
	must(b, s.fault)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		s.check(time.Now())
	}
	if s.contents != 1 {
		b.Fatalf("content changed %d times", s.contents)
	}
}
