package testutil_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/validate/grpcrules"
	"github.com/xdswatch/xdswatch/watcher"
)

// What the builders make is good by the rules of the messages, and for gRPC where that knows the kind.
func TestBuild(t *testing.T) {
	for _, it := range []struct {
		m       proto.Message
		refused grpcrules.Rule // "" by none
	}{
		{testutil.APIListener("l", "r"), ""},
		{testutil.ProxyListener("l", "[::1]:80", "r"), ""},
		{testutil.RouteConfig("r", testutil.VirtualHost("*", testutil.Route("", "a"), testutil.Route("/x", "b"))), ""},
		{testutil.EDSCluster("c"), ""},
		{testutil.StaticCluster("c", "10.0.0.1:1", "10.0.0.2:1"), grpcrules.RuleClusterType},
		{testutil.Endpoints("e", "10.0.0.1:1", "10.0.0.2:1"), ""},
		{testutil.EndpointsIn("e", testutil.Locality("a", 0, 1), testutil.Locality("b", 0, 3, "[::1]:80"), testutil.Locality("a", 1, 1)), ""},
	} {
		name := string(it.m.ProtoReflect().Descriptor().Name())
		if err := it.m.(interface{ ValidateAll() error }).ValidateAll(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var refused grpcrules.Rule
		for _, f := range (grpcrules.Options{}).Judge(it.m) {
			refused = f.Rule
		}
		if refused != it.refused {
			t.Errorf("%s: gRPC's %q, want %q", name, refused, it.refused)
		}
	}
	for _, bad := range []string{"", "host", "host:x", "host:65536", "::1:80"} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "testutil: ") {
					t.Errorf("%q: %q", bad, text)
				}
			}()
			testutil.Endpoints("e", bad)
		}()
	}
}

// A client of each server's bootstrap gets what the server has.
func TestBootstrap(t *testing.T) {
	managed := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	polled := testutil.StartRESTServer(t, testutil.RESTConfig{})
	for _, set := range []func(string, ...proto.Message) error{managed.Set, polled.Set} {
		if err := set("1", testutil.EDSCluster("a")); err != nil {
			t.Fatal(err)
		}
	}
	proxy, err := testutil.NewTCPProxy(managed.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	scripted := testutil.StartServer(t, testutil.OnRequest(func(st *testutil.Stream, r *testutil.Request) {
		if r.Nonce() == "" {
			st.Send(testutil.SotW(r.TypeURL(), "1", "1", testutil.EDSCluster("a")))
		}
	}))
	for name, c := range map[string]client.Config{
		"managed":  {Bootstrap: managed.Bootstrap()},
		"proxy":    {Bootstrap: proxy.Bootstrap()},
		"polled":   {Bootstrap: polled.Bootstrap()},
		"scripted": {Bootstrap: scripted.Bootstrap(), GRPC: transport.GRPCConfig{DialOptions: scripted.DialOptions()}},
	} {
		x, err := client.New(c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		got, err := watcher.Get(ctx, x, cds.Type, "a")
		if err != nil || got.GetName() != "a" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		cancel()
		x.Close()
		<-x.Done()
	}
	secured := testutil.StartManagementServer(t, testutil.ManagementConfig{TLS: &tls.Config{}}).Bootstrap()
	if creds := secured.Servers[0].ChannelCreds; creds.Type != "tls" || creds.TLS == nil {
		t.Errorf("%+v", creds)
	}
}

// A program's client gets what a real management server has, built in a few lines.
func Example_client() {
	srv, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Stop()
	srv.Set("1",
		testutil.APIListener("shop", "routes"),
		testutil.RouteConfig("routes", testutil.VirtualHost("*", testutil.Route("", "backend"))),
		testutil.EDSCluster("backend"),
		testutil.EndpointsIn("backend", testutil.Locality("near", 0, 1, "10.0.0.1:80", "10.0.0.2:80"), testutil.Locality("far", 1, 1, "10.1.0.1:80")),
	)

	c, err := client.New(client.Config{Bootstrap: srv.Bootstrap()})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for ev, err := range watcher.Events(context.Background(), c, cds.Type, "backend") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(ev.Kind, ev.Value.GetName(), ev.Value.GetType() == clusterv3.Cluster_EDS)
		break
	}
	// Output:
	// updated backend true
}
