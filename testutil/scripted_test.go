package testutil

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

// everywhere runs a test against a server in memory, on TCP and on a Unix socket.
func everywhere(t *testing.T, test func(t *testing.T, s *Server), opts ...Option) {
	t.Helper()
	listen := func(addr string) func(*testing.T) *Server {
		return func(t *testing.T) *Server {
			s, err := ListenServer(addr, opts...)
			must(t, err)
			return s
		}
	}
	start := map[string]func(*testing.T) *Server{
		"memory": func(*testing.T) *Server { return NewServer(opts...) },
		"tcp":    listen("127.0.0.1:0"),
		"unix":   listen("unix:" + filepath.Join(t.TempDir(), "xds.sock")),
	}
	for name, f := range start {
		t.Run(name, func(t *testing.T) {
			s := f(t)
			test(t, s)
			s.Close()
			noLeak(t)
		})
	}
}

func TestExchangeSotW(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Server) {
		ctx := testContext(t)
		cc := connect(t, s.Target(), s.DialOptions()...)
		client := openSotW(t, metadata.AppendToOutgoingContext(ctx, "x-tenant", "blue"), cc)
		first := clusterRequest("a", "b")
		first.Node = &corev3.Node{Id: "n"}
		must(t, client.Send(first))

		st := accept(t, ctx, s)
		if st.ID != 1 || st.Delta || st.Metadata.Get("x-tenant")[0] != "blue" {
			t.Errorf("stream is %d, delta %v, metadata %v", st.ID, st.Delta, st.Metadata)
		}
		r := next(t, ctx, st)
		if diff := cmp.Diff(first, r.SotW, protocmp.Transform()); diff != "" {
			t.Errorf("request (-sent +received):\n%s", diff)
		}
		if r.Size != proto.Size(first) || len(r.Raw) != r.Size || r.At.IsZero() || r.Stream != 1 {
			t.Errorf("request has size %d, %d raw bytes, time %v, stream %d", r.Size, len(r.Raw), r.At, r.Stream)
		}

		sent := SotW(clusterURL, "1", "n1", cluster("a"), Wrapped("b", "1", cluster("b")))
		must(t, st.Send(sent))
		if diff := cmp.Diff(sent, recv(t, client), protocmp.Transform()); diff != "" {
			t.Errorf("response (-sent +received):\n%s", diff)
		}

		must(t, client.Send(&discoveryv3.DiscoveryRequest{
			TypeUrl: clusterURL, VersionInfo: "0", ResponseNonce: "n1",
			ErrorDetail: &statuspb.Status{Code: 3, Message: "bad"},
		}))
		nack := next(t, ctx, st)
		want := `stream 1: sotw ` + clusterURL + ` names=[] version="0" nonce="n1" error="bad"`
		if got := nack.String(); got != want {
			t.Errorf("request is %s, want %s", got, want)
		}
		if got := s.Requests(); len(got) != 2 || got[0] != r || got[1] != nack {
			t.Errorf("server recorded %v", got)
		}
	})
}

func TestExchangeDelta(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Server) {
		ctx := testContext(t)
		client := openDelta(t, ctx, connect(t, s.Target(), s.DialOptions()...))
		must(t, client.Send(&discoveryv3.DeltaDiscoveryRequest{
			Node: &corev3.Node{Id: "n"}, TypeUrl: clusterURL,
			ResourceNamesSubscribe: []string{"a"}, ResourceNamesUnsubscribe: []string{"b"},
			InitialResourceVersions: map[string]string{"a": "7"}, ResponseNonce: "x",
			ResourceLocatorsSubscribe: []*discoveryv3.ResourceLocator{{Name: "c", DynamicParameters: map[string]string{"env": "prod"}}},
		}))
		st := accept(t, ctx, s)
		if !st.Delta {
			t.Errorf("%s is not a delta stream", st.Method)
		}
		r := next(t, ctx, st)
		want := `stream 1: delta ` + clusterURL + ` subscribe=["a"] unsubscribe=["b"] initial=map["a":"7"] locator="c"map[env:prod] nonce="x"`
		if got := r.String(); got != want {
			t.Errorf("request is %s, want %s", got, want)
		}
		if r.Node().GetId() != "n" || r.ErrorDetail() != nil || r.Version() != "" {
			t.Errorf("request has node %v, error %v, version %q", r.Node(), r.ErrorDetail(), r.Version())
		}
		sent := Delta(clusterURL, "n1", []*discoveryv3.Resource{
			Wrapped("a", "8", cluster("a")), Wrapped("ttl", "3", nil),
		}, "b", "c")
		must(t, st.Send(sent))
		if diff := cmp.Diff(sent, recv(t, client), protocmp.Transform()); diff != "" {
			t.Errorf("response (-sent +received):\n%s", diff)
		}
	})
}

