package testutil

import (
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

func eager() grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: time.Millisecond, Multiplier: 1, MaxDelay: time.Millisecond},
		MinConnectTimeout: 20 * time.Second,
	})
}

func TestStopReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := StartServer(t)
		client := openSotW(t, t.Context(), connect(t, s.Target(), s.DialOptions()...))
		st := accept(t, t.Context(), s)
		st.StopReading()
		st.StopReading()

		const total = 64
		sent := make(chan struct{}, total)
		go func() {
			for range total {
				if client.Send(clusterRequest(strings.Repeat("x", 16<<10))) == nil {
					sent <- struct{}{}
				}
			}
		}()
		synctest.Wait()
		if n := len(sent); n == 0 || n > 16 {
			t.Errorf("%d requests of 16 KiB were sent to a server that does not read", n)
		}
		if n := len(s.Requests()); n != 0 {
			t.Errorf("%d requests were recorded while reading was stopped", n)
		}
		st.ResumeReading()
		st.ResumeReading()
		synctest.Wait()
		if sent, got := len(sent), len(st.Requests()); sent != total || got != total {
			t.Errorf("%d requests were sent and %d received, want %d", sent, got, total)
		}
	})
}

func TestStopReadingOfAStreamThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer()
		cc := connect(t, s.Target(), s.DialOptions()...)
		openSotW(t, t.Context(), cc)
		st := accept(t, t.Context(), s)
		st.StopReading()
		cc.Close()
		<-st.Done()
		s.Close()
	})
}

// A client that does not read blocks Send, and whatever ends the stream frees it.
func TestSendBlocks(t *testing.T) {
	for name, end := range map[string]func(*Server, *Stream){
		"end":   func(_ *Server, st *Stream) { st.End(nil) },
		"drop":  func(s *Server, _ *Stream) { s.DropConnections() },
		"close": func(s *Server, _ *Stream) { s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := StartServer(t)
				openSotW(t, t.Context(), connect(t, s.Target(), s.DialOptions()...))
				st := accept(t, t.Context(), s)
				errs := make(chan error, 2)
				for range 2 {
					go func() {
						var err error
						for err == nil {
							err = st.SendBytes(make([]byte, 64<<10))
						}
						errs <- err
					}()
				}
				synctest.Wait()
				if len(errs) != 0 {
					t.Fatalf("send: %v", <-errs)
				}
				end(s, st)
				<-errs
				<-errs
			})
		})
	}
}

func TestRefuse(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Server) {
		ctx := testContext(t)
		s.SetRefuse(true)
		cc := connect(t, s.Target(), append(s.DialOptions(), eager())...)
		ads := discoveryv3.NewAggregatedDiscoveryServiceClient(cc)
		if _, err := ads.StreamAggregatedResources(ctx); status.Code(err) != codes.Unavailable {
			t.Errorf("open a stream: %v, want Unavailable", err)
		}
		s.SetRefuse(false)
		openSotW(t, ctx, cc)
		if st := accept(t, ctx, s); st.ID != 1 {
			t.Errorf("stream %d came after the refusal, want 1", st.ID)
		}
	})
}

func TestHoldDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := StartServer(t)
		s.SetHoldDial(true)
		s.SetHoldDial(true)
		cc := connect(t, s.Target(), s.DialOptions()...)
		start := time.Now()
		time.AfterFunc(7*time.Second, func() { s.SetHoldDial(false) })
		openSotW(t, t.Context(), cc)
		accept(t, t.Context(), s)
		if waited := time.Since(start); waited != 7*time.Second {
			t.Errorf("the stream stood after %v, want 7s", waited)
		}
		s.SetHoldDial(false)
	})
}

// A dial on hold times out as one to a host that is silent.
func TestHoldDialTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := StartServer(t)
		s.SetHoldDial(true)
		cc := connect(t, s.Target(), s.DialOptions()...)
		start := time.Now()
		cc.Connect()
		for st := cc.GetState(); st != connectivity.TransientFailure; st = cc.GetState() {
			if !cc.WaitForStateChange(t.Context(), st) {
				t.Fatal("the test ended")
			}
		}
		if waited := time.Since(start); waited != 20*time.Second {
			t.Errorf("the dial failed after %v, want 20s", waited)
		}
	})
}

