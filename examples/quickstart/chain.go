package main

import (
	"context"
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/watcher"
)

// link watches one resource, and points the next link to what that one refers to.
type link[T any] struct {
	notes *notes
	api   string // "cds"
	kind  *resource.Type[T]
	read  func(T) (refersTo, text string)
	next  func(context.Context, *client.Client, string) // nil at the end of the chain

	name  string
	watch *client.Watch
}

// follow watches a listener and whatever it refers to, down to the endpoints.
func follow(ctx context.Context, c *client.Client, n *notes, listener string) {
	endpoints := &link[*endpointv3.ClusterLoadAssignment]{notes: n, api: "eds", kind: eds.Type, read: readEndpoints}
	cluster := &link[*clusterv3.Cluster]{notes: n, api: "cds", kind: cds.Type, read: readCluster, next: endpoints.point}
	routes := &link[*routev3.RouteConfiguration]{notes: n, api: "rds", kind: rds.Type, read: readRoutes, next: cluster.point}
	first := &link[*listenerv3.Listener]{notes: n, api: "lds", kind: lds.Type, read: readListener, next: routes.point}
	first.point(ctx, c, listener)
}

// point turns the link to a resource. A handler may watch and stop, so each link is turned
// by the handler of the one before it; handlers of one authority are called one at a time.
func (l *link[T]) point(ctx context.Context, c *client.Client, name string) {
	if l.name == name {
		return
	}
	before := l.watch
	w, err := watcher.Watch(ctx, c, l.kind, name, func(ev watcher.Event[T]) {
		n := note{api: l.api, name: ev.Name, kind: ev.Kind, reason: ev.Reason, err: ev.Err}
		var refersTo string
		if ev.Kind == client.EventUpdated {
			refersTo, n.text = l.read(ev.Value)
		}
		l.notes.put(n)
		if l.next != nil && refersTo != "" {
			l.next(ctx, c, refersTo)
		}
	})
	if err != nil {
		l.notes.put(note{api: l.api, name: name, kind: client.EventFailed, err: err})
		return
	}
	l.name, l.watch = name, w
	if before != nil {
		before.Stop()
	}
}

func readListener(l *listenerv3.Listener) (routes, text string) {
	var hcm hcmv3.HttpConnectionManager
	if err := l.GetApiListener().GetApiListener().UnmarshalTo(&hcm); err != nil {
		return "", err.Error()
	}
	routes = hcm.GetRds().GetRouteConfigName()
	return routes, "routes " + routes
}

func readRoutes(r *routev3.RouteConfiguration) (cluster, text string) {
	for _, host := range r.GetVirtualHosts() {
		for _, route := range host.GetRoutes() {
			cluster = route.GetRoute().GetCluster()
		}
	}
	return cluster, "cluster " + cluster
}

func readCluster(c *clusterv3.Cluster) (service, text string) {
	service = c.GetEdsClusterConfig().GetServiceName()
	return service, fmt.Sprintf("endpoints %s, connect timeout %v", service, c.GetConnectTimeout().AsDuration())
}

// readEndpoints ends the chain: endpoints refer to nothing.
func readEndpoints(a *endpointv3.ClusterLoadAssignment) (none, text string) {
	var all []string
	for _, locality := range a.GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			address := e.GetEndpoint().GetAddress().GetSocketAddress()
			all = append(all, fmt.Sprintf("%s:%d", address.GetAddress(), address.GetPortValue()))
		}
	}
	return "", strings.Join(all, ", ")
}
