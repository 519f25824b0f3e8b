package statuspage_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/configdump"
	"github.com/xdswatch/xdswatch/csds"
	"github.com/xdswatch/xdswatch/internal/cputime"
	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// meshCluster is about what the control plane of a mesh sends for a service: limits, metadata, TLS by reference.
func meshCluster(tb testing.TB, i int) *clusterv3.Cluster {
	tb.Helper()
	host := fmt.Sprintf("service-%06d.prod.svc.cluster.local", i)
	ads := &corev3.ConfigSource{ResourceApiVersion: corev3.ApiVersion_V3, ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}
	most := wrapperspb.UInt32(1<<32 - 1)
	limits := func(p corev3.RoutingPriority) *clusterv3.CircuitBreakers_Thresholds {
		return &clusterv3.CircuitBreakers_Thresholds{Priority: p, MaxConnections: most, MaxPendingRequests: most, MaxRequests: most, MaxRetries: most, TrackRemaining: true}
	}
	metadata, err := structpb.NewStruct(map[string]any{"services": []any{map[string]any{"host": host, "name": host[:14], "namespace": "prod"}}})
	if err != nil {
		tb.Fatal(err)
	}
	tls, err := anypb.New(&tlsv3.UpstreamTlsContext{
		Sni: host,
		CommonTlsContext: &tlsv3.CommonTlsContext{
			AlpnProtocols:                  []string{"istio-peer-exchange", "istio", "h2"},
			TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{Name: "default", SdsConfig: ads}},
			ValidationContextType: &tlsv3.CommonTlsContext_ValidationContextSdsSecretConfig{
				ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: "spiffe://cluster.local/ns/prod/sa/" + host[:14], SdsConfig: ads},
			},
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return &clusterv3.Cluster{
		Name: fmt.Sprintf("outbound|8080||%s", host), ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads, ServiceName: host}, ConnectTimeout: durationpb.New(10 * time.Second),
		LbPolicy:        clusterv3.Cluster_LEAST_REQUEST,
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{limits(0), limits(1)}},
		OutlierDetection: &clusterv3.OutlierDetection{
			Consecutive_5Xx: wrapperspb.UInt32(5), Interval: durationpb.New(10 * time.Second), BaseEjectionTime: durationpb.New(30 * time.Second),
		},
		Metadata:        &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"istio": metadata}},
		TransportSocket: &corev3.TransportSocket{Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: tls}},
	}
}

// BenchmarkContents shows the contents of a hundred thousand clusters in each form, in turns with their decoding alone, so
// that what else the machine does costs each the same. cpu-ms is what this process used, and x-decode how much that is to
// decoding, which a form may take.
func BenchmarkContents(b *testing.B) {
	r := newRig(b)
	all := make([]proto.Message, 100_000)
	for i := range all {
		all[i] = meshCluster(b, i)
	}
	b.ReportMetric(float64(proto.Size(all[0])), "B-cluster")
	r.watchAll(cds.Type, all...)
	clear(all)
	states := r.c.Dump()
	service := csds.New(csds.Config{}, r.c)
	forms := []struct {
		name string
		show func()
	}{
		{"decode", func() {
			for i := range states {
				var m clusterv3.Cluster
				r.must(proto.Unmarshal(states[i].Raw, &m))
			}
		}},
		{"csds", func() {
			_, err := service.FetchClientStatus(b.Context(), &statusv3.ClientStatusRequest{})
			r.must(err)
		}},
		{"config_dump", func() { r.must(configdump.Write(io.Discard, configdump.Options{}, configdump.Of(r.c))) }},
		{"json", func() {
			r.pages.ServeHTTP(&discard{head: http.Header{}}, httptest.NewRequest(http.MethodGet, "/debug/resources?format=json&contents=true", nil))
		}},
	}
	used, grown := make([]time.Duration, len(forms)), make([]uint64, len(forms))
	for b.Loop() {
		for i, form := range forms {
			grew := heapsize.Watch()
			before := cputime.Used()
			form.show()
			used[i] += cputime.Used() - before
			grown[i] = max(grown[i], grew())
		}
	}
	for i, form := range forms {
		b.ReportMetric(float64(used[i].Milliseconds())/float64(b.N), "cpu-ms-"+form.name)
		b.ReportMetric(float64(used[i])/float64(used[0]), "x-decode-"+form.name)
		b.ReportMetric(float64(grown[i])/(1<<20), "heap-MiB-"+form.name)
	}
}
