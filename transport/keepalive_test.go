package transport_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/handover"
	"github.com/xdswatch/xdswatch/transport"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// mutedConn loses what is written to it while it is muted.
type mutedConn struct {
	net.Conn
	muted *atomic.Bool
}

func (c mutedConn) Write(b []byte) (int, error) {
	if c.muted.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// muteable serves in memory over connections whose client can be muted.
func muteable(t *testing.T) (dialer grpc.DialOption, muted *atomic.Bool) {
	l := handover.Memory()
	serve(t, l, echo)
	muted = new(atomic.Bool)
	return grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		c, err := l.Dial(ctx)
		return mutedConn{c, muted}, err
	}), muted
}

// spec: STREAM-7
func TestKeepalive(t *testing.T) {
	tests := []struct {
		name   string
		config transport.GRPCConfig
		want   time.Duration
	}{
		{"by default", transport.GRPCConfig{}, 5*time.Minute + 20*time.Second},
		{"as configured", transport.GRPCConfig{KeepaliveTime: time.Minute, KeepaliveTimeout: 5 * time.Second}, 65 * time.Second},
		{"not below gRPC's floor", transport.GRPCConfig{KeepaliveTime: time.Second}, 30 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dialer, muted := muteable(t)
				tt.config.DialOptions = []grpc.DialOption{dialer}
				s, err := build(t, tt.config, insecure("passthrough:///memory")).Open(t.Context(), transport.MethodADS)
				if err != nil {
					t.Fatal(err)
				}
				wantEcho(t, s, "alive")
				muted.Store(true)
				start := time.Now()
				if _, err := s.Recv(); status.Code(err) != codes.Unavailable {
					t.Errorf("end: %v, want Unavailable", err)
				}
				if d := time.Since(start); d != tt.want {
					t.Errorf("found after %v, want %v", d, tt.want)
				}
			})
		})
	}
}

// The keepalive that the bootstrap has for a server finds a dead connection, where the program
// does not say otherwise.
//
// spec: E-1
func TestKeepaliveOfServer(t *testing.T) {
	for config, want := range map[*transport.GRPCConfig]time.Duration{
		{}: 35 * time.Second, {KeepaliveTime: time.Minute}: 65 * time.Second, {KeepaliveTimeout: 10 * time.Second}: 40 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			dialer, muted := muteable(t)
			config.DialOptions = []grpc.DialOption{dialer}
			server := insecure("passthrough:///memory")
			server.Carrier = &bootstrap.GRPC{KeepaliveTime: 30 * time.Second, KeepaliveTimeout: 5 * time.Second}
			s, err := build(t, *config, server).Open(t.Context(), transport.MethodADS)
			if err != nil {
				t.Fatal(err)
			}
			wantEcho(t, s, "alive")
			muted.Store(true)
			start := time.Now()
			if _, err := s.Recv(); status.Code(err) != codes.Unavailable {
				t.Errorf("end: %v, want Unavailable", err)
			}
			if d := time.Since(start); d != want {
				t.Errorf("found after %v, want %v", d, want)
			}
		})
	}
}

func TestKeepaliveOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialer, muted := muteable(t)
		c := build(t, transport.GRPCConfig{KeepaliveTime: -1, DialOptions: []grpc.DialOption{dialer}}, insecure("passthrough:///memory"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s, err := c.Open(ctx, transport.MethodADS)
		if err != nil {
			t.Fatal(err)
		}
		wantEcho(t, s, "alive")
		muted.Store(true)
		if _, err := s.Recv(); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("end: %v, want that of the context", err)
		}
	})
}

// The same over a real connection that went silent. gRPC asks for no sign of life more
// often than every 10 s, so the test takes some 11 s.
// spec: S-8
func TestKeepaliveFindsASilentPeer(t *testing.T) {
	if testing.Short() {
		t.Skip("long: gRPC pings no sooner than after ten seconds")
	}
	t.Parallel()
	srv := serveTCP(t, echo, grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second}))
	p := newProxy(t, srv.addr)
	c := build(t, transport.GRPCConfig{KeepaliveTime: 10 * time.Second, KeepaliveTimeout: time.Second}, insecure(p.Addr()))
	s := open(t, c)
	wantEcho(t, s, "alive")
	p.Blackhole(true)
	if _, err := s.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("end: %v, want Unavailable", err)
	}
	p.Blackhole(false)
	wantEcho(t, open(t, c), "over a new connection")
}
