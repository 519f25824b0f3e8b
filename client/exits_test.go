package client_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// exits ends the goroutine of the first caller at one place, or panics, once it is armed.
type exits struct {
	place  string
	panics bool
	armed  atomic.Bool
}

func (e *exits) at(place string) {
	if place != e.place || !e.armed.CompareAndSwap(true, false) {
		return
	}
	if e.panics {
		panic("on purpose")
	}
	runtime.Goexit()
}

// Functions of the program that end their goroutine stop neither a stream nor its next attempt.
// spec: H-12
func TestConfigExits(t *testing.T) { testExits(t, false) }

// Nor do those that panic.
// spec: H-12
func TestConfigPanics(t *testing.T) { testExits(t, true) }

func testExits(t *testing.T, panics bool) {
	for _, place := range []string{"Node", "Backoff", "NextBackOff", "Build", "Open", "Send", "Recv", "Close", "Conn.Close"} {
		t.Run(place, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := testutil.NewServer(testutil.OnRequest(func(st *testutil.Stream, r *testutil.Request) {
					if r.Nonce() == "" {
						_ = st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n", cluster("a", ""))) // the stream may be over
					}
				}))
				e := &exits{place: place, panics: panics}
				r := newRig(t, srv, func(c *client.Config) {
					c.Node = func(n *corev3.Node) *corev3.Node { return e.node(n) }
					c.Backoff = func() backoff.BackOff { return e.policy() }
					c.Transport = exitingBuilder{transport.NewGRPC(c.GRPC), e}
				})
				e.armed.Store(true)
				srv.SetRefuse(true)
				_, rec := r.watch("a")
				time.Sleep(time.Minute)
				srv.SetRefuse(false)
				time.Sleep(time.Minute)
				r.c.Close()
				<-r.c.Done()
				synctest.Wait()
				if got := lines(rec.all()); !slices.Contains(got, "updated a 1") {
					t.Errorf("heard %q", got)
				}
				if e.armed.Load() {
					t.Error("the program's function was not called")
				}
				if strings.HasSuffix(place, "Close") && panics && !strings.Contains(r.log.text(), "the transport panicked while it closed") {
					t.Errorf("logged:\n%s", r.log.text())
				}
			})
		})
	}
}

func (e *exits) node(n *corev3.Node) *corev3.Node {
	e.at("Node")
	return n
}

func (e *exits) policy() backoff.BackOff {
	e.at("Backoff")
	return exitingPolicy{backoff.NewConstantBackOff(time.Second), e}
}

type exitingPolicy struct {
	backoff.BackOff
	*exits
}

func (p exitingPolicy) NextBackOff() time.Duration {
	p.at("NextBackOff")
	return p.BackOff.NextBackOff()
}

type exitingBuilder struct {
	transport.Builder
	*exits
}

func (b exitingBuilder) Build(s bootstrap.ManagementServer) (transport.Conn, error) {
	b.at("Build")
	conn, err := b.Builder.Build(s)
	return exitingConn{conn, b.exits}, err
}

type exitingConn struct {
	transport.Conn
	*exits
}

func (c exitingConn) Open(ctx context.Context, method string) (transport.Stream, error) {
	c.at("Open")
	s, err := c.Conn.Open(ctx, method)
	return exitingStream{s, c.exits}, err
}

func (c exitingConn) Close() error {
	defer c.at("Conn.Close")
	return c.Conn.Close()
}

type exitingStream struct {
	transport.Stream
	*exits
}

func (s exitingStream) Send(msg ...[]byte) error {
	s.at("Send")
	return s.Stream.Send(msg...)
}

func (s exitingStream) Recv() (transport.Frame, error) {
	s.at("Recv")
	return s.Stream.Recv()
}

func (s exitingStream) Close() {
	defer s.at("Close")
	s.Stream.Close()
}