// A bubble ends only when all its goroutines have: those of the server and of grpc.
func TestBubbleEndsClean(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer()
		cc := connect(t, s.Target(), s.DialOptions()...)
		sotw, delta := openSotW(t, t.Context(), cc), openDelta(t, t.Context(), cc)
		must(t, sotw.Send(clusterRequest("a")))
		must(t, delta.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusterURL}))
		start := time.Now()
		for range 2 {
			st := accept(t, t.Context(), s)
			if r := next(t, t.Context(), st); !r.At.Equal(start) {
				t.Errorf("request at %v, want %v", r.At, start)
			}
			if st.Delta {
				must(t, st.Send(Delta(clusterURL, "n", nil)))
			} else {
				must(t, st.Send(SotW(clusterURL, "1", "n")))
			}
		}
		recv(t, sotw)
		recv(t, delta)
		time.Sleep(time.Hour) // fake: the connection stays
		must(t, sotw.Send(clusterRequest("b")))
		synctest.Wait()
		if got := s.Requests(); len(got) != 3 || !got[2].At.Equal(start.Add(time.Hour)) {
			t.Errorf("recorded %v", got)
		}
		s.Close()
		s.Close()
		_, err := sotw.Recv()
		ended(t, err, codes.Unavailable)
	})
}

func TestEveryMethodIsServed(t *testing.T) {
	ctx := testContext(t)
	s := StartServer(t)
	cc := connect(t, s.Target(), s.DialOptions()...)
	for method := range methods() {
		client, err := cc.NewStream(ctx, bidi(), method)
		must(t, err)
		st := accept(t, ctx, s)
		if st.Method != method || st.Delta != strings.Contains(method, "/Delta") {
			t.Errorf("stream has method %s, delta %v; want %s", st.Method, st.Delta, method)
		}
		st.End(nil)
		ended(t, client.RecvMsg(new(discoveryv3.DiscoveryResponse)), codes.OK)
	}
}

func TestEnd(t *testing.T) {
	plain := errors.New("plain")
	tests := []struct {
		name string
		err  error
		want codes.Code
	}{
		{"nil", nil, codes.OK},
		{"eof", io.EOF, codes.OK},
		{"status", status.Error(codes.ResourceExhausted, "enough"), codes.ResourceExhausted},
		{"plain", plain, codes.Unknown},
	}
	everywhere(t, func(t *testing.T, s *Server) {
		ctx := testContext(t)
		cc := connect(t, s.Target(), s.DialOptions()...)
		for _, tt := range tests {
			client := openSotW(t, ctx, cc)
			st := accept(t, ctx, s)
			must(t, st.Send(SotW(clusterURL, "1", "n")))
			st.End(tt.err)
			st.End(plain)
			recv(t, client)
			_, err := client.Recv()
			ended(t, err, tt.want)
			<-st.Done()
			if !errors.Is(st.Err(), tt.err) {
				t.Errorf("%s: stream has error %v, want %v", tt.name, st.Err(), tt.err)
			}
			if err := st.Send(cluster("\xff")); err == nil || errors.Is(err, ErrStreamOver) {
				t.Errorf("%s: send of what cannot be marshalled: %v", tt.name, err)
			}
			if err := st.SendBytes(nil); !errors.Is(err, ErrStreamOver) {
				t.Errorf("%s: send after the end: %v", tt.name, err)
			}
			if _, err := st.Next(ctx); !errors.Is(err, ErrStreamOver) {
				t.Errorf("%s: next after the end: %v", tt.name, err)
			}
		}
	})
}

func TestClientEnds(t *testing.T) {
	ctx := testContext(t)
	s := StartServer(t)
	cc := connect(t, s.Target(), s.DialOptions()...)

	client := openSotW(t, ctx, cc)
	must(t, client.Send(clusterRequest("last")))
	must(t, client.CloseSend())
	st := accept(t, ctx, s)
	<-st.Done()
	if st.Err() != io.EOF {
		t.Errorf("closed by the client: %v, want io.EOF", st.Err())
	}
	if r := next(t, ctx, st); r.Names()[0] != "last" {
		t.Errorf("request before the end is %v", r)
	}
	if _, err := st.Next(ctx); !errors.Is(err, ErrStreamOver) || !errors.Is(err, io.EOF) {
		t.Errorf("next after the end: %v", err)
	}

	broken, cancel := context.WithCancel(ctx)
	openSotW(t, broken, cc)
	st = accept(t, ctx, s)
	if st.Err() != nil {
		t.Errorf("open stream has error %v", st.Err())
	}
	cancel()
	<-st.Done()
	if st.Err() == nil || errors.Is(st.Err(), io.EOF) {
		t.Errorf("cancelled by the client: %v", st.Err())
	}
}

