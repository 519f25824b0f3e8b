package examples_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/configdump"
	"github.com/xdswatch/xdswatch/csds"
	"github.com/xdswatch/xdswatch/load"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/statuspage"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/dialer"
	"github.com/xdswatch/xdswatch/view/endpoint"
	"github.com/xdswatch/xdswatch/view/grpcresolver"
	"github.com/xdswatch/xdswatch/view/httptransport"
	"github.com/xdswatch/xdswatch/view/route"
	"github.com/xdswatch/xdswatch/watcher"
)

// What documents quote of these functions compiles; the tests of the packages show what it does.
var _ = []any{
	reportLoad, countInAdapters, countLoad, guardLoad, serveCSDS, servePage, servePageApart, serveDump, followIngress, chooseEndpoint,
}

func reportLoad(c *client.Client, logger *slog.Logger) {
	r := load.New(c, load.Config{Logger: logger})
	defer r.Close() // sends a last report; before c.Close()
}

func countInAdapters(c *client.Client, v *view.View, r *load.Reporter) (resolver.Builder, *httptransport.Transport, *dialer.Dialer) {
	builder := grpcresolver.NewBuilder(c, grpcresolver.ReportLoad(r))
	transport := httptransport.New(v, httptransport.Config{Load: r})
	connections := dialer.New(v, dialer.Config{Load: r}) // each connection as a request
	return builder, transport, connections
}

func countLoad(
	r *load.Reporter, ev watcher.Event[*clusterv3.Cluster], l *endpointv3.LocalityLbEndpoints, address *corev3.Address,
	send func() (*orcav3.OrcaLoadReport, error),
) {
	cluster := r.Cluster(load.TargetOf(ev.Server, ev.Value)) // ev: an event of a watched Cluster
	defer cluster.Close()

	// once for each locality of the assignment
	locality := cluster.Locality(l.GetLocality(), l.GetPriority())

	call := locality.Begin(address) // of an endpoint
	orca, err := send()
	call.Metrics(orca) // what the endpoint says of itself, if anything
	call.End(err == nil)

	cluster.Drop("overload") // a request that drop_overloads dropped
}

func guardLoad() (client.Config, *resource.Type[*clusterv3.Cluster]) {
	config := client.Config{Guards: map[string][]client.Guard{cds.Type.TypeURL(): {load.Guard}}}

	clusters := resource.With(cds.Type, load.CheckCluster)
	return config, clusters
}

func serveCSDS(c *client.Client) {
	server := grpc.NewServer()
	csds.Register(server, csds.Config{}, c) // package github.com/xdswatch/xdswatch/csds
}

func servePage(boot *bootstrap.Config) error {
	var exchanges statuspage.Recorder // package github.com/xdswatch/xdswatch/statuspage
	c, err := client.New(client.Config{Bootstrap: boot, Trace: exchanges.Trace(nil)})
	if err != nil {
		return err
	}

	http.Handle("/debug/xds/", statuspage.New(c, statuspage.Config{Recorder: &exchanges}))
	return nil
}

func servePageApart(c *client.Client, config statuspage.Config) {
	mux := http.NewServeMux()
	mux.Handle("/debug/xds/", statuspage.New(c, config))
	go http.ListenAndServe("127.0.0.1:9901", mux)
}

func serveDump(c *client.Client, mux *http.ServeMux) {
	mux.Handle("/config_dump", configdump.Handler(c)) // package github.com/xdswatch/xdswatch/configdump
}

func followIngress(
	ctx context.Context, c *client.Client, apply func(*view.Snapshot), use func([]*endpointv3.LocalityLbEndpoints),
) error {
	v, err := view.New(ctx, c, view.Root{Type: view.RootListener, Name: "ingress"}, view.Config{
		OnSnapshot: apply, // it is called with each published snapshot, in order
	})
	if err != nil {
		return err
	}
	defer v.Stop()
	if err := v.Ready(ctx); err != nil { // an error that lists what is waited for
		return err
	}
	backend := v.Snapshot().Cluster("backend") // no lock, no allocation
	for _, priority := range backend.Endpoints.Priorities() {
		use(priority)
	}
	return nil
}

func chooseEndpoint(s *view.Snapshot, old *route.Table, req route.Request, port uint16) (*endpoint.Endpoint, error) {
	table := route.Compile(s.Routes[0].Message, old) // once for each version; shares what is equal
	redirect, err := s.Routes[0].Normalization.Apply(&req, port)
	if err != nil || redirect != "" {
		return nil, err // with a redirect the request goes no further
	}
	found, err := table.Match(&req) // no allocation
	if err != nil {
		return nil, err
	}
	choice := found.Choose(&req) // cluster, weighted cluster, cluster_header
	set := endpoint.New(s.Cluster(choice.Cluster).Endpoints.Assignment(), endpoint.Config{})
	e := set.Pick(rand.Uint64()) // constant time, no allocation
	return e, nil
}
