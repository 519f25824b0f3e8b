package main

import (
	"fmt"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/xdswatch/xdswatch/resource/leds"
	"github.com/xdswatch/xdswatch/testutil"
)

// service is what the names of its endpoints begin with.
const service = "xdstp://mesh/envoy.config.endpoint.v3.LbEndpoint/checkout/"

// serve adds endpoints, or changes those that there are, in one go. Each is "name:port".
func serve(server *testutil.CollectionServer, endpoints ...string) error {
	var resources []*discoveryv3.Resource
	for _, text := range endpoints {
		id, number, _ := strings.Cut(text, ":")
		p, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return fmt.Errorf("endpoint %q: %w", text, err)
		}
		resources = append(resources, testutil.Wrapped(service+id, number, endpoint(uint32(p))))
	}
	return server.Set(resources...)
}

// remove removes endpoints, in one go.
func remove(server *testutil.CollectionServer, ids ...string) {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = service + id
	}
	server.Remove(leds.Type.TypeURL(), names...)
}

func endpoint(port uint32) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: "10.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
		}}},
	}}}
}

func port(e *endpointv3.LbEndpoint) uint32 {
	return e.GetEndpoint().GetAddress().GetSocketAddress().GetPortValue()
}