func TestHoldDialOverTCP(t *testing.T) {
	ctx := testContext(t)
	s, err := ListenServer("127.0.0.1:0")
	must(t, err)
	s.SetHoldDial(true)
	cc := connect(t, s.Target(), eager())
	cc.Connect()
	for !s.holds(1) {
		runtime.Gosched()
	}
	if st := cc.GetState(); st != connectivity.Connecting {
		t.Errorf("client is %v, want Connecting", st)
	}
	s.SetHoldDial(false)
	openSotW(t, ctx, cc)
	accept(t, ctx, s)

	s.SetHoldDial(true)
	late, err := net.Dial("tcp", s.Target())
	must(t, err)
	defer late.Close()
	s.Close()
	noLeak(t)
}

// holds says whether n connections stand.
func (s *Server) holds(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns) == n
}

func TestDropConnections(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Server) {
		ctx := testContext(t)
		cc := connect(t, s.Target(), append(s.DialOptions(), eager())...)
		client := openSotW(t, ctx, cc)
		st := accept(t, ctx, s)
		must(t, st.Send(SotW(clusterURL, "1", "n")))
		recv(t, client)
		s.DropConnections()
		_, err := client.Recv()
		ended(t, err, codes.Unavailable)
		<-st.Done()
		if st.Err() == nil {
			t.Error("a stream whose connection was cut has no error")
		}
		again := openSotW(t, ctx, cc)
		must(t, again.Send(clusterRequest("a")))
		if r := next(t, ctx, accept(t, ctx, s)); r.Stream != 2 {
			t.Errorf("request came on stream %d, want 2", r.Stream)
		}
	})
}

func TestGoAway(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Server) {
		ctx := testContext(t)
		cc := connect(t, s.Target(), append(s.DialOptions(), eager())...)
		old := openSotW(t, ctx, cc)
		first := accept(t, ctx, s)
		s.GoAway()
		awaitIdle(t, ctx, cc)
		openSotW(t, ctx, cc)
		second := accept(t, ctx, s)
		if !s.holds(2) {
			t.Error("the new stream has no connection of its own")
		}
		must(t, first.Send(SotW(clusterURL, "1", "n")))
		recv(t, old)
		first.End(nil)
		_, err := old.Recv()
		ended(t, err, codes.OK)
		must(t, second.Send(SotW(clusterURL, "1", "n")))
	})
}

func TestGoAwayInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := StartServer(t)
		cc := connect(t, s.Target(), s.DialOptions()...)
		for range 3 {
			old := openSotW(t, t.Context(), cc)
			st := accept(t, t.Context(), s)
			s.GoAway()
			synctest.Wait()
			if cc.GetState() == connectivity.Ready {
				t.Error("the client stayed on a connection that goes away")
			}
			st.End(nil)
			_, err := old.Recv()
			ended(t, err, codes.OK)
			synctest.Wait()
		}
		if n := len(stacks("testutil.(*Server).newGeneration")); n != 1 {
			t.Errorf("%d generations are kept, want 1", n)
		}
	})
}

// A connection that never finishes its handshake does not hold up Close.
func TestCloseWithSilentConnection(t *testing.T) {
	s, err := ListenServer("127.0.0.1:0")
	must(t, err)
	conn, err := net.Dial("tcp", s.Target())
	must(t, err)
	defer conn.Close()
	// The server's settings frame shows that grpc has the connection.
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	s.Close()
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("close took %v", took)
	}
	noLeak(t)
}

func TestSeveralInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := StartServer(t, Named("a")), StartServer(t, Named("b"))
		dialer := InMemory(a, b)
		for _, s := range []*Server{a, b} {
			openSotW(t, t.Context(), connect(t, s.Target(), dialer))
			accept(t, t.Context(), s)
		}
		other := connect(t, "passthrough:///c", dialer)
		_, err := discoveryv3.NewAggregatedDiscoveryServiceClient(other).StreamAggregatedResources(t.Context())
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "no server in memory") {
			t.Errorf("unknown name: %v", err)
		}
	})
}