func TestFramesOfAnyKind(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Server) {
		ctx := testContext(t)
		cc := connect(t, s.Target(), append(s.DialOptions(),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))...)

		client := openSotW(t, ctx, cc)
		st := accept(t, ctx, s)
		// More than the 4 MiB that gRPC takes unless it is told otherwise.
		name := string(bytes.Repeat([]byte("x"), 5<<20))
		must(t, client.Send(clusterRequest(name)))
		if r := next(t, ctx, st); r.Names()[0] != name {
			t.Errorf("large request came with %d bytes", r.Size)
		}
		must(t, st.Send(SotW(clusterURL, name, "n")))
		if got := recv(t, client); got.GetVersionInfo() != name {
			t.Errorf("large response came with %d bytes", proto.Size(got))
		}
		must(t, st.SendBytes([]byte{0xff, 0xff}))
		_, err := client.Recv()
		ended(t, err, codes.Internal)
	})
}

func TestRequestOfBrokenBytes(t *testing.T) {
	ctx := testContext(t)
	s := StartServer(t)
	cc := connect(t, s.Target(), append(s.DialOptions(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))...)
	for _, verb := range []string{"Stream", "Delta"} {
		client, err := cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/x/"+verb+"X")
		must(t, err)
		must(t, client.SendMsg([]byte{0xff}))
		r := next(t, ctx, accept(t, ctx, s))
		if r.Err == nil || r.SotW != nil || r.Delta != nil || !bytes.Equal(r.Raw, []byte{0xff}) {
			t.Errorf("%s: request is %v", verb, r)
		}
		if r.TypeURL() != "" || r.Nonce() != "" || r.Names() != nil || r.Node() != nil || r.ErrorDetail() != nil {
			t.Errorf("%s: accessors make something of nothing", verb)
		}
		if want := "1 bytes that are no request"; !strings.Contains(r.String(), want) {
			t.Errorf("%s: request prints as %q, want %q in it", verb, r, want)
		}
	}
}

func TestHooks(t *testing.T) {
	answer := func(st *Stream, r *Request) {
		if err := st.Send(SotW(r.TypeURL(), "1", "n", cluster(r.Names()[0]))); err != nil {
			t.Error(err)
		}
	}
	refuseDelta := func(st *Stream) {
		if st.Delta {
			st.End(status.Error(codes.Unimplemented, "no delta"))
		}
	}
	everywhere(t, func(t *testing.T, s *Server) {
		ctx := testContext(t)
		cc := connect(t, s.Target(), s.DialOptions()...)
		client := openSotW(t, ctx, cc)
		for _, name := range []string{"a", "b", "c"} {
			must(t, client.Send(clusterRequest(name)))
			want := SotW(clusterURL, "1", "n", cluster(name))
			if diff := cmp.Diff(want, recv(t, client), protocmp.Transform()); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		}
		_, err := openDelta(t, ctx, cc).Recv()
		ended(t, err, codes.Unimplemented)
		if n := len(s.Streams()); n != 2 {
			t.Errorf("%d streams, want 2", n)
		}
	}, OnRequest(answer), OnStream(refuseDelta))
}

func TestUnrecorded(t *testing.T) {
	ctx := testContext(t)
	seen := make(chan *Request, 1)
	of := make(chan *Stream, 1)
	s := StartServer(t, Unrecorded(), OnRequest(func(st *Stream, r *Request) {
		of <- st
		seen <- r
	}))
	must(t, openSotW(t, ctx, connect(t, s.Target(), s.DialOptions()...)).Send(clusterRequest("a")))
	st, r := <-of, <-seen
	if r.Names()[0] != "a" {
		t.Errorf("hook saw %v", r)
	}
	if len(s.Requests())+len(s.Streams())+len(st.Requests()) != 0 {
		t.Errorf("recorded %v of %v", s.Requests(), s.Streams())
	}
}

func TestListenFails(t *testing.T) {
	if _, err := ListenServer("unix:" + filepath.Join(t.TempDir(), "no", "such")); err == nil {
		t.Error("no error for a directory that does not exist")
	}
}

func TestWaitersEnd(t *testing.T) {
	s := NewServer()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Accept(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("accept with a context that ended: %v", err)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.Close()
	}()
	if _, err := s.Accept(t.Context()); !errors.Is(err, ErrServerClosed) {
		t.Errorf("accept from a server that is closed: %v", err)
	}
	s.Close()
	<-closed
	s.GoAway()
	noLeak(t)
}

func TestGRPCOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, cert := issue(t, CertOptions{DNS: []string{"scripted"}})
		pair, err := cert.TLS()
		must(t, err)
		s := StartServer(t, GRPCOptions(
			grpc.Creds(credentials.NewServerTLSFromCert(&pair)),
			grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 10 * time.Minute}),
		))
		cc := connectTo(t, s.Target(), append(s.DialOptions(),
			grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(ca.Pool(), "scripted")))...)
		start := time.Now()
		openSotW(t, t.Context(), cc)
		accept(t, t.Context(), s)
		awaitIdle(t, t.Context(), cc)
		// grpc varies the age by a tenth.
		if age := time.Since(start); age < 9*time.Minute || age > 11*time.Minute {
			t.Errorf("the connection lived for %v, want about 10m", age)
		}
	})
}

func TestUnmarshallableResource(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic for a name that is not UTF-8")
		}
	}()
	SotW(clusterURL, "1", "n", cluster("\xff"))
}
