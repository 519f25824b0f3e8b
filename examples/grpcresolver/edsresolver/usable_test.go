package edsresolver_test

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/examples/grpcresolver/edsresolver"
)

func at(ip string) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: ip, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80},
	}}}
}

func lb(ip string, health corev3.HealthStatus) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{
		HealthStatus:   health,
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: at(ip)}},
	}
}

func locality(priority uint32, es ...*endpointv3.LbEndpoint) *endpointv3.LocalityLbEndpoints {
	return &endpointv3.LocalityLbEndpoints{Priority: priority, LbEndpoints: es}
}

func TestUsable(t *testing.T) {
	const (
		unknown   = corev3.HealthStatus_UNKNOWN
		healthy   = corev3.HealthStatus_HEALTHY
		unhealthy = corev3.HealthStatus_UNHEALTHY
		draining  = corev3.HealthStatus_DRAINING
	)
	dual := lb("10.0.0.1", healthy)
	dual.GetEndpoint().AdditionalAddresses = []*endpointv3.Endpoint_AdditionalAddress{{Address: at("::1")}}
	tests := []struct {
		name       string
		localities []*endpointv3.LocalityLbEndpoints
		want       []string // addresses
	}{
		{name: "empty"},
		{
			name:       "health",
			localities: []*endpointv3.LocalityLbEndpoints{locality(0, lb("a", unknown), lb("b", healthy), lb("c", unhealthy), lb("d", draining))},
			want:       []string{"a:80", "b:80"},
		},
		{
			name:       "localities of one priority",
			localities: []*endpointv3.LocalityLbEndpoints{locality(1, lb("x", healthy)), locality(0, lb("a", healthy)), locality(0, lb("b", healthy))},
			want:       []string{"a:80", "b:80"},
		},
		{
			name:       "next priority",
			localities: []*endpointv3.LocalityLbEndpoints{locality(0, lb("a", unhealthy)), locality(1, lb("b", healthy)), locality(2, lb("c", healthy))},
			want:       []string{"b:80"},
		},
		{name: "several addresses", localities: []*endpointv3.LocalityLbEndpoints{locality(0, dual)}, want: []string{"10.0.0.1:80", "[::1]:80"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, e := range edsresolver.Usable(&endpointv3.ClusterLoadAssignment{Endpoints: tt.localities}) {
				for _, a := range e.Addresses {
					got = append(got, a.Addr)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
		})
	}
}
