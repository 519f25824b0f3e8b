package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// proxy is what a proxy would have: clusters, and a route that refers to one of them.
type proxy struct {
	mu       sync.Mutex
	clusters map[string]bool
	route    string // the cluster that requests go to; "" until known
	failed   int    // lookups that found no cluster
	changed  chan struct{}
}

// request looks up the cluster that a request would go to. It is made after each event, which
// stands for the requests that come between two.
func (p *proxy) request() {
	if p.route != "" && !p.clusters[p.route] {
		p.failed++
	}
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *proxy) hearClusters(b watcher.Batch[*clusterv3.Cluster]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ev := range b.Events {
		switch ev.Kind {
		case client.EventUpdated:
			p.clusters[ev.Name] = true
		case client.EventDoesNotExist, client.EventFailed:
			delete(p.clusters, ev.Name)
		case client.EventAmbientError, client.EventRecovered, client.EventSynced:
		}
		p.request()
	}
}

func (p *proxy) hearRoute(ev watcher.Event[*routev3.RouteConfiguration]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ev.Kind == client.EventUpdated {
		p.route = ev.Value.GetVirtualHosts()[0].GetRoutes()[0].GetRoute().GetCluster()
	}
	p.request()
}

// await waits until the route leads to a cluster and no other is left.
func (p *proxy) await(t *testing.T, cluster string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		p.mu.Lock()
		done := p.route == cluster && len(p.clusters) == 1 && p.clusters[cluster]
		text := fmt.Sprint(p.route, p.clusters)
		p.mu.Unlock()
		if done {
			return
		}
		select {
		case <-p.changed:
		case <-deadline:
			t.Fatalf("the proxy has %s, want %s", text, cluster)
		}
	}
}

func routeTo(cluster string) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{Name: "routes", VirtualHosts: []*routev3.VirtualHost{{
		Name: "all", Domains: []string{"*"},
		Routes: []*routev3.Route{{
			Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}},
		}},
	}}}
}

// go-control-plane's cache says that a cluster is gone before it says where its routes lead
// now. With a grace no request finds its cluster missing, and what is gone goes in the end;
// without one some do.
//
// spec: U-14 S-34
func TestDeletionGraceBesideRoutes(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a real server, in real time")
	}
	t.Parallel()
	for _, variant := range []client.Variant{client.VariantSotW, client.VariantDelta} {
		for _, grace := range []time.Duration{0, time.Second} { // in which the routes have to come, on a slow machine too
			t.Run(fmt.Sprintf("variant %d, grace %v", variant, grace), func(t *testing.T) {
				t.Parallel()
				const turns = 8
				p, swap := proxied(t, variant, grace)
				for i := range turns {
					swap(i)
				}
				if p.mu.Lock(); grace > 0 && p.failed > 0 || grace == 0 && p.failed < turns/2 {
					t.Errorf("%d lookups failed in %d changes", p.failed, turns)
				}
				p.mu.Unlock()
			})
		}
	}
}

// proxied begins a proxy, and returns what changes its cluster and its route at once.
func proxied(t *testing.T, variant client.Variant, grace time.Duration) (*proxy, func(int)) {
	srv := testutil.StartManagementServer(t, testutil.ManagementConfig{ADS: true, Ordered: true})
	must(t, srv.Set("0", cluster("one", ""), routeTo("one")))
	boot, err := bootstrap.Server(srv.Addr())
	must(t, err)
	c, err := client.New(client.Config{
		Bootstrap: boot, Variant: variant,
		Deletions: map[string]client.DeletionPolicy{cds.Type.TypeURL(): client.DeletionAfter(grace)},
	})
	must(t, err)
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
	})
	p := &proxy{clusters: map[string]bool{}, changed: make(chan struct{}, 1)}
	_, err = watcher.WatchAll(context.Background(), c, cds.Type, "*", p.hearClusters)
	must(t, err)
	_, err = watcher.Watch(context.Background(), c, rds.Type, "routes", p.hearRoute)
	must(t, err)
	p.await(t, "one")
	return p, func(i int) {
		name := fmt.Sprint("next-", i)
		must(t, srv.Set(fmt.Sprint(i+1), cluster(name, ""), routeTo(name)))
		p.await(t, name)
	}
}

// Each type has a policy of its own, and who hears that a deletion is kept can tell it from
// other trouble.
//
// spec: U-14
func TestDeletionPolicies(t *testing.T) {
	type wanted struct {
		policy client.DeletionPolicy
		want   []string
	}
	kept := "ambient error a data: the server deleted the resource; the last value is kept"
	for what, tt := range map[string]wanted{
		"honoured":  {client.DeletionHonour, []string{"updated a", "does not exist a absent"}},
		"kept":      {client.DeletionKeep, []string{"updated a", kept}},
		"after":     {client.DeletionAfter(time.Minute), []string{"updated a", kept + " for 1m0s, unless the resource returns", "does not exist a absent"}},
		"not after": {client.DeletionAfter(-time.Minute), []string{"updated a", "does not exist a absent"}},
	} {
		t.Run(what, func(t *testing.T) {
			kind := resource.Custom("type.googleapis.com/test.Full", resource.Options{NameField: 1, FullState: true},
				func(_ resource.Source, b []byte) (string, error) { return string(b), nil })
			inBubble(t, func(t *testing.T, r *rig) {
				_, rec := r.watchType(kind, "a")
				_, other := r.watch("b")
				st := r.accept()
				m := testutil.SotW(kind.TypeURL(), "", "n1", cluster("a", ""))
				m.Resources[0].TypeUrl = kind.TypeURL()
				r.send(st, m)
				r.clusters(st, "1", "m1", "b")
				r.send(st, testutil.SotW(kind.TypeURL(), "", "n2"))
				r.clusters(st, "2", "m2")
				time.Sleep(2 * time.Minute)
				rec.heard(t, trimmed(tt.want)...)
				other.heard(t, "updated b 1", "ambient error b data: the server deleted the resource; the last value is kept")
				for _, ev := range rec.all() {
					if ev.Kind == client.EventAmbientError != errors.Is(ev.Err, client.ErrDeletionKept) {
						t.Errorf("%v: %v", ev.Kind, ev.Err)
					}
				}
			}, func(c *client.Config) {
				c.DeletionPolicy = client.DeletionKeep
				c.Deletions = map[string]client.DeletionPolicy{kind.TypeURL(): tt.policy}
			})
		})
	}
}

// trimmed is for values that have no version.
func trimmed(texts []string) (out []string) {
	for _, s := range texts {
		if s == "updated a" {
			s += " "
		}
		out = append(out, s)
	}
	return out
}
