package transport_test

import (
	"context"
	"net"
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/testutil"
)

// A default source of REST is polled for each type with the names that are watched.
//
// spec: E-2 REST-3 AUTH-3
func TestDefaultSourceOfREST(t *testing.T) {
	const (
		route     = "xdstp://shop/envoy.config.route.v3.RouteConfiguration/r"
		endpoints = "xdstp://shop/envoy.config.endpoint.v3.ClusterLoadAssignment/e"
	)
	srv := testutil.StartRESTServer(t, testutil.RESTConfig{})
	if err := srv.Set("1", &routev3.RouteConfiguration{Name: route}, &endpointv3.ClusterLoadAssignment{ClusterName: endpoints}); err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	boot, err := bootstrap.Parse("envoy", []byte(`
node: {id: a, cluster: b}
default_config_source: {api_config_source: {api_type: REST, refresh_delay: 0.05s, request_timeout: 30s, cluster_names: [c]}}
static_resources: {clusters: [{name: c, load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: `+host+`, port_value: `+port+`}}}}]}]}}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	heard := make(chan string, 10)
	for name, kind := range map[string]resource.AnyType{route: rds.Type, endpoints: eds.Type} {
		if _, err := c.Watch(ctx, kind, name, func(ev client.Event[any]) {
			if ev.Kind == client.EventUpdated {
				heard <- ev.Name
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	got, paths := map[string]bool{}, map[string][]string{}
	for len(got) < 2 {
		select {
		case name := <-heard:
			got[name] = true
		case <-ctx.Done():
			t.Fatalf("heard of %v alone", got)
		}
	}
	for len(paths) < 2 {
		poll, err := srv.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		paths[poll.Path] = poll.Request.GetResourceNames()
	}
	if diff := cmp.Diff(map[string][]string{"/v3/discovery:routes": {route}, "/v3/discovery:endpoints": {endpoints}}, paths); diff != "" {
		t.Errorf("polls, -want +got:\n%s", diff)
	}
}
