package view

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// dialling makes a client of a scripted server. Both end with the test, also after a failure.
func dialling(t *testing.T, srv *testutil.Server, config client.Config) *client.Client {
	t.Helper()
	config.GRPC = transport.GRPCConfig{DialOptions: srv.DialOptions()}
	c, err := client.New(config)
	must(t, err)
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
		srv.Close()
	})
	return c
}

// Two spellings of one name in one view are two entries of one resource. When one of them is no
// longer named, the other stays.
func TestTwoSpellings(t *testing.T) {
	const (
		clusters = "xdstp://x/envoy.config.cluster.v3.Cluster/"
		one, two = clusters + "a?k=1&l=2", clusters + "%61?l=2&k=1"
	)
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		boot, err := bootstrap.Parse("bootstrap", []byte(`{"xds_servers": [{"server_uri": "`+srv.Target()+`", "channel_creds": [{"type": "insecure"}]}], "authorities": {"x": {}}, "node": {"id": "n"}}`))
		must(t, err)
		c := dialling(t, srv, client.Config{Bootstrap: boot, Variant: client.VariantDelta})
		v, err := New(t.Context(), c, Root{Type: RootRoutes, Name: "r"}, Config{})
		must(t, err)
		st, err := srv.Accept(t.Context())
		must(t, err)
		send := func(kind, name, version, line string) {
			t.Helper()
			must(t, st.Send(testutil.Delta(kinds[kind].TypeURL(), "n", []*discoveryv3.Resource{testutil.Wrapped(name, version, res(t, line))})))
			synctest.Wait()
		}
		send("rds", "r", "1", "rds r *="+one+","+two)
		send("cds", clusters+"a?k=1&l=2", "1", "cds "+one+" static:1.1.1.1")
		for _, w := range v.Waiting() {
			t.Errorf("waited for: %+v", w)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		must(t, v.Ready(ctx))
		for _, name := range []string{one, two} {
			if e := v.Snapshot().Cluster(name); e == nil || e.Message == nil {
				t.Errorf("%s: %+v", name, e)
			}
		}
		for i, left := range []string{two, one} {
			send("rds", "r", string(rune('2'+i)), "rds r *="+left)
			if e := v.Snapshot().Cluster(left); e == nil || e.Message == nil {
				t.Errorf("%s alone: %+v", left, e)
			}
		}
		v.Stop()
		<-v.Done()
	})
}

// The members of a collection have the parameters that the client gave the collection, and what the server
// sends names them so.
//
// spec: CTX-1 CTX-4
func TestNamesOfMembers(t *testing.T) {
	const (
		params   = "?xds.node.cluster=c&xds.node.id=i"
		cluster  = "xdstp://a/envoy.config.cluster.v3.Cluster/x/1" + params
		listener = "xdstp://a/envoy.config.listener.v3.Listener/x/1" + params
	)
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		boot, err := bootstrap.Parse("envoy", []byte(`{"node": {"id": "i", "cluster": "c"}, "node_context_params": ["id", "cluster"], "dynamic_resources": {
			"lds_config": {"ads": {}}, "lds_resources_locator": "xdstp://a/envoy.config.listener.v3.Listener/x/*",
			"ads_config": {"api_type": "DELTA_GRPC", "grpc_services": [{"google_grpc": {"target_uri": "`+srv.Target()+`"}}]}}}`))
		must(t, err)
		c := dialling(t, srv, client.Config{Bootstrap: boot})
		l, err := NewListeners(t.Context(), c, Config{}, nil)
		must(t, err)
		st, err := srv.Accept(t.Context())
		must(t, err)
		send := func(kind, name, line string) {
			t.Helper()
			must(t, st.Send(testutil.Delta(kinds[kind].TypeURL(), "n", []*discoveryv3.Resource{testutil.Wrapped(name, "1", res(t, line))})))
			synctest.Wait()
		}
		send("lds", listener, "lds "+listener+" tcp:"+cluster)
		time.Sleep(time.Millisecond)
		send("cds", cluster, "cds "+cluster+" static:1.1.1.1")
		if v := l.View(listener); v == nil || v.Snapshot() == nil {
			t.Errorf("the view is %v, and has no snapshot", v)
		} else if e := v.Snapshot().Cluster(cluster); e.Status() != StatusOK {
			t.Errorf("the cluster is %v: %v", e.Status(), e.Err())
		}
		l.Stop()
		<-l.Done()
	})
}

// A program, or who sends it requests, does not set the client's own parameters: neither of a root nor of a cluster on demand.
//
// spec: CTX-1
func TestOwnParametersOfPrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		boot, err := bootstrap.Server(srv.Target())
		must(t, err)
		boot.Authorities = map[string]bootstrap.Authority{"a": {}}
		c := dialling(t, srv, client.Config{Bootstrap: boot})
		const root, bad = "xdstp://a/envoy.config.cluster.v3.Cluster/x", "xdstp://a/envoy.config.cluster.v3.Cluster/y?xds.node.id=other"
		_, err = New(t.Context(), c, Root{Type: RootCluster, Name: bad}, Config{})
		config := func(what string, err error) {
			t.Helper()
			if re, ok := errors.AsType[*client.ResourceError](err); !ok || re.Kind != client.ErrorConfig || re.Name != bad {
				t.Errorf("%s: %v", what, err)
			}
		}
		config("a root", err)
		v, err := New(t.Context(), c, Root{Type: RootCluster, Name: root}, Config{})
		must(t, err)
		_, err = v.Cluster(t.Context(), bad)
		config("a cluster", err)
		st, err := srv.Accept(t.Context())
		must(t, err)
		req, err := st.Next(t.Context())
		must(t, err)
		if names := req.Names(); len(names) != 1 || names[0] != root {
			t.Errorf("%q are subscribed to", names)
		}
		v.Stop()
		<-v.Done()
	})
}
