package client_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// Scopes ask for the same name on streams of their own. What one lacks when the server goes
// moves it to the next, and not the other.
//
// spec: CACHE-1, FALLBACK-2
func TestInScope(t *testing.T) {
	inPair(t, func(t *testing.T, p pair) {
		conns := client.CountConns(p.c)
		_, plain := p.watch("a")
		st := p.accept()
		p.clusters(st, "1", "n1", "a")
		scoped := &record{}
		watch := func(name string) {
			t.Helper()
			_, err := p.c.Watch(context.Background(), cds.Type, name, scoped.hear, client.InScope("east"))
			must(t, err)
		}
		watch("a")
		st2 := p.accept()
		p.request(st2, "cds [a]")
		p.clusters(st2, "1", "n1", "a")
		if n := conns.Open.Load(); n != 1 {
			t.Errorf("%d connections, want one for both scopes", n)
		}

		p.kill()
		watch("b")
		st3 := p.second.accept()
		p.second.request(st3, "cds [a b]")
		p.second.clusters(st3, "7", "m1", "a", "b")
		plain.heard(t, "updated a 1", "ambient error a connection")
		scoped.heard(t, "updated a 1", "ambient error a connection", "updated a 7", "updated b 7")
		if n := len(p.second.srv.Streams()); n != 1 {
			t.Errorf("%d streams to the second server, want that of the scope alone", n)
		}
	})
}

// A source that a watch brings along is asked before the bootstrap's, by servers that the
// bootstrap need not have. A list like the bootstrap's is the bootstrap's.
//
// spec: AUTH-1 FED-1
func TestFromSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := testutil.NewServer(testutil.Named("first")), testutil.NewServer(testutil.Named("second"))
		t.Cleanup(second.Close)
		p := newRig(t, first, func(c *client.Config) {
			c.GRPC = transport.GRPCConfig{DialOptions: []grpc.DialOption{testutil.InMemory(first, second)}}
		})
		q := &rig{t: t, srv: second, c: p.c, log: p.log}
		source := func(s *testutil.Server) client.WatchOption {
			return client.FromSource(bootstrap.Source{
				Authorities: []string{"peer"},
				Servers:     []bootstrap.ManagementServer{{URI: s.Target(), ChannelCreds: bootstrap.Insecure()}},
			})
		}
		watch := func(name string, opts ...client.WatchOption) *record {
			t.Helper()
			rec := &record{}
			_, err := p.c.Watch(context.Background(), cds.Type, name, rec.hear, opts...)
			must(t, err)
			return rec
		}
		own, same := watch("a"), watch("a", source(first))
		p.clusters(p.accept(), "1", "n1", "a")
		brought := watch("a", source(second))
		st := q.accept()
		q.request(st, "cds [a]")
		named := watch("xdstp://peer/"+clusterName+"/x", source(second))
		q.clusters(st, "5", "m1", "a")
		q.clusters(st, "6", "m2", "a", "xdstp://peer/"+clusterName+"/x")
		own.heard(t, "updated a 1")
		same.heard(t, "updated a 1")
		synctest.Wait()
		for what, rec := range map[string]*record{"old-style": brought, "structured": named} {
			if ev := rec.last(); ev.Kind != client.EventUpdated || ev.Server != second.Target() {
				t.Errorf("%s: %v of server %q, want one of %q", what, ev.Kind, ev.Server, second.Target())
			}
		}
		if n := len(first.Streams()) + len(second.Streams()); n != 2 {
			t.Errorf("%d streams, want one for each server", n)
		}

		_, err := p.c.Watch(context.Background(), cds.Type, "xdstp://peer/"+clusterName+"/x", own.hear)
		if err == nil || !strings.Contains(err.Error(), `authority "peer" is not in the bootstrap`) {
			t.Errorf("without the source: %v", err)
		}
		if _, err := p.c.Watch(context.Background(), cds.Type, "a", own.hear, client.FromSource(bootstrap.Source{})); err == nil || err.Error() != "xds: authority: the peer source has no servers" {
			t.Error("a source without servers is no error")
		}
	})
}
