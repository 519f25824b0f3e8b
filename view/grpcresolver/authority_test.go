package grpcresolver_test

import (
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/view/grpcresolver"
)

// An RPC has the hostname of its endpoint as its authority if its route says so, a trusted server
// sent the route, and the program did not say another.
//
// spec: VIEW-65
func TestAutoHostRewrite(t *testing.T) {
	t.Parallel()
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(stream.Context())
		stream.SetTrailer(metadata.Pairs("authority", md.Get(":authority")[0]))
		if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		return stream.SendMsg(&emptypb.Empty{})
	}))
	go s.Serve(lis)
	t.Cleanup(s.Stop)
	port := uint32(lis.Addr().(*net.TCPAddr).Port)
	named := viewtest.At(port)
	named.LbEndpoints[0].GetEndpoint().Hostname = "own.example"
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, "listener",
		`{match: {path: /s/off}, route: {cluster: a}}`,
		`{match: {path: /s/literal}, route: {cluster: a, host_rewrite_literal: other.example}}`,
		`{match: {path: /s/nameless}, route: {cluster: nameless, auto_host_rewrite: true}}`,
		`{match: {path: /s/leaf}, route: {cluster: all, auto_host_rewrite: true}}`,
		`{match: {prefix: /}, route: {cluster: a, auto_host_rewrite: true}}`),
		viewtest.Cluster("a"), viewtest.Assignment("a", named), viewtest.Aggregate(t, "all", "a"),
		viewtest.Cluster("nameless"), viewtest.Assignment("nameless", viewtest.At(port)))...)
	for _, trusted := range []bool{false, true} {
		boot, err := bootstrap.Server(m.Addr())
		if err != nil {
			t.Fatal(err)
		}
		boot.Servers[0].Features.TrustedXDSServer = trusted
		c, err := client.New(client.Config{Bootstrap: boot})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		channel, err := grpc.NewClient("xdswatch:///listener", grpc.WithResolvers(grpcresolver.NewBuilder(c)), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { channel.Close() })
		for _, tt := range []struct {
			method, untrusted, trusted string
			opts                       []grpc.CallOption
		}{
			{"/s/on", "listener", "own.example", nil},
			{"/s/leaf", "listener", "own.example", nil},
			{"/s/off", "listener", "listener", nil},
			{"/s/literal", "listener", "listener", nil}, // gRPC does not use it
			{"/s/nameless", "listener", "listener", nil},
			{"/s/on", "program.example", "program.example", []grpc.CallOption{grpc.CallAuthority("program.example")}},
		} {
			want := map[bool]string{false: tt.untrusted, true: tt.trusted}[trusted]
			var trailer metadata.MD
			err := channel.Invoke(ctx, tt.method, &emptypb.Empty{}, &emptypb.Empty{}, append(tt.opts, grpc.Trailer(&trailer), grpc.WaitForReady(true))...)
			if got := trailer.Get("authority"); err != nil || len(got) != 1 || got[0] != want {
				t.Errorf("with a trusted server %v: %s has the authority %q, %v, want %q", trusted, tt.method, got, err, want)
			}
		}
	}
}
