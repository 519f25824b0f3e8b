package transport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/internal/handover"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
)

func newProxy(t testing.TB, target string) *testutil.TCPProxy {
	t.Helper()
	p, err := testutil.NewTCPProxy(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// wantConnectError checks that err says which server gave no stream and why.
func wantConnectError(t testing.TB, err error, server string, code codes.Code, text string) {
	t.Helper()
	var ce *transport.ConnectError
	if !errors.As(err, &ce) || ce.Server != server || status.Code(err) != code || !strings.Contains(err.Error(), text) {
		t.Fatalf("error %v, want one from %s with %v and %q", err, server, code, text)
	}
}

// gRPC's own backoff starts at a second: had it a say, many attempts at a server that is
// away would take minutes, and the one after its return would fail with an old error.
// spec: STREAM-8
func TestEachOpenDialsAnew(t *testing.T) {
	srv := serveTCP(t, echo)
	p := newProxy(t, srv.addr)
	c := build(t, transport.GRPCConfig{}, insecure(p.Addr()))
	start := time.Now()
	for range 5 {
		if err := p.Refuse(true); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			_, err := c.Open(testContext(t), transport.MethodADS)
			wantConnectError(t, err, p.Addr(), codes.Unavailable, "connection refused")
		}
		if err := p.Refuse(false); err != nil {
			t.Fatal(err)
		}
		s := open(t, c)
		wantEcho(t, s, "back")
		p.Reset()
		if _, err := s.Recv(); status.Code(err) != codes.Unavailable {
			t.Fatalf("end of a stream that was cut: %v", err)
		}
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestStreamsShareAConnection(t *testing.T) {
	p := newProxy(t, serveTCP(t, echo).addr)
	c := build(t, transport.GRPCConfig{}, insecure(p.Addr()))
	if n := p.Connections(); n != 0 {
		t.Fatalf("%d connections before the first stream", n)
	}
	first := open(t, c)
	wantEcho(t, first, "1")
	second := open(t, c)
	wantEcho(t, second, "2")
	first.Close()
	wantEcho(t, second, "still")
	second.Close()
	wantEcho(t, open(t, c), "3")
	if n := p.Connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// A server that drains says that it takes no new streams, and those that it has live on,
// whether or not others find a connection meanwhile.
func TestDrainingStreamsOutliveFailedAttempts(t *testing.T) {
	srv := serveTCP(t, echo)
	p := newProxy(t, srv.addr)
	c := build(t, transport.GRPCConfig{}, insecure(p.Addr()))
	old := open(t, c)
	wantEcho(t, old, "before")
	if err := p.Refuse(true); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(srv.GracefulStop)
	defer old.Close()
	for { // until the client has heard of it
		s, err := c.Open(testContext(t), transport.MethodADS)
		if err != nil {
			wantConnectError(t, err, p.Addr(), codes.Unavailable, "")
			break
		}
		s.Close()
	}
	wantEcho(t, old, "meanwhile")
	p.SetTarget(serveTCP(t, echo).addr)
	if err := p.Refuse(false); err != nil {
		t.Fatal(err)
	}
	wantEcho(t, open(t, c), "the new server")
	wantEcho(t, old, "after")
}

func TestConnectTimeout(t *testing.T) {
	if testing.Short() {
		t.Skip("long: waits for a second")
	}
	p := newProxy(t, "127.0.0.1:0")
	p.Blackhole(true)
	c := build(t, transport.GRPCConfig{ConnectTimeout: time.Second}, insecure(p.Addr()))
	_, err := c.Open(testContext(t), transport.MethodADS)
	wantConnectError(t, err, p.Addr(), codes.Unavailable, "no connection within 1s: ")
}

// A dialer that heeds no deadline is bounded by the attempt as a whole.
func TestOpenIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		c := build(t, transport.GRPCConfig{
			DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
				<-release
				return nil, errors.New("too late")
			})},
		}, insecure("passthrough:///stuck"))
		start := time.Now()
		_, err := c.Open(t.Context(), transport.MethodADS)
		wantConnectError(t, err, "passthrough:///stuck", codes.DeadlineExceeded, "no stream within 40s; the channel is CONNECTING")
		if d := time.Since(start); d != 40*time.Second {
			t.Errorf("took %v, want 40s", d)
		}
	})
}

func TestOpenEndsWithItsContext(t *testing.T) {
	p := newProxy(t, "127.0.0.1:0")
	p.Blackhole(true)
	c := build(t, transport.GRPCConfig{}, insecure(p.Addr()))
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
	for range 2 { // at first while it dials, then before
		if _, err := c.Open(ctx, transport.MethodADS); !errors.Is(err, cause) {
			t.Errorf("error %v, want %v", err, cause)
		}
	}
	p.Blackhole(false)
	p.SetTarget(serveTCP(t, echo).addr)
	wantEcho(t, open(t, c), "another attempt is not held up")
}

func TestStreamEndsWithItsContext(t *testing.T) {
	c := build(t, transport.GRPCConfig{}, insecure(serveTCP(t, echo).addr))
	ctx, cancel := context.WithCancel(t.Context())
	s, err := c.Open(ctx, transport.MethodADS)
	if err != nil {
		t.Fatal(err)
	}
	wantEcho(t, s, "alive")
	cancel()
	if _, err := s.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("end: %v", err)
	}
}

