package transport_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/transport"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func TestMessagesPassAsBytes(t *testing.T) {
	s := open(t, build(t, transport.GRPCConfig{}, insecure(serveTCP(t, echo).addr)))
	for _, msg := range []string{"", "a", "\x00\xff not a protobuf", strings.Repeat("x", 100<<10)} {
		wantEcho(t, s, msg)
	}
}

// A message may be given in parts, of which any may be empty.
func TestMessageInParts(t *testing.T) {
	s := open(t, build(t, transport.GRPCConfig{}, insecure(serveTCP(t, echo).addr)))
	large := bytes.Repeat([]byte("large "), 20<<10)
	for _, parts := range [][][]byte{nil, {nil}, {[]byte("one, "), nil, []byte("two")}, {large, []byte("small"), large}} {
		if err := s.Send(parts...); err != nil {
			t.Fatal(err)
		}
		want := string(bytes.Join(parts, nil))
		if got, err := s.Recv(); err != nil || text(got) != want {
			t.Fatalf("%d parts: %d bytes came back, %v; want %d", len(parts), len(text(got)), err, len(want))
		}
	}
}

// What Recv returns is not written to by later messages, though gRPC reuses its buffers.
func TestReceivedBytesAreTheCallers(t *testing.T) {
	s := open(t, build(t, transport.GRPCConfig{}, insecure(serveTCP(t, echo).addr)))
	var got []transport.Frame
	var want []string
	for i := range 50 {
		msg := bytes.Repeat([]byte{byte(i)}, 1+i*2000)
		if err := s.Send(msg); err != nil {
			t.Fatal(err)
		}
		f, err := s.Recv() // and never freed
		if err != nil {
			t.Fatal(err)
		}
		got, want = append(got, f), append(want, string(msg))
	}
	for i := range want {
		if text(got[i]) != want[i] {
			t.Errorf("message %d is not what it was", i)
		}
	}
}

func TestSendAndRecvAtOnce(t *testing.T) {
	s := open(t, build(t, transport.GRPCConfig{}, insecure(serveTCP(t, echo).addr)))
	const n = 500
	shared := bytes.Repeat([]byte("may be sent again "), 1000)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range n {
			if err := s.Send(shared); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range n {
		if got, err := s.Recv(); err != nil || text(got) != string(shared) {
			t.Fatalf("message %d: %d bytes, %v; want %d", i, len(text(got)), err, len(shared))
		}
	}
	wg.Wait()
}

// spec: STREAM-7 S-29
func TestNoFourMebibyteLimit(t *testing.T) {
	s := open(t, build(t, transport.GRPCConfig{}, insecure(serveTCP(t, echo).addr)))
	wantEcho(t, s, strings.Repeat("0123456789abcdef", 5<<16)) // 5 MiB
}

func TestLimitIsNamed(t *testing.T) {
	srv := serveTCP(t, echo, grpc.MaxRecvMsgSize(2000))
	c := build(t, transport.GRPCConfig{MaxReceiveSize: 1000}, insecure(srv.addr))

	s := open(t, c)
	wantEcho(t, s, strings.Repeat("x", 1000))
	_, err := exchange(s, strings.Repeat("x", 1001))
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "limit of 1000 bytes; GRPCConfig.MaxReceiveSize raises it") {
		t.Errorf("over our limit: %v", err)
	}

	_, err = exchange(open(t, c), strings.Repeat("x", 2001))
	if status.Code(err) != codes.ResourceExhausted || strings.Contains(err.Error(), "MaxReceiveSize") {
		t.Errorf("over the server's limit: %v", err)
	}
}

func TestEnds(t *testing.T) {
	refusal := status.Error(codes.PermissionDenied, "not you")
	tests := []struct {
		name string
		end  error
		want error
	}{
		{"ok", nil, io.EOF},
		{"status", refusal, refusal},
		{"exhausted by the server", status.Error(codes.ResourceExhausted, "too many streams"), status.Error(codes.ResourceExhausted, "too many streams")},
		{"not a status", errors.New("plain"), status.Error(codes.Unknown, "plain")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, build(t, transport.GRPCConfig{}, insecure(serveTCP(t, then(tt.end)).addr)))
			for range 2 { // it says so again
				if _, err := exchange(s, "go"); fmt.Sprint(err) != fmt.Sprint(tt.want) {
					t.Errorf("end: %v, want %v", err, tt.want)
				}
			}
			if err := s.Send([]byte("late")); err != transport.ErrStreamEnded {
				t.Errorf("send: %v, want %v", err, transport.ErrStreamEnded)
			}
		})
	}
}

