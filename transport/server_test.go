package transport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/transport"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// rawServer is a gRPC server that knows no service and no message: each stream, of any
// method, runs the handler, with messages as bytes.
type rawServer struct {
	*grpc.Server
	addr string // of the listener, in the form of a target
}

type handler func(grpc.ServerStream) error

// serverCodec is the server's half of the raw codec.
type serverCodec struct{}

func (serverCodec) Name() string { return "proto" }

func (serverCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (serverCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

func newServer(h handler, opts ...grpc.ServerOption) *grpc.Server {
	opts = append([]grpc.ServerOption{
		grpc.ForceServerCodecV2(serverCodec{}),
		grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error { return h(s) }),
		grpc.MaxRecvMsgSize(64 << 20),
	}, opts...)
	return grpc.NewServer(opts...)
}

// serve runs a server on l until the end of the test.
func serve(t testing.TB, l net.Listener, h handler, opts ...grpc.ServerOption) *rawServer {
	t.Helper()
	s := &rawServer{newServer(h, opts...), l.Addr().String()}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // before it began
			t.Errorf("server: %v", err)
		}
	})
	return s
}

func serveTCP(t testing.TB, h handler, opts ...grpc.ServerOption) *rawServer {
	t.Helper()
	return serve(t, listen(t, "127.0.0.1:0"), h, opts...)
}

func listen(t testing.TB, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// echo sends each message back until the client's end.
func echo(s grpc.ServerStream) error {
	for {
		msg, err := receive(s)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = s.SendMsg(msg)
		}
		if err != nil {
			return err
		}
	}
}

func receive(s grpc.ServerStream) ([]byte, error) {
	var msg []byte
	err := s.RecvMsg(&msg)
	return msg, err
}

// then answers the first message by ending the stream.
func then(end error) handler {
	return func(s grpc.ServerStream) error {
		if _, err := receive(s); err != nil {
			return err
		}
		return end
	}
}

// insecure is a server of a bootstrap that is reached without TLS.
func insecure(uri string) bootstrap.ManagementServer {
	return bootstrap.ManagementServer{URI: uri, ChannelCreds: bootstrap.ChannelCreds{Type: "insecure"}}
}

func build(t testing.TB, config transport.GRPCConfig, s bootstrap.ManagementServer) transport.Conn {
	t.Helper()
	c, err := transport.NewGRPC(config).Build(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// testContext ends with the test, or early enough for it to say where it hangs.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func open(t testing.TB, c transport.Conn) transport.Stream {
	t.Helper()
	s, err := c.Open(testContext(t), transport.MethodADS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func text(f transport.Frame) string { return string(bytes.Join(f.Parts, nil)) }

// exchange sends a message and returns what comes back, or the stream's end.
func exchange(s transport.Stream, msg string) (string, error) {
	if err := s.Send([]byte(msg)); err != nil && err != transport.ErrStreamEnded {
		return "", fmt.Errorf("send: %w", err)
	}
	got, err := s.Recv()
	return text(got), err
}

func wantEcho(t testing.TB, s transport.Stream, msg string) {
	t.Helper()
	if got, err := exchange(s, msg); err != nil || got != msg {
		t.Fatalf("received %q, %v; want %q", got, err, msg)
	}
}