// deaf reads nothing, so that flow control stops the client.
func deaf(s grpc.ServerStream) error {
	<-s.Context().Done()
	return nil
}

func TestCloseUnblocks(t *testing.T) {
	for _, tt := range []struct {
		name  string
		close func(transport.Conn, transport.Stream)
	}{
		{"stream", func(_ transport.Conn, s transport.Stream) { s.Close(); s.Close() }},
		{"connection", func(c transport.Conn, _ transport.Stream) { c.Close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := build(t, transport.GRPCConfig{}, insecure(serveTCP(t, deaf).addr))
			s := open(t, c)
			var wg sync.WaitGroup
			sent := make(chan int, 1<<10)
			wg.Go(func() {
				defer close(sent)
				for i := 0; ; i++ {
					if err := s.Send(make([]byte, 1<<20)); err != nil {
						return
					}
					sent <- i
				}
			})
			wg.Go(func() {
				if _, err := s.Recv(); err == nil || err == io.EOF {
					t.Errorf("end: %v, want an error", err)
				}
			})
			<-sent
			tt.close(c, s)
			wg.Wait()
			if err := s.Send([]byte("late")); err == nil {
				t.Error("sent on a stream that was closed")
			}
		})
	}
}

func TestClosedConn(t *testing.T) {
	c := build(t, transport.GRPCConfig{}, insecure(serveTCP(t, echo).addr))
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Open(t.Context(), transport.MethodADS); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("open: %v, want %v", err, transport.ErrClosed)
	}
}

func TestCloseUnblocksOpen(t *testing.T) {
	p := newProxy(t, "127.0.0.1:0")
	p.Blackhole(true)
	c := build(t, transport.GRPCConfig{}, insecure(p.Addr()))
	time.AfterFunc(20*time.Millisecond, func() { c.Close() })
	if _, err := c.Open(testContext(t), transport.MethodADS); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("open: %v, want %v", err, transport.ErrClosed)
	}
}

// The bubble fails if a goroutine is left when it ends.
func TestNothingIsLeftAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := handover.Memory()
		serve(t, l, echo)
		refuse := false
		c, err := transport.NewGRPC(transport.GRPCConfig{
			DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				if refuse {
					return nil, errors.New("refused")
				}
				return l.Dial(ctx)
			})},
		}).Build(insecure("passthrough:///memory"))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // streams that nobody reads, closes or waits for
			s, err := c.Open(t.Context(), transport.MethodADS)
			if err != nil {
				t.Fatal(err)
			}
			wantEcho(t, s, "hello")
		}
		refuse = true
		start := time.Now()
		other, err := transport.NewGRPC(transport.GRPCConfig{}).Build(insecure("passthrough:///unused"))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := c.Open(t.Context(), transport.MethodADS); err != nil {
				t.Errorf("the connection was not reused: %v", err)
			}
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("waited %v", d)
		}
		if err := errors.Join(c.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	})
}

// Failures pass without a wait and leave nothing behind, not even while the connection
// stays open: a channel that was forgotten would go on dialling.
func TestFailedAttemptsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const attempts = 20
		var dials atomic.Int32
		c := build(t, transport.GRPCConfig{
			DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
				dials.Add(1)
				return nil, errors.New("nobody there")
			})},
		}, insecure("passthrough:///nobody"))
		start := time.Now()
		for range attempts {
			_, err := c.Open(t.Context(), transport.MethodADS)
			wantConnectError(t, err, "passthrough:///nobody", codes.Unavailable, "nobody there")
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("waited %v, want no backoff", d)
		}
		time.Sleep(time.Hour)
		if n := dials.Load(); n != attempts {
			t.Errorf("%d dials, want one for each of %d attempts", n, attempts)
		}
	})
}

// A channel may fail to connect without an attempt of ours, as when its name resolves to
// other addresses. The next attempt dials all the same.
func TestStaleFailureIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := handover.Memory()
		serve(t, l, echo)
		var refuse atomic.Bool
		names := manual.NewBuilderWithScheme("names")
		names.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: "old"}}})
		c := build(t, transport.GRPCConfig{DialOptions: []grpc.DialOption{
			grpc.WithResolvers(names),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				if refuse.Load() {
					return nil, errors.New("refused")
				}
				return l.Dial(ctx)
			}),
		}}, insecure("names:///xds"))
		s, err := c.Open(t.Context(), transport.MethodADS)
		if err != nil {
			t.Fatal(err)
		}
		wantEcho(t, s, "old")

		refuse.Store(true)
		names.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: "new"}}})
		names.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: "new"}}})
		synctest.Wait()
		refuse.Store(false)
		fresh, err := c.Open(t.Context(), transport.MethodADS)
		if err != nil {
			t.Fatal(err)
		}
		wantEcho(t, fresh, "new")
		wantEcho(t, s, "old still")
	})
}

func TestConcurrentUse(t *testing.T) {
	p := newProxy(t, serveTCP(t, echo).addr)
	c := build(t, transport.GRPCConfig{}, insecure(p.Addr()))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				s, err := c.Open(t.Context(), transport.MethodADS)
				if err != nil {
					continue
				}
				if got, err := exchange(s, "x"); err == nil && got != "x" {
					t.Errorf("received %q", got)
				}
				s.Close()
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			p.Reset()
		}
	})
	wg.Wait()
	wantEcho(t, open(t, c), "after all that")
}