func TestWhatTheServerSees(t *testing.T) {
	type call struct {
		Method string
		MD     metadata.MD
	}
	calls := make(chan call, 1)
	srv := serveTCP(t, func(s grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(s)
		md, _ := metadata.FromIncomingContext(s.Context())
		calls <- call{method, md}
		return nil
	})
	server := insecure(srv.addr)
	server.HostAuthority = "xds.example.com"
	server.Headers = []bootstrap.Header{{Key: "X-Team", Value: "b"}, {Key: "token-bin", Value: "\x00\xff"}}
	c := build(t, transport.GRPCConfig{Headers: []bootstrap.Header{{Key: "x-team", Value: "a"}}}, server)
	s, err := c.Open(testContext(t), transport.MethodADSDelta)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); err != io.EOF {
		t.Fatal(err)
	}
	got := <-calls
	delete(got.MD, "user-agent")
	delete(got.MD, "grpc-accept-encoding") // of what this test program links
	want := call{transport.MethodADSDelta, metadata.MD{
		":authority":   {"xds.example.com"},
		"content-type": {"application/grpc"},
		"x-team":       {"a", "b"},
		"token-bin":    {"\x00\xff"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTargets(t *testing.T) {
	_, port, err := net.SplitHostPort(serveTCP(t, echo).addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	socket, err := filepath.Abs("s")
	if err != nil {
		t.Fatal(err)
	}
	uris := []string{
		"127.0.0.1:" + port,
		"localhost:" + port,
		"dns:///localhost:" + port,
		"dns:127.0.0.1:" + port,
		"passthrough:///127.0.0.1:" + port,
		"unix:s",
		"unix:" + socket,
		"unix://" + socket,
		"unix:///" + socket, // four slashes, as Istio's agent writes it
		"passthrough:///unix:" + socket,
		"passthrough:///unix://" + socket,
	}
	sockets := []string{"s"}
	if runtime.GOOS == "linux" {
		name := fmt.Sprintf("xdswatch-%d", os.Getpid())
		sockets = append(sockets, "@"+name)
		uris = append(uris, "unix-abstract:"+name)
	}
	for _, name := range sockets {
		l, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		serve(t, l, echo)
	}
	for _, uri := range uris {
		t.Run(strings.SplitAfter(uri, ":")[0], func(t *testing.T) {
			wantEcho(t, open(t, build(t, transport.GRPCConfig{}, insecure(uri))), uri)
		})
	}
}

func TestBuildFaults(t *testing.T) {
	tests := []struct {
		name string
		edit func(*bootstrap.ManagementServer)
		want string
	}{
		{"no creds", func(s *bootstrap.ManagementServer) { s.ChannelCreds.Type = "" }, `channel_creds ""`},
		{"unknown creds", func(s *bootstrap.ManagementServer) { s.ChannelCreds.Type = "google_default" }, `channel_creds "google_default": nothing makes this type`},
		{"unknown call creds", func(s *bootstrap.ManagementServer) { s.CallCreds = []bootstrap.CallCreds{{Type: "x"}} }, `call_creds "x": nothing makes this type`},
		// gRFC A97's credential needs a secure channel.
		{"token without tls", func(s *bootstrap.ManagementServer) {
			s.CallCreds = []bootstrap.CallCreds{{Type: "jwt_token_file", TokenFile: "f"}}
		}, `call_creds "jwt_token_file": need a secure channel, and channel_creds are "insecure"`},
		{"header of grpc", func(s *bootstrap.ManagementServer) {
			s.Headers = []bootstrap.Header{{Key: "grpc-timeout", Value: "1S"}}
		}, `header "grpc-timeout"`},
		{"pseudo header", func(s *bootstrap.ManagementServer) { s.Headers = []bootstrap.Header{{Key: ":path", Value: "/"}} }, `header ":path"`},
		{"header key", func(s *bootstrap.ManagementServer) { s.Headers = []bootstrap.Header{{Key: "a b"}} }, `header "a b"`},
		{"empty key", func(s *bootstrap.ManagementServer) { s.Headers = []bootstrap.Header{{}} }, `header "": the key is empty`},
		{"header value", func(s *bootstrap.ManagementServer) { s.Headers = []bootstrap.Header{{Key: "a", Value: "\n"}} }, `header "a": the value`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := insecure("xds.example.com:443")
			tt.edit(&s)
			c, err := transport.NewGRPC(transport.GRPCConfig{}).Build(s)
			if err == nil {
				c.Close()
				t.Fatal("built")
			}
			for _, want := range []string{`management server "xds.example.com:443": `, tt.want} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}
