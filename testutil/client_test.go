package testutil

import (
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const clusterURL = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

type (
	sotwClient  = grpc.BidiStreamingClient[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]
	deltaClient = grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]
)

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// connect makes a plain-text client that is closed with the test.
func connect(t *testing.T, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	return connectTo(t, target, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))...)
}

func connectTo(t *testing.T, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient(target, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

func openSotW(t *testing.T, ctx context.Context, cc *grpc.ClientConn) sotwClient {
	t.Helper()
	st, err := discoveryv3.NewAggregatedDiscoveryServiceClient(cc).
		StreamAggregatedResources(ctx, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func openDelta(t *testing.T, ctx context.Context, cc *grpc.ClientConn) deltaClient {
	t.Helper()
	st, err := discoveryv3.NewAggregatedDiscoveryServiceClient(cc).
		DeltaAggregatedResources(ctx, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// awaitIdle waits until a client has left its connection because of a GOAWAY.
func awaitIdle(t *testing.T, ctx context.Context, cc *grpc.ClientConn) {
	t.Helper()
	for st := cc.GetState(); st != connectivity.Idle; st = cc.GetState() {
		if !cc.WaitForStateChange(ctx, st) {
			t.Fatalf("the client is %v, want Idle: %v", st, ctx.Err())
		}
	}
}

func accept(t *testing.T, ctx context.Context, s *Server) *Stream {
	t.Helper()
	st, err := s.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func next(t *testing.T, ctx context.Context, st *Stream) *Request {
	t.Helper()
	r, err := st.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func recv[T any](t *testing.T, st interface{ Recv() (*T, error) }) *T {
	t.Helper()
	m, err := st.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ended checks the error with which a client's stream ended; OK stands for io.EOF.
func ended(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if want == codes.OK {
		if !errors.Is(err, io.EOF) {
			t.Errorf("stream ended with %v, want io.EOF", err)
		}
		return
	}
	if got := status.Code(err); err == nil || got != want {
		t.Errorf("stream ended with %v, want code %v", err, want)
	}
}

func cluster(name string) *clusterv3.Cluster { return &clusterv3.Cluster{Name: name} }

func clusterRequest(names ...string) *discoveryv3.DiscoveryRequest {
	return &discoveryv3.DiscoveryRequest{TypeUrl: clusterURL, ResourceNames: names}
}

// noLeak checks that no goroutine runs code of a server that was closed. One that is done may
// take a moment to be gone.
func noLeak(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		left := stacks("testutil.(*Server)", "testutil.(*Stream)", "testutil.(*session)", "handover.(*Listener)")
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("goroutines left behind:\n%s", strings.Join(left, "\n\n"))
			return
		}
	}
}

// stacks are those of the goroutines that run code of any of the types.
func stacks(types ...string) (all []string) {
	buf := make([]byte, 1<<20)
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if slices.ContainsFunc(types, func(of string) bool { return strings.Contains(stack, of) }) {
			all = append(all, stack)
		}
	}
	return all
}
