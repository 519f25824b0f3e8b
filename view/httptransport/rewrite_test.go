package httptransport_test

import (
	"net/http"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/httptransport"
)

// An endpoint is reached by the first of its addresses that answers.
//
// spec: VIEW-62
func TestAdditionalAddresses(t *testing.T) {
	m := viewtest.Management(t)
	a, gone := newBackend(t, "a"), newBackend(t, "gone")
	gone.Close()
	at := viewtest.At(gone.port)
	at.LbEndpoints[0].GetEndpoint().AdditionalAddresses = []*endpointv3.Endpoint_AdditionalAddress{

		{Address: viewtest.At(a.port).LbEndpoints[0].GetEndpoint().GetAddress()},
	}
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, `"*"`, `{match: {prefix: /}, route: {cluster: a}}`),
		viewtest.Cluster("a"), viewtest.Assignment("a", at))...)
	c, _ := newTransport(t, m, httptransport.Config{})
	if _, text, err := get(c, "http://example.com/"); text != "a example.com /" {
		t.Errorf("the response is %q, %v", text, err)
	}
}

// A request has the hostname of its endpoint as its host only if a trusted server sent the route
// that says so. An endpoint of a DNS cluster has the configured name and port as its hostname.
//
// spec: VIEW-65, VIEW-17
func TestAutoHostRewriteNeedsTrust(t *testing.T) {
	m := viewtest.Management(t)
	a := newBackend(t, "a")
	named := viewtest.At(a.port)
	named.LbEndpoints[0].GetEndpoint().Hostname = "own.example"
	dns := &clusterv3.Cluster{
		Name: "dns", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_LOGICAL_DNS},
		LoadAssignment: viewtest.Assignment("dns", &endpointv3.LocalityLbEndpoints{LbEndpoints: viewtest.At(a.port).LbEndpoints}),
	}
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, `"*"`,
		`{match: {path: /dns}, route: {cluster: dns, auto_host_rewrite: true}}`,
		`{match: {path: /off}, route: {cluster: a, auto_host_rewrite: false}}`,
		`{match: {path: /literal}, route: {cluster: a, host_rewrite_literal: other.example}}`,
		`{match: {prefix: /}, route: {cluster: a, auto_host_rewrite: true}}`),
		dns, viewtest.Cluster("a"), viewtest.Assignment("a", named))...)
	for _, tt := range []struct {
		trusted bool
		path    string
		want    string
	}{
		{false, "/", "example.com"},
		{false, "/dns", "example.com"},
		{false, "/literal", "other.example"},
		{true, "/", "own.example"},
		{true, "/dns", a.Listener.Addr().String()},
		{true, "/off", "example.com"},
		{true, "/literal", "other.example"},
	} {
		boot, err := bootstrap.Server(m.Addr())
		if err != nil {
			t.Fatal(err)
		}
		boot.Servers[0].Features.TrustedXDSServer = tt.trusted
		xds, err := client.New(client.Config{Bootstrap: boot})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { xds.Close() })
		v, err := view.New(t.Context(), xds, view.Root{Type: view.RootListener, Name: "listener"}, view.Config{})
		if err != nil {
			t.Fatal(err)
		}
		transport := httptransport.New(v, httptransport.Config{})
		t.Cleanup(transport.Close)
		if _, text, err := get(&http.Client{Transport: transport}, "http://example.com"+tt.path); text != "a "+tt.want+" "+tt.path {
			t.Errorf("with a trusted server %v, the response for %s is %q, %v, want the host %s", tt.trusted, tt.path, text, err, tt.want)
		}
	}
}
