package edsresolver

import (
	"math"
	"net"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/resolver"
)

// Usable lists the endpoints of the highest priority (the lowest number) that has any
// which are healthy or of unknown health (gRFC A27).
func Usable(a *endpointv3.ClusterLoadAssignment) []resolver.Endpoint {
	var usable []resolver.Endpoint
	best := uint32(math.MaxUint32)
	for _, locality := range a.GetEndpoints() {
		here := healthy(locality)
		switch p := locality.GetPriority(); {
		case len(here) == 0 || p > best:
		case p < best:
			best, usable = p, here
		default:
			usable = append(usable, here...)
		}
	}
	return usable
}

func healthy(l *endpointv3.LocalityLbEndpoints) []resolver.Endpoint {
	var all []resolver.Endpoint
	for _, e := range l.GetLbEndpoints() {
		switch e.GetHealthStatus() {
		case corev3.HealthStatus_HEALTHY, corev3.HealthStatus_UNKNOWN:
			all = append(all, endpoint(e.GetEndpoint()))
		}
	}
	return all
}

// endpoint has all addresses of one server.
func endpoint(e *endpointv3.Endpoint) resolver.Endpoint {
	re := resolver.Endpoint{Addresses: []resolver.Address{address(e.GetAddress())}}
	for _, more := range e.GetAdditionalAddresses() {
		re.Addresses = append(re.Addresses, address(more.GetAddress()))
	}
	return re
}

func address(a *corev3.Address) resolver.Address {
	s := a.GetSocketAddress()
	return resolver.Address{Addr: net.JoinHostPort(s.GetAddress(), strconv.Itoa(int(s.GetPortValue())))}
}
