package transport_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/transport"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
)

// farewell listens until the end of the test, counts connections, and on each says
// SETTINGS, what the test writes, and after that no more.
type farewell struct {
	addr  string
	conns atomic.Int32
}

func serveFarewell(t *testing.T, write func(*http2.Framer) error) *farewell {
	l := listen(t, "127.0.0.1:0")
	s := &farewell{addr: l.Addr().String()}
	var work sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		work.Wait()
	})
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			work.Go(func() {
				defer c.Close()
				if _, err := io.CopyN(io.Discard, c, int64(len(http2.ClientPreface))); err != nil {
					return
				}
				f := http2.NewFramer(c, nil)
				if f.WriteSettings() != nil || write(f) != nil {
					return
				}
				_ = c.(*net.TCPConn).CloseWrite() // an orderly end, which loses nothing that was said
				_, _ = io.Copy(io.Discard, c)
			})
		}
	})
	return s
}

func goAway(code http2.ErrCode) func(*http2.Framer) error {
	return func(f *http2.Framer) error { return f.WriteGoAway(0, code, nil) }
}

// gRPC itself tries again, without a pause and without end, while connections end before
// their first stream.
// spec: STREAM-8
func TestEachAttemptDialsOnce(t *testing.T) {
	for name, write := range map[string]func(*http2.Framer) error{
		"closed":       func(*http2.Framer) error { return nil },
		"drained":      goAway(http2.ErrCodeNo),
		"enhance calm": goAway(http2.ErrCodeEnhanceYourCalm),
	} {
		t.Run(name, func(t *testing.T) {
			srv := serveFarewell(t, write)
			c := build(t, transport.GRPCConfig{}, insecure(srv.addr))
			for i := range int32(20) {
				s, err := c.Open(testContext(t), transport.MethodADS)
				if err == nil { // it was faster than the end of the connection
					_, err = s.Recv()
					s.Close()
					if status.Code(err) != codes.Unavailable {
						t.Errorf("end of the stream: %v", err)
					}
				} else {
					wantConnectError(t, err, srv.addr, codes.Unavailable, "the server closed the connection, or sent GOAWAY, before a stream began")
				}
				if n := srv.conns.Load(); n > i+1 {
					t.Fatalf("%d connections after %d attempts", n, i+1)
				}
			}
			// The server may come to accept a connection after its attempt has ended, and an attempt may begin
			// on a connection of whose end gRPC has not heard yet.
			if n := srv.conns.Load(); n < 10 {
				t.Errorf("%d connections after 20 attempts", n)
			}
		})
	}
}

// Of several addresses each has its turn within an attempt.
func TestNextAddressAfterGoAway(t *testing.T) {
	first, second := serveFarewell(t, goAway(http2.ErrCodeNo)), serveFarewell(t, goAway(http2.ErrCodeNo))
	names := manual.NewBuilderWithScheme("names")
	names.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: first.addr}, {Addr: second.addr}, {Addr: serveTCP(t, echo).addr}}})
	c := build(t, transport.GRPCConfig{DialOptions: []grpc.DialOption{grpc.WithResolvers(names)}}, insecure("names:///xds"))
	wantEcho(t, open(t, c), "1")
	wantEcho(t, open(t, c), "2")
	if a, b := first.conns.Load(), second.conns.Load(); a != 1 || b != 1 {
		t.Errorf("%d and %d connections to servers that go away, want 1 each", a, b)
	}
}

// Streams that share a channel find a connection again after each loss, together.
func TestSharedChannelReconnects(t *testing.T) {
	p := newProxy(t, serveTCP(t, echo).addr)
	c := build(t, transport.GRPCConfig{}, insecure(p.Addr()))
	for range 10 {
		var work sync.WaitGroup
		for range 4 {
			work.Go(func() {
				s, err := c.Open(testContext(t), transport.MethodADS)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				if got, err := exchange(s, "hello"); err != nil || got != "hello" {
					t.Errorf("received %q, %v", got, err)
				}
			})
		}
		work.Wait()
		s := open(t, c)
		wantEcho(t, s, "once more")
		p.Reset()
		if _, err := s.Recv(); status.Code(err) != codes.Unavailable {
			t.Fatalf("end of a stream that was cut: %v", err)
		}
	}
}

// The environment names a proxy; only a program that wants gRPC's own dialer asks it. Go
// reads it once a process, so that each case is a process of its own.
func TestProxyOfTheEnvironment(t *testing.T) {
	if mode := os.Getenv("TEST_PROXY_OF_THE_ENVIRONMENT"); mode != "" {
		config := transport.GRPCConfig{ConnectTimeout: time.Second}
		if mode == "asked" {
			config.DialOptions = []grpc.DialOption{grpc.WithContextDialer(nil)}
		}
		c := build(t, config, insecure("192.0.2.1:443")) // of a net that is for documentation
		if s, err := c.Open(testContext(t), transport.MethodADS); err == nil {
			s.Close()
			t.Error("a stream")
		}
		return
	}
	for _, tt := range []struct {
		mode string
		want bool
	}{{"unasked", false}, {"asked", true}} {
		t.Run(tt.mode, func(t *testing.T) {
			proxy := serveFarewell(t, goAway(http2.ErrCodeNo))
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$")
			cmd.Env = append(os.Environ(), "TEST_PROXY_OF_THE_ENVIRONMENT="+tt.mode, "HTTPS_PROXY=http://"+proxy.addr, "NO_PROXY=")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if asked := proxy.conns.Load() > 0; asked != tt.want {
				t.Errorf("the proxy was asked: %v, want %v", asked, tt.want)
			}
		})
	}
}
