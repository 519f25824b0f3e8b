package main

import (
	"errors"
	"maps"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/view/endpoint"
	"github.com/xdswatch/xdswatch/view/route"
	"github.com/xdswatch/xdswatch/watcher"
)

// newSingles makes a proxy that believes each resource as it comes, as programs without a view do.
func newSingles(t *testing.T, c *client.Client) *proxy {
	p := &proxy{hold: func(string) func() { return func() {} }}
	p.config.Store(&config{err: errors.New("no configuration yet")})
	var set *client.Set
	// Handlers of one authority run one after another.
	set, err := watcher.NewSet(t.Context(), c, eds.Type, func(b watcher.Batch[*endpointv3.ClusterLoadAssignment]) {
		now := *p.config.Load()
		now.sets = maps.Clone(now.sets)
		for _, ev := range b.Events {
			switch ev.Kind {
			case client.EventUpdated:
				now.sets[ev.Name] = endpoints{set: endpoint.New(ev.Value, endpoint.Config{})}
			case client.EventDoesNotExist:
				delete(now.sets, ev.Name)
			}
		}
		p.config.Store(&now)
	})
	if err != nil {
		t.Fatal(err)
	}
	// The proxy needs nothing of clusters but that the client acknowledges them.
	if _, err := watcher.WatchAll(t.Context(), c, cds.Type, "*", func(watcher.Batch[*clusterv3.Cluster]) {}); err != nil {
		t.Fatal(err)
	}
	_, err = watcher.Watch(t.Context(), c, rds.Type, "routes", func(ev watcher.Event[*routev3.RouteConfiguration]) {
		if ev.Kind != client.EventUpdated {
			return
		}
		now := &config{routes: route.Compile(ev.Value, nil), sets: map[string]endpoints{}}
		for _, name := range now.routes.VirtualHosts()[0].Routes()[1].Clusters() {
			if e, ok := p.config.Load().sets[name]; ok {
				now.sets[name] = e
			}
			if err := set.Add(name); err != nil {
				t.Error(err)
			}
		}
		p.config.Store(now)
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
