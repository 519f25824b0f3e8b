package endpoint_test

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/view/endpoint"
)

func Example() {
	lb := func(host string, weight uint32) *endpointv3.LbEndpoint {
		return &endpointv3.LbEndpoint{
			LoadBalancingWeight: wrapperspb.UInt32(weight),
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
				Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 8080},
				}}},
			}},
		}
	}
	set := endpoint.New(&endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{lb("10.0.0.1", 1), lb("10.0.0.2", 3)},
	}}}, endpoint.Config{})

	var next endpoint.Smooth
	picked := map[string]int{}
	for range 1000 {
		picked[set.Pick(next.Next()).Address.Addr]++
	}
	fmt.Println(picked)
	// Output: map[10.0.0.1:8080:251 10.0.0.2:8080:749]
}
