package client_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/store"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// registry is a resolver of a program's own, whose targets have a token. Without an address it says
// which target it cannot find.
type registry struct {
	resolver.Resolver
	address string
}

func (registry) Scheme() string                        { return "registry" }
func (registry) Close()                                {}
func (registry) ResolveNow(resolver.ResolveNowOptions) {}

func (r registry) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	if r.address == "" {
		return nil, fmt.Errorf("no address for %s", target.URL.String())
	}
	return r, cc.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: r.address}}})
}

// What may be secret in a server's URI comes out nowhere: while the server answers, when it is gone, and
// where gRPC cannot use the URI.
// spec: H-3
func TestNoSecretOfServerURI(t *testing.T) {
	t.Parallel()
	const uri = "registry://" + marker + "@registry.example/xds?token=" + marker + "&zone=" + marker + "#" + marker
	srv, err := testutil.ListenServer("127.0.0.1:0", testutil.OnRequest(func(st *testutil.Stream, r *testutil.Request) {
		if r.SotW.GetResponseNonce() == "" {
			_ = st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n", cluster("a", "")))
		}
	}))
	must(t, err)
	t.Cleanup(srv.Close)
	for name, test := range map[string]struct{ uri, address string }{
		"answers":           {uri, srv.Target()},
		"is away":           {uri, "127.0.0.1:1"},
		"is not found":      {uri, ""},
		"is no host":        {uri: marker + "@127.0.0.1:1"},
		"does not parse":    {uri: "dns:///127.0.0.1:1?%zz" + marker},
		"has an unused one": {uri: "dns:///127.0.0.1:1?token=" + marker},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &outlet{}
			dir := t.TempDir()
			boot := &bootstrap.Config{Servers: []bootstrap.ManagementServer{{URI: test.uri, ChannelCreds: bootstrap.Insecure()}}}
			boot.AllowedGRPCServices = map[string]bootstrap.GRPCService{test.uri: {ChannelCreds: bootstrap.Insecure()}}
			config := client.Config{
				Bootstrap: boot, Store: store.Dir(dir, store.Options{}), Logger: slog.New(slog.NewTextHandler(o, &slog.HandlerOptions{Level: slog.LevelDebug})),
				GRPC: transport.GRPCConfig{DialOptions: []grpc.DialOption{grpc.WithResolvers(registry{address: test.address})}},
				Trace: &client.Trace{
					StreamUp: func(i client.StreamInfo) { o.add(i) }, StreamDown: func(i client.StreamInfo, err error) { o.add(i); o.add(err) },
					Request: func(i client.RequestInfo) { o.add(i) }, Response: func(i client.ResponseInfo) { o.add(i) },
				},
			}
			o.add(boot)
			o.add(boot.Servers[0].Key())
			c, err := client.New(config)
			must(t, err)
			useOf(t, o, c, test.uri)
			must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				text, err := os.ReadFile(path)
				_, _ = o.Write(text)
				return err
			}))
			o.leaks(t, name)
		})
	}
}

// useOf watches a cluster until it is there or has failed, and adds whatever a client tells of it.
func useOf(t *testing.T, o *outlet, c *client.Client, uri string) {
	t.Helper()
	heard := make(chan string, 10)
	_, err := c.Watch(t.Context(), cds.Type, "a", func(ev client.Event[any]) {
		o.add(ev.Err)
		o.add(ev)
		heard <- ev.Server
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	server := <-heard
	o.add(server)
	o.add(c.Ready(ctx)) // says what is lacking, and where
	for _, name := range []string{uri, server} {
		conn, err := c.Connect(name)
		must(t, err)
		conn.Close()
	}
	_, err = c.Connect(uri + "x")
	o.add(err)
	if err == nil || errors.Is(err, client.ErrClosed) {
		t.Errorf("Connect to another server: %v", err)
	}
	o.add(c.Gauges())
	o.add(c.Dump())
	must(t, c.Close())
	<-c.Done()
	o.add(c.Dump())
}
