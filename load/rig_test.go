package load_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/handover"
	"github.com/xdswatch/xdswatch/load"
	"github.com/xdswatch/xdswatch/transport"
)

const target = "passthrough:///lrs"

// rig is a reporter and a server of load reports that does what a test tells it, in a bubble.
type rig struct {
	t       *testing.T
	server  *lrsServer
	client  *client.Client
	r       *load.Reporter
	logged  *logBuffer
	network *handover.Listener
	send    *failing
}

type logBuffer struct {
	mu sync.Mutex
	strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Builder.Write(p)
}

func (b *logBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.String()
}

// lrsServer is over real gRPC, in memory.
type lrsServer struct {
	lrsv3.UnimplementedLoadReportingServiceServer
	streams chan *lrsStream
	mu      sync.Mutex
	conns   []net.Conn
}

// lrsStream is one stream of reports.
type lrsStream struct {
	gs       lrsv3.LoadReportingService_StreamLoadStatsServer
	requests chan *lrsv3.LoadStatsRequest
	end      chan error // ends the stream
	over     chan struct{}
}

func (s *lrsServer) StreamLoadStats(gs lrsv3.LoadReportingService_StreamLoadStatsServer) error {
	st := &lrsStream{gs: gs, requests: make(chan *lrsv3.LoadStatsRequest, 1000), end: make(chan error, 1), over: make(chan struct{})}
	defer close(st.over)
	s.streams <- st
	received := make(chan error, 1)
	go func() {
		for {
			req, err := gs.Recv()
			if err != nil {
				received <- err
				return
			}
			st.requests <- req
		}
	}()
	select {
	case err := <-st.end:
		return err
	case <-received:
		return nil // as a server does whose client is done
	}
}

func inBubble(t *testing.T, test func(*testing.T, *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		test(t, r)
	})
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, server: &lrsServer{streams: make(chan *lrsStream, 100)}, logged: &logBuffer{}, network: handover.Memory()}
	g := grpc.NewServer()
	lrsv3.RegisterLoadReportingServiceServer(g, r.server)
	go g.Serve(r.network)
	boot, err := bootstrap.Server(target)
	must(t, err)
	boot.Node = &corev3.Node{Id: "node-1"}
	r.send = &failing{Builder: transport.NewGRPC(transport.GRPCConfig{DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		conn, err := r.network.Dial(ctx)
		r.server.mu.Lock()
		defer r.server.mu.Unlock()
		r.server.conns = append(r.server.conns, conn)
		return conn, err
	})},
	})}
	r.client, err = client.New(client.Config{Bootstrap: boot, Transport: r.send})
	must(t, err)
	r.r = load.New(r.client, load.Config{Logger: slog.New(slog.NewTextHandler(r.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	t.Cleanup(func() {
		r.r.Close()
		r.client.Close()
		<-r.client.Done()
		g.Stop()
	})
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cut ends all connections.
func (r *rig) cut() {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	for _, c := range r.server.conns {
		if c != nil {
			c.Close()
		}
	}
	r.server.conns = nil
}

func (r *rig) cluster(name string) *load.Cluster {
	return r.r.Cluster(load.Target{Server: target, Cluster: name})
}

// accept waits for the next stream and takes its first request.
func (r *rig) accept() *lrsStream {
	r.t.Helper()
	st := <-r.server.streams
	first := <-st.requests
	if first.GetNode().GetId() != "node-1" || len(first.GetClusterStats()) > 0 {
		r.t.Errorf("the first request is %v, want the node alone", first)
	}
	return st
}

// none sees that there is no stream.
func (r *rig) none() {
	r.t.Helper()
	synctest.Wait()
	select {
	case <-r.server.streams:
		r.t.Error("there is a stream")
	default:
	}
}

// ask asks for reports of the clusters, or of all.
func (st *lrsStream) ask(t *testing.T, every time.Duration, clusters ...string) {
	t.Helper()
	must(t, st.gs.Send(&lrsv3.LoadStatsResponse{
		Clusters: clusters, SendAllClusters: len(clusters) == 0, LoadReportingInterval: durationpb.New(every),
	}))
	synctest.Wait()
}

// reports takes those that have come by now.
func (st *lrsStream) reports() (all []*endpointv3.ClusterStats) {
	synctest.Wait()
	for {
		select {
		case req := <-st.requests:
			all = append(all, req.GetClusterStats()...)
		default:
			return all
		}
	}
}

// after takes the reports of some time.
func (st *lrsStream) after(d time.Duration) []*endpointv3.ClusterStats {
	time.Sleep(d)
	return st.reports()
}

// names lists the clusters of reports with their intervals.
func names(all []*endpointv3.ClusterStats) (list []string) {
	for _, s := range all {
		list = append(list, s.GetClusterName()+" "+s.GetLoadReportInterval().AsDuration().String())
	}
	return list
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// sum adds up what reports say of finished requests.
func sum(all []*endpointv3.ClusterStats) (issued, finished uint64) {
	for _, s := range all {
		for _, l := range s.GetUpstreamLocalityStats() {
			issued += l.GetTotalIssuedRequests()
			finished += l.GetTotalSuccessfulRequests() + l.GetTotalErrorRequests()
		}
	}
	return issued, finished
}

var zoneA = &corev3.Locality{Region: "r", Zone: "a"}

func address(port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: "192.0.2.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

var errKilled = errors.New("killed")
