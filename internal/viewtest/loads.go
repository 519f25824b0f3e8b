package viewtest

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/load"
)

// Loads takes load reports beside a management server. It asks for all clusters, each hour: what a
// test counts is in the last report, that of [load.Reporter.Close].
type Loads struct {
	asked chan struct{} // filled when a client knows that

	mu  sync.Mutex
	all map[string]Load
}

// Load is the sum of what was reported of a cluster.
type Load struct {
	Issued, Succeeded, Failed, Dropped uint64
	Localities                         string // their regions
	Metrics                            float64
}

// NewLoads is to be given to [Management].
func NewLoads() *Loads { return &Loads{asked: make(chan struct{}, 100), all: map[string]Load{}} }

// Option has a server serve it.
func (l *Loads) Option() grpc.ServerOption {
	return grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if info.FullMethod != load.Method {
			return next(srv, s)
		}
		if err := s.SendMsg(&lrsv3.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: durationpb.New(time.Hour)}); err != nil {
			return err
		}
		for {
			req := &lrsv3.LoadStatsRequest{}
			if s.RecvMsg(req) != nil {
				return nil // the client is done
			}
			for _, c := range req.GetClusterStats() {
				l.add(c)
			}
		}
	})
}

func (l *Loads) add(c *endpointv3.ClusterStats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := l.all[c.GetClusterName()]
	sum.Dropped += c.GetTotalDroppedRequests()
	for _, at := range c.GetUpstreamLocalityStats() {
		sum.Issued += at.GetTotalIssuedRequests()
		sum.Succeeded += at.GetTotalSuccessfulRequests()
		sum.Failed += at.GetTotalErrorRequests()
		sum.Localities += at.GetLocality().GetRegion()
		for _, m := range at.GetLoadMetricStats() {
			sum.Metrics += m.GetTotalMetricValue()
		}
	}
	l.all[c.GetClusterName()] = sum
}

// Of is what was reported of a cluster.
func (l *Loads) Of(cluster string) Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[cluster]
}

// Reporter makes a reporter that is closed by the test, at the latest at its end.
func (l *Loads) Reporter(t *testing.T, c *client.Client) *load.Reporter {
	r := load.New(c, load.Config{Logger: slog.New(asks{slog.DiscardHandler, l.asked}), CloseTimeout: 20 * time.Second})
	t.Cleanup(func() { r.Close() })
	return r
}

// Await waits until a client knows that the server wants reports. At least one cluster has to be in
// use that asks for them.
func (l *Loads) Await(t *testing.T) {
	t.Helper()
	select {
	case <-l.asked:
	case <-Patience(t).Done():
		t.Fatal("no stream of load reports")
	}
}

// asks is a logger that hears of it.
type asks struct {
	slog.Handler
	asked chan struct{}
}

func (asks) Enabled(context.Context, slog.Level) bool { return true }

func (a asks) WithAttrs([]slog.Attr) slog.Handler { return a }

func (a asks) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "the server asks for load reports") {
		a.asked <- struct{}{}
	}
	return nil
}

// Reported is a cluster that asks for reports.
func Reported(c *clusterv3.Cluster) *clusterv3.Cluster {
	c.LrsServer = &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Self{Self: &corev3.SelfConfigSource{}}}
	c.LrsReportEndpointMetrics = []string{"named_metrics.*"}
	return c
}
