package wellknown_test

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/ecds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/leds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/resource/rtds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/resource/srds"
	"github.com/xdswatch/xdswatch/resource/vhds"
	"github.com/xdswatch/xdswatch/resource/wellknown"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// getter looks up resources of a server, as the packages of the types show it in their comments.
type getter struct {
	server *testutil.CollectionServer
	client *client.Client
	got    map[string]bool // by type URL
}

func get[T proto.Message](t *testing.T, g *getter, typ *resource.Type[T], name string, want T) {
	t.Helper()
	if err := g.server.Set(testutil.Wrapped(name, "1", want)); err != nil {
		t.Fatal(err)
	}
	got, err := watcher.Get(t.Context(), g.client, typ, name)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
	g.got[typ.TypeURL()] = true
}

// A program looks up a resource of each type.
func TestGet(t *testing.T) {
	server, err := testutil.NewCollectionServer()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	c, err := client.New(client.Config{Bootstrap: server.Bootstrap(true, "prod")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	g := &getter{server, c, map[string]bool{}}
	get(t, g, lds.Type, "ingress", &listenerv3.Listener{Name: "ingress", StatPrefix: "edge"})
	get(t, g, rds.Type, "shop", &routev3.RouteConfiguration{
		Name: "shop", VirtualHosts: []*routev3.VirtualHost{{Name: "www", Domains: []string{"shop.example"}}},
	})
	get(t, g, srds.Type, "tenant-1", &routev3.ScopedRouteConfiguration{
		Name: "tenant-1", RouteConfigurationName: "shop",
		Key: &routev3.ScopedRouteConfiguration_Key{Fragments: []*routev3.ScopedRouteConfiguration_Key_Fragment{
			{Type: &routev3.ScopedRouteConfiguration_Key_Fragment_StringKey{StringKey: "t1"}},
		}},
	})
	get(t, g, vhds.Type, "shop/www.example", &routev3.VirtualHost{Name: "www", Domains: []string{"www.example"}})
	get(t, g, cds.Type, "orders", &clusterv3.Cluster{Name: "orders", LbPolicy: clusterv3.Cluster_LEAST_REQUEST})
	get(t, g, eds.Type, "orders", &endpointv3.ClusterLoadAssignment{
		ClusterName: "orders", Endpoints: []*endpointv3.LocalityLbEndpoints{{Priority: 1}},
	})
	get(t, g, leds.Type, "xdstp://prod/envoy.config.endpoint.v3.LbEndpoint/a/1", &endpointv3.LbEndpoint{
		HostIdentifier: &endpointv3.LbEndpoint_EndpointName{EndpointName: "orders-1"},
	})
	get(t, g, sds.Type, "roots", &tlsv3.Secret{
		Name: "roots", Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
			TrustedCa: &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: "roots.pem"}},
		}},
	})
	get(t, g, rtds.Type, "flags", &runtimev3.Runtime{
		Name: "flags", Layer: &structpb.Struct{Fields: map[string]*structpb.Value{"dark_mode": structpb.NewBoolValue(true)}},
	})
	get(t, g, ecds.Type, "router", &corev3.TypedExtensionConfig{
		Name: "router", TypedConfig: testutil.Wrapped("", "", &routerv3.Router{}).GetResource(),
	})
	for _, e := range wellknown.All() {
		if !g.got[e.Kind.TypeURL()] {
			t.Errorf("no %s was looked up", e.Short)
		}
	}
}
