package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/load"
)

// A cluster has no more requests at a time than its max_requests, also when its next version comes.
//
// spec: VIEW-66
func TestMaxRequests(t *testing.T) {
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	arrived, proceed := make(chan struct{}), make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			arrived <- struct{}{}
			<-proceed
		}
	}))
	defer backend.Close()
	at := viewtest.At(uint32(backend.Listener.Addr().(*net.TCPAddr).Port))
	push := func(version string) {
		a := viewtest.Cluster("a")
		a.AltStatName = version
		a.CircuitBreakers = &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{MaxRequests: wrapperspb.UInt32(1)}}}
		viewtest.Set(t, m, version, append(viewtest.Listener(t, `"*"`, `{match: {prefix: /}, route: {cluster: a}}`), a, viewtest.Assignment("a", at))...)
	}
	push("1")
	p, front := serve(t, viewtest.Client(t, m), nil)
	slow := make(chan int, 1)
	go func() { slow <- get(ctx, front, "/slow") }()
	<-arrived
	if status := get(ctx, front, "/"); status != http.StatusServiceUnavailable {
		t.Errorf("one request more: status %d", status)
	}
	push("2")
	for p.config.Load().sets["a"].from.Message.GetAltStatName() != "2" {
		if ctx.Err() != nil {
			t.Fatal("the second version did not come")
		}
		time.Sleep(time.Millisecond)
	}
	if status := get(ctx, front, "/"); status != http.StatusServiceUnavailable {
		t.Errorf("one request more of the next version: status %d", status)
	}
	close(proceed)
	if status := <-slow; status != http.StatusOK {
		t.Errorf("the first: status %d", status)
	}
	if status := get(ctx, front, "/"); status != http.StatusOK {
		t.Errorf("after it: status %d", status)
	}
}

// serve runs a proxy that is ready, until the test ends.
func serve(t *testing.T, c *client.Client, r *load.Reporter) (*proxy, *httptest.Server) {
	t.Helper()
	ctx := viewtest.Patience(t)
	p, err := newProxy(ctx, c, r, "listener")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.view.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	return p, front
}

func get(ctx context.Context, front *httptest.Server, path string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+path, nil)
	if err != nil {
		return 0
	}
	resp, err := front.Client().Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
