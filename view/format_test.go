package view_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/view"
)

// What programs print of a snapshot, or of a part of it, is no content of a resource.
//
// spec: H-3
func TestNothingSecretIsFormatted(t *testing.T) {
	const marker = "MARK3R"
	vh := &routev3.VirtualHost{Domains: []string{marker}}
	routes := view.RouteConfig{Name: "n", Message: &routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{vh}}}
	endpoints := view.Endpoints{Message: &endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_EndpointName{EndpointName: marker}}}}}}}
	cluster := view.Cluster{Name: "n", Message: &clusterv3.Cluster{AltStatName: marker}, Endpoints: &endpoints}
	listener := view.Listener{Name: "n", Message: &listenerv3.Listener{StatPrefix: marker}}
	resource := view.Resource{Type: "t", Name: "n", Message: vh}
	snapshot := view.Snapshot{
		Root: view.Root{Name: "n"}, Listener: &listener, Routes: []*view.RouteConfig{&routes}, VirtualHost: vh,
		Scopes: []*routev3.ScopedRouteConfiguration{{RouteConfigurationName: marker}},
	}
	for _, v := range []any{
		routes, &routes, endpoints, &endpoints, cluster, &cluster, listener, &listener, resource, &resource, snapshot, &snapshot,
		[]view.Resource{resource}, map[string]*view.Cluster{"c": &cluster},
	} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Errorf("%T as JSON: %v", v, err)
		}
		if all := fmt.Sprintf("%v %+v %#v %s %q %d %s", v, v, v, v, v, v, text); strings.Contains(all, marker) {
			t.Errorf("%T: %s", v, all)
		}
	}
	if got := fmt.Sprint(&resource); got != `t "n"` {
		t.Errorf("a resource is printed as %s", got)
	}
}
